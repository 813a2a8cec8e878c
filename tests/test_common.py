"""What every public estimator has to pass, at the settings of `configurations`."""

from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from configurations import ESTIMATORS, TABLE, configurations
from mutants import MUTANTS
from mutants.planting import Mutant, _visits, killer
from neighbor_audits import mixed_neighbors_of, neighbors_of
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import sklearn_dp
from benchmarks.certify import inherited, recount
from benchmarks.certify.checks import EVERY_CHECK, OF_THIS_PACKAGE
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp.audit import _checks, check_dp_estimator, replay_audit
from sklearn_dp.audit._checks import check_groups

_NO_LABELS = {"labels in the pickle", "labels in the HTML display"}
# Bugs that are none: these have no labels, and a group is one point of theirs, without a weight; a
# ball takes what is inside, wherever else points are.
POINTS = {"group weight ignored", "labels in the pickle", "labels in the HTML display"}
_NO_CLIP = {
    *_NO_LABELS,
    "rows out of bounds refused",
    "clip skipped",
    "second moment without a clip",
}
HARMLESS = {
    # Rows are moved into the bounds, and into the ball of the second moment, before these clips.
    "DPPCA": _NO_LABELS | {"rows out of bounds refused", "second moment without a clip"},
    "FriendlyCovariance": _NO_LABELS | {"rows out of bounds refused"},
    # Halves of rows, and rows in a ball, are moved into the bounds before they are centered.
    "DPGaussianMixture": _NO_LABELS | {"rows out of bounds refused"},
    "DPCoreset": _NO_LABELS,
    # There are no bounds, no threads and no weights: of a group one row counts. Rows are objects,
    # however they were stored, and no numbers to compute with. And the noise of a table of eleven
    # different rows is one number: that of their number.
    "DPOneHotEncoder": {
        *_NO_CLIP,
        "bounds from the data",
        "parameters changed by a fit",
        "noise seeded by n_jobs",
        "group weight ignored",
        "the number of rows of an array in Fortran order",
        "the number of rows of float32",
        "data in the report",
        "data in the repr",
        "a sum in memory that pickles leave out",
        "no noise for 11 rows",
    },
    # Values are put into bins as they are, and nothing is clipped.
    "DPQuantiles": {
        *_NO_CLIP,
        # Nothing of it answers for rows.
        "predictions tell the parity of n",
        "predictions leak where n is 23",
    },
    "DPRobustScaler": _NO_CLIP,
    # Rows are moved into the bounds before any of them is centered.
    "DPStandardScaler": _NO_LABELS | {"rows out of bounds refused"},
    # Points are moved into the bounds before any of them is centered.
    # Its plan is its own, and predictions are made by copies of estimators that have lost what was
    # no release. It has no parameter `bounds`, and all of `fit` is under `row_guard`.
    "DPBySegment": {
        *POINTS,
        "rows out of bounds refused",
        "a refit is cheaper",
        "numpy's error state shown",
        "parameters changed by a fit",
        "predictions leave something",
        "predictions leak where n is 23",
        "predictions tell the parity of n",
    },
    # Directions have no bounds, and those of DPKMeans are not asked; all of `fit` is under
    # `row_guard`. It keeps no labels.
    "DPTopics": {
        "labels in the pickle",
        "labels in the HTML display",
        "rows out of bounds refused",
        "bounds from the data",
        "numpy's error state shown",
        "parameters changed by a fit",
    },
    "FriendlyMean": {*POINTS, "rows out of bounds refused"},
    # The ball of their second moment is the domain, which holds all points.
    # And all Gaussian noise of the drawn case of eleven rows is of less than a step: two numbers.
    "DPOneCluster": {
        *POINTS,
        "clip skipped",
        "second moment without a clip",
        "no noise for 11 rows",
    },
    "DPOneClusterKMeans": {"group weight ignored", "clip skipped", "second moment without a clip"},
    "DPOutlierScreen": {*POINTS, "clip skipped", "second moment without a clip"},
    # Rows are clipped before the inner fits; outputs out of bounds, and blocks that are dropped
    # (by 15 rows, which no neighbors here are across), are mutants of its own tests.
    # All of `fit` is under `row_guard`, as it reads a target: wherever the mutant asks for numpy's
    # error state it is "ignore", whatever the user has set.
    "SampleAndAggregate": {
        *POINTS,
        "numpy's error state shown",
        "clip skipped",
        "rows out of bounds refused",
        "failed blocks dropped",
    },
    # A client is one vector, clipped as a whole: its rows need no weights.
    "FederatedDPKMeans": {"group weight ignored"},
}

# Those whose building blocks the others have too.
BUILDING_BLOCKS = ("DPKMeans", "FriendlyMean")


# -- scikit-learn's contract, and ours -------------------------------------------------------------


# Each has to fail, for the reason that is given.
_WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is not a row that is "
    "there twice: the noise is for what one row adds, which is bounded by one weight"
}
_SPARSE_WEIGHTS = {**_WEIGHTS, "check_sample_weight_equivalence_on_sparse_data": "as above"}
EXPECTED_FAILURES = {
    "DPKMeans": _SPARSE_WEIGHTS,
    "DPDBSCAN": {"check_clustering": "the noise of 50 rows hides all clusters"},
    "DPKTupleKMeans": _WEIGHTS,
    "DPPCA": _SPARSE_WEIGHTS,
    # Of means and scalers without bounds rows are too few for any mean but the origin.
    "DPRobustScaler": _WEIGHTS,
}


def expected_failures(estimator):
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [setting.estimator for setting in configurations("sklearn")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def weight_checks():
    """Those of weights, which scikit-learn makes where the signature of `fit` has them."""
    for setting in configurations("sklearn"):
        if "max_weight" not in setting.estimator.get_params(deep=False):
            continue
        estimator = clone(setting.estimator).set_params(max_weight=10.0)
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=expected_failures(estimator), mark="xfail"
        ):
            check = getattr(case, "values", case)[1].func.__name__
            if "sample_weight" in check:
                marks = getattr(case, "marks", ())
                yield pytest.param(
                    *getattr(case, "values", case), marks=marks, id=f"{setting}-{check}"
                )


@pytest.mark.parametrize(("estimator", "check"), weight_checks())
def test_scikit_learn_checks_of_weights(estimator, check):
    check(estimator)


# Made of the steps of others, which are replayed in the normal suite: of DPKMeans, of
# SampleAndAggregate and FriendlyMean, and of DPOneCluster. Replays of the rooms' tests stay there.
MADE_OF_OTHERS = {"DPCoreset", "DPKTupleKMeans", "DPOneClusterKMeans", "DPOutlierScreen"}
# Hundreds of fits each: the estimators that the normal suite tries them with, `make audit` tries
# all. Drawn data are met in the hundreds of neighbors below and in `tests/fuzz/test_replay.py`;
# each question is tried by itself in `tests/_queries`.
AUDIT = {
    "check_drawn_data": (),
    "check_replay": tuple(name for name in ESTIMATORS if name not in MADE_OF_OTHERS),
    "check_replay_of_hard_groups": ("DPBySegment", "DPKMeans", "DPOneHotEncoder", "FriendlyMean"),
    "check_noise_law": ("DPKMeans", "DPQuantiles", "FederatedDPKMeans", "FriendlyMean"),
    "check_refit": ("DPBySegment", "DPKMeans", "DPOneCluster", "FriendlyMean"),
}
# Of other settings, at a second budget or in another way, the normal suite has those of what a fit
# costs, and replays of one; all others are for `make audit`.
OF_OTHER_SETTINGS = {"check_plan_and_report_agree", "check_charge_is_true"}
REPLAYED_TWICE = "FriendlyMean"
# They set budgets of their own.
OWN_BUDGET = {
    *("check_noise_is_fresh", "check_small_data", "check_drawn_data", "check_total_is_right")
}


def privacy_cases():
    """Each setting with each check, once: those of the first setting of each estimator are quick.

    Whose defaults take minutes has a first setting of fewer steps.
    """
    firsts = set()
    for use in ("privacy", "privacy, slow"):
        for setting in configurations(use):
            first = setting.name not in firsts
            firsts.add(setting.name)
            contract = check_dp_estimator(setting.estimator, generate_only=True)
            for check in [*(check for _, check in contract), *OF_THIS_PACKAGE]:
                name = check.__name__
                if name in OWN_BUDGET and not first and {*setting.options} <= {"epsilon", "rho"}:
                    continue
                quick = name in OF_OTHER_SETTINGS and use != "privacy, slow"
                quick |= first and setting.name in AUDIT.get(name, ESTIMATORS)
                quick |= name == "check_replay" and setting.name == REPLAYED_TWICE
                yield pytest.param(
                    setting, check, id=f"{setting}-{name}", marks=() if quick else pytest.mark.slow
                )


PRIVACY_CASES = list(privacy_cases())
# What `check_kernel_noise` asks has one answer, whatever the estimator.
KERNEL_PROBLEMS = cache(inherited.kernel_problems)


# Those that fit a model for each unit. 40 units of 400 rows lead them the same way as 160.
FITS_PER_UNIT = ("FederatedDPKMeans", "SampleAndAggregate")


def large_groups(n):
    """Four times as large as those of the checks, where these have many of them."""
    return check_groups(n) // (1 if n < 400 else 4)


# The rounds of the normal suite. Replays: few rows with groups and without, many rows, and none;
# ids that floats would merge, and ids that cannot be sorted. Noise: a third of the fits.
FEW_ROUNDS = {"REPLAYED": ((20, 3, True), (400, 3, False), (0, 3, False)), "NOISE_FITS": (10, 1, 3)}


@pytest.mark.parametrize(("setting", "check"), PRIVACY_CASES)
def test_privacy_checks(setting, check, monkeypatch, request):
    monkeypatch.setattr(inherited, "kernel_problems", KERNEL_PROBLEMS)
    if setting.name in FITS_PER_UNIT:
        for module in (_checks, inherited, recount):
            monkeypatch.setattr(module, "check_groups", large_groups)
    if request.node.get_closest_marker("slow") is None and setting.name != REPLAYED_TWICE:
        for name, rounds in FEW_ROUNDS.items():
            monkeypatch.setattr(_checks, name, rounds)
        monkeypatch.setattr(inherited, "HARD_GROUPS", slice(0, 2))
    check(setting.estimator)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_clipped_rows_where_a_large_budget_tells_of_them(name):
    """At the setting that mutants are tried at, where no check may fail without one."""
    (setting,) = configurations("mutants", name)
    _checks.check_rows_out_of_bounds_are_clipped(setting.estimator)


def row_wise(change):
    """A fit to other rows."""
    return lambda original: (
        lambda self, X, *others, **named: original(self, change(X), *others, **named)
    )


@pytest.mark.parametrize("name", ["DPKMeans", "DPKTupleKMeans", "FriendlyCovariance"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda X: np.vstack([X[(np.abs(X) <= 1).all(axis=1)], 0 * X[:1]]),  # a row stays
            id="rows outside are dropped",
        ),
        pytest.param(lambda X: np.where(np.abs(X) > 9, 0.0, X), id="far values are replaced"),
        pytest.param(lambda X: np.where(np.abs(X) > 1, X / 64, X), id="values are scaled"),
    ],
)
def test_rows_that_are_not_clipped_are_seen_beside_their_statuses(name, change):
    (setting,) = configurations("mutants", name)
    bug = Mutant("rows outside", (), ((type(setting.estimator), "fit", row_wise(change)),))
    with bug.planted(), pytest.raises(AssertionError, match="rows outside the bounds are not"):
        _checks.check_rows_out_of_bounds_are_clipped(setting.estimator)


# -- the registry ----------------------------------------------------------------------------------


def test_the_registry_knows_estimators_only_and_each_setting_once():
    assert set(TABLE) <= set(ESTIMATORS)
    for name in ESTIMATORS:
        settings = [repr(options) for options, _ in TABLE.get(name, [])]
        assert len(settings) == len(set(settings)), name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_is_left_out(name):
    """Of any kind of test: and the contract and the audits are tried at the defaults."""
    assert {} in [setting.options for setting in configurations("sklearn", name)]
    assert len(configurations("privacy", name)) >= 2
    assert configurations("neighbors", name) and len(configurations("mutants", name)) == 1


def test_all_checks_run_for_every_estimator():
    quick = {(case.values[0].name, case.values[1]) for case in PRIVACY_CASES if not case.marks}
    for name, check in product(ESTIMATORS, EVERY_CHECK):
        assert (name, check) in quick or name not in AUDIT.get(check.__name__, ESTIMATORS)


def test_public_estimators_are_exported():
    for name, cls in ESTIMATORS.items():
        assert getattr(sklearn_dp, name) is cls
        assert name in sklearn_dp.__all__
    assert sklearn_dp.DPMean is sklearn_dp.FriendlyMean
    assert sklearn_dp.DPCovariance is sklearn_dp.FriendlyCovariance


# -- replay ----------------------------------------------------------------------------------------


# The quick ones go through all data sets once, each with another of their settings; `make audit`
# goes through all of them with every setting.
PAIRS = [
    pytest.param(REPLAYED_TWICE, 200, id=REPLAYED_TWICE),
    *(pytest.param(name, 2000, id=f"{name}-2000", marks=pytest.mark.slow) for name in ESTIMATORS),
]


@pytest.mark.parametrize(("name", "pairs"), PAIRS)
def test_hundreds_or_thousands_of_neighbors(name, pairs):
    """`python tests/neighbor_audits.py` prints the table."""
    total = mixed_neighbors_of(name) if pairs < 2000 else neighbors_of(name, pairs)
    assert total.violations == [] and total.n_voided <= 0.1 * total.n_pairs
    assert total.n_pairs - total.n_voided >= pairs
    assert all(ratio <= 1 + 1e-12 for ratio in total.ratios.values())
    # Claims that are far too large would be safe, and waste the budget.
    assert max(total.ratios.values()) > 0.999


# Four clusters far apart with tails of Student's t: rows at the ends of every clip, cells with many
# rows beside cells with one, and noise of a few rows. Settings of others have all of them, too.
FAR_APART = {
    "DPKMeans": {"n_clusters": 4},
    "DPCoreset": {},
    "DPOneCluster": {"n_points": 250},
    "DPGaussianMixture": {"n_components": 4},
    "FriendlyCovariance": {},
    "DPPCA": {"n_components": 2},
    "FriendlyMean": {},
    "FederatedDPKMeans": {"n_clusters": 4},
}


@pytest.mark.parametrize("name", FAR_APART)
def test_a_large_signal_with_long_tails(name):
    """1,200 rows: a mutant of DPKMeans that passed all of its room had 160 violations on 800."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-150, 150, size=(4, 3))
    labels, widths = np.arange(1200) % 4, np.array([0.5, 2.0, 5.0, 15.0])
    X = centers[labels] + widths[labels][:, None] * rng.standard_t(1.5, size=(1200, 3))
    model = ESTIMATORS[name](epsilon=20.0, bounds=300.0, **FAR_APART[name])
    audit = replay_audit(model, X, strangers=False)
    assert audit.violations == [] and audit.n_voided == 0
    assert max(audit.ratios.values()) > 0.999


# -- mutants ---------------------------------------------------------------------------------------


def reached(bugs, estimator):
    """Those whose code runs in any of the visits of `killer`: all of them are asked at once."""
    with ExitStack() as stack:
        happened = [
            stack.enter_context(
                replace(
                    bug, changes=tuple((*place, lambda f: f) for *place, _ in bug.changes)
                ).planted()
            )
            for bug in bugs
        ]
        for _ in _visits(estimator):
            pass
    return [bug for bug, times in zip(bugs, happened, strict=True) if times]


def harmful(bug, setting):
    return bug.name not in HARMLESS.get(setting.name, ())


def survivors(name, bugs, verdicts=None):
    """The mutants that no check kills, and how many are killed."""
    (setting,) = configurations("mutants", name)
    verdicts = {} if verdicts is None else verdicts
    killed = {
        bug.name: killer(bug, setting.estimator, verdicts) for bug in bugs if harmful(bug, setting)
    }
    return (
        [bug for bug, check in killed.items() if check is None],
        len([check for check in killed.values() if check != "not reached"]),
    )


def test_a_harmless_mutant_survives():
    change = (BaseDPEstimator, "_fit_session", lambda original: original)
    bug = Mutant("of this test", ("check_no_leaks", "check_total_is_right"), (change,))
    assert survivors("DPKMeans", [bug]) == (["of this test"], 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDING_BLOCKS)
def test_mutants_of_building_blocks_are_killed(name, monkeypatch):
    """Those of the kernel and the base class: by the toy of `tests/audit/test_mutants.py`.

    A replay of DPKMeans without a mutant takes as long as those of ten mutants. The neighbors
    above have this setting as well, and `make audit` has the check itself. None of these mutants
    is in the sampler, which is asked before any of them is planted.
    """
    KERNEL_PROBLEMS()
    monkeypatch.setattr(inherited, "kernel_problems", KERNEL_PROBLEMS)
    (setting,) = configurations("mutants", name)
    replayed = setting in configurations("neighbors", name)
    homes = {"mutants.building_blocks", "mutants.kernel"}
    bugs = [bug for bug in MUTANTS if bug.changes[0][2].__module__ in homes]
    bugs = reached(bugs, setting.estimator)
    found, killed = survivors(name, bugs, {"check_replay": None} if replayed else {})
    assert found == [] and killed >= 5


@pytest.mark.slow
def test_every_mutant_is_reached_where_it_does_harm():
    """By an estimator at least, which has to kill it below or here. No estimator calls what four
    are of: the toy of `tests/audit/test_mutants.py` kills three, and the replays of
    `tests/_aggregate/tuples/test_stage.py`, of a private number of tuples, the other one."""
    left = set(MUTANTS)
    for setting in configurations("mutants"):
        left -= {*reached([bug for bug in left if harmful(bug, setting)], setting.estimator)}
    for setting in configurations("more mutants"):
        found = reached([bug for bug in left if harmful(bug, setting)], setting.estimator)
        assert found and all(killer(bug, setting.estimator, {}) in bug.killed_by for bug in found)
        left -= {*found}
    of_the_toy = {"raw count used", "raw histogram used", "clip limit from the data"}
    of_the_tuples = {"friends of the others only, with a score to spare"}
    assert {bug.name for bug in left} == of_the_toy | of_the_tuples


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_mutants_are_killed(name):
    """All that an estimator reaches, by the checks that they name. Minutes each: most of it is
    `check_drawn_data`, which stops at the first case that kills, its largest one being the last.
    """
    found, killed = survivors(name, MUTANTS)
    assert found == [] and killed >= 70
