"""Checks that every private estimator has to pass, in the manner of scikit-learn's.

Each check is a function of an estimator and raises `AssertionError` in words. Here are those of the
cost, of what a fit shows, and that it always answers; those of the privacy loss are in
:mod:`_loss_checks`. Exact comparisons need no level of significance; statistical ones state their
false-alarm rate. Every check kills at least one mutant (`tests/audit/test_mutants.py`).

No check can see a leak that waits for data, parameters or times that are never met, a wrong proof
whose claim no pair of neighbors here violates, or what happens below Python.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._costs.budget import PrivacyBudget
from .._costs.checks import is_integer
from .._privacy._ledger import PrivacyLedger
from .._privacy._trace import Event, altering
from .._rows.table import PARTS
from ..exceptions import BudgetExceededError, UtilityWarning
from ._loss_checks import (
    N_FEATURES,
    Bomb,
    Watched,
    assert_none,
    charge_problems,
    check_data,
    check_drawn_data,
    check_groups,
    check_missing_groups_are_refused,
    check_noise_is_fresh,
    check_noise_law,
    check_refit,
    check_replay,
    check_replay_of_hard_groups,
    check_replay_of_methods,
    check_seeded_noise_is_told,
    released_state,
    rich_ledger,
    succeed,
)
from ._observe import Explosion, Outcome, accepts_groups, prepared, run_fit, scan_for_leaks
from ._recount import library_problems, recount_problems
from ._replay import Recorder, Replay, different, record


def check_dp_estimator(
    estimator: BaseEstimator, *, generate_only: bool = False
) -> Iterator[tuple[BaseEstimator, Callable[[BaseEstimator], None]]] | None:
    """Check that an estimator keeps the contract of differentially private estimators.

    Parameters
    ----------
    estimator : estimator derived from the package's base class
        An instance. Clones of it are fitted; your ledger is not charged.
    generate_only : bool, default=False
        Return the checks instead of running them.

    Returns
    -------
    checks : None, or iterator of (estimator, check)
        Each check takes the estimator, and has a ``__name__``.

    Raises
    ------
    AssertionError
        If a check fails; the message says what is wrong.

    See Also
    --------
    replay_audit : The most informative of the checks, for your own data.
    """
    checks = ((clone(estimator), check) for check in CHECKS)
    if generate_only:
        return checks
    for instance, check in checks:
        check(instance)
    return None


# -- cost ------------------------------------------------------------------------------------------


def check_cost_is_independent_of_data(estimator: Any) -> None:
    """Fits to any two data sets cost the same: a cost that depends on data is a release without
    noise."""
    charges = []
    for X in (check_data(30), 1e4 * check_data(211, seed=1)):
        ledger = rich_ledger()
        succeed(run_fit(prepared(estimator, ledger=ledger), X))
        charges.append([replace(charge, time="") for charge in ledger.entries])
    assert charges[0] == charges[1], "the charge depends on the data"
    assert len(charges[0]) == 1, "a fit must charge its ledger exactly once"


def check_plan_and_report_agree(estimator: Any) -> None:
    """Plan, report and charge state the same guarantee, the requested one: at most 1e-9 above the
    target."""
    ledger = rich_ledger()
    copy = prepared(estimator, ledger=ledger)
    plan = copy.privacy_plan(N_FEATURES)
    succeed(run_fit(copy, check_data(50)))
    report, (charge,) = copy.privacy_report_, ledger.entries
    for name in ("epsilon", "rho"):
        assert getattr(plan, name) == getattr(report, name) == getattr(charge, name), name
        asked = getattr(copy._target(), name)
        assert asked is None or getattr(plan, name) <= asked * (1 + 1e-9), f"more {name} than asked"
    assert plan.target.delta == report.delta == charge.delta == copy._target().delta, "delta"
    assert plan.unit == report.unit == charge.unit == "row", "unit"
    assert report.spent_rho <= plan.rho * (1 + 1e-12), "more spent than planned"
    names = {entry.name for entry in plan.entries}
    assert {row["release"] for row in report.releases} <= names, "a release outside the plan"


def check_charge_is_true(estimator: Any) -> None:
    """Every field of the charge matches the plan, for rows and for groups. For groups again, as the
    unit is one of the fields."""
    assert_none(charge_problems(estimator, check_data(40)))
    if accepts_groups(estimator):
        assert_none(charge_problems(estimator, check_data(40), groups=check_groups(40)))


def check_total_is_right(estimator: Any) -> None:
    """The releases cost no more than the report says, by independent code; conversions have
    branches, so at several budgets."""
    budgets = [{"epsilon": epsilon, "rho": None} for epsilon in (0.1, 2.0, 50.0)]
    for budget in (*budgets, {"epsilon": None, "rho": 0.3}):
        for groups in (None, check_groups(60)) if accepts_groups(estimator) else (None,):
            made = record(prepared(estimator, **budget), check_data(60), groups=groups)
            made_and_reported = made.events, made.plan, made.outcome.estimator.privacy_report_
            assert_none(recount_problems(*made_and_reported))
            if find_spec("dp_accounting"):
                assert_none(library_problems(*made_and_reported))


def check_ledger_is_charged_before_data(estimator: Any) -> None:
    """The ledger is charged before the data are read, and a failed fit keeps the charge. Else an
    interrupted fit would tell something for free."""
    # Each time the values of `watched` are asked for, the number of charges at that moment is
    # noted.
    ledger, balances = rich_ledger(), []
    watched = Watched(check_data(30), lambda: balances.append(len(ledger.entries)))
    succeed(run_fit(prepared(estimator, ledger=ledger), watched))
    assert balances and set(balances) == {1}, "data were looked at before the ledger was charged"
    outcome = run_fit(prepared(estimator, ledger=ledger), check_data(30), recorder=Bomb())
    assert isinstance(outcome.error, Explosion), "the fit hides an error"
    assert len(ledger.entries) == 2, "a fit that failed was not charged, or was refunded"


def check_exhausted_ledger_refuses(estimator: Any) -> None:
    """Without enough budget, a fit raises an error and does not read the data."""

    def touch() -> None:
        raise AssertionError("data were looked at although the ledger is exhausted")

    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e-9, delta=1e-12))
    outcome = run_fit(prepared(estimator, ledger=ledger), Watched(check_data(30), touch))
    assert isinstance(outcome.error, BudgetExceededError), f"no refusal, but {outcome.error!r}"
    assert not ledger.entries, "a refused fit was charged"


def check_prediction_is_free(estimator: Any) -> None:
    """predict, transform and score charge nothing, change nothing, and are not random."""
    ledger, X = rich_ledger(), check_data(30)
    outcome = run_fit(prepared(estimator, ledger=ledger), X)
    succeed(outcome)
    before = released_state(outcome.estimator)
    for method in ("predict", "transform", "score"):
        if hasattr(outcome.estimator, method):
            first, second = (getattr(outcome.estimator, method)(X) for _ in range(2))
            np.testing.assert_array_equal(first, second, err_msg=f"{method} is random")
    assert len(ledger.entries) == 1, "prediction charges the ledger"
    assert released_state(outcome.estimator) == before, "prediction changes the estimator"


# -- what a fitted estimator shows -----------------------------------------------------------------


def check_no_leaks(estimator: Any) -> None:
    """No training value appears in the pickle, texts, HTML, warnings or errors."""
    assert_none(scan_for_leaks(estimator, check_data(25)))
    if accepts_groups(estimator):
        assert_none(scan_for_leaks(estimator, check_data(25), groups=check_groups(25)))


def check_pickle(estimator: Any) -> None:
    """A pickle contains releases only: no labels, nothing whose size grows with n. It can
    predict."""
    assert set(estimator._not_released) <= {"labels_"}, "only labels_ may be kept in memory"
    sizes, trace = {}, Recorder()
    for n in (500, 8000):
        outcome = run_fit(prepared(estimator), check_data(n), recorder=trace if n == 8000 else None)
        succeed(outcome)
        data, fitted = pickle.dumps(outcome.estimator), outcome.estimator
        sizes[n] = len(data) - sum(getattr(fitted, name).nbytes for name in fitted._length_released)
    if estimator._length_released:
        _check_lengths(estimator, outcome, trace.events)
    # Two bytes for each row added would be 15000; the number of releases may vary by a few.
    assert abs(sizes[8000] - sizes[500]) < 3750, "the size of the pickle depends on n"
    copy = pickle.loads(data)
    assert not any(hasattr(copy, name) for name in copy._not_released), "labels_ in the pickle"
    for method in [each for each in ("predict", "transform") if hasattr(copy, each)]:
        np.testing.assert_array_equal(
            getattr(copy, method)(check_data(9)), getattr(outcome.estimator, method)(check_data(9))
        )


def _check_lengths(estimator: Any, outcome: Outcome, events: list[Event]) -> None:
    """Fit 500 of the 8,000 rows with the same releases: all that is shown is equal, so no length
    follows n."""
    # The first rows of both data sets are the same. Distances mean nothing here.
    forced = Replay(events, np.arange(500))
    other = run_fit(prepared(estimator), check_data(500), recorder=forced)
    if not forced.voided:
        assert_none(different(outcome.face(), other.face(), "with n, and not with the releases"))


def check_parameters_are_kept(estimator: Any) -> None:
    """Fitting and cloning leave parameters alone, by identity; clones are not fitted."""
    copy = prepared(estimator)
    before = copy.get_params(deep=False)
    succeed(run_fit(copy, check_data(30)))
    assert all(value is before[name] for name, value in copy.get_params(deep=False).items()), (
        "a fit changes parameters"
    )
    again = clone(copy)
    assert repr(again) == repr(clone(estimator).set_params(ledger=None, random_state=0))
    assert not [name for name in vars(again) if name.endswith("_")], "a clone is fitted"


# -- all data get an answer ------------------------------------------------------------------------


def check_small_data(estimator: Any) -> None:
    """0, 1, k-1 and 20 rows, at tiny and huge budgets: always a finite answer, no other warning."""
    k = estimator.get_params().get("n_clusters", 2)
    k = int(k) if is_integer(k) else 2  # some estimators choose it
    for epsilon in (0.01, 1000.0):
        for n in sorted({0, 1, k - 1, 20}):
            copy = prepared(estimator, epsilon=epsilon, rho=None)
            outcome = run_fit(copy, check_data(n), internal=n == 0)
            succeed(outcome, f"epsilon={epsilon:g}, n={n}: ")
            for name, value in vars(copy).items():
                # A number may be nan or inf where there is nothing to tell, an error inf.
                numbers = isinstance(value, np.ndarray) and value.dtype.kind != "U"
                if name.endswith("_") and numbers:
                    unknown = name.endswith("_std_error_") & np.isposinf(value)
                    assert np.all(np.isfinite(value) | unknown), f"{name} is not finite"
            assert copy.status_ in ("ok", "caution", "unusable"), "status_ is no known word"
            warned = any(issubclass(kind, UtilityWarning) for kind, _ in outcome.warnings)
            assert warned != copy.trustworthy_, "UtilityWarning, unless trustworthy_"


def check_numpy_error_state_has_no_effect(estimator: Any) -> None:
    """NumPy's error settings have no effect: an underflow or an overflow is a fact about a row."""
    signs = np.sign(check_data(2))
    X = np.concatenate([check_data(30), 5e-324 * signs, 1e300 * signs])
    faces = []
    for treatment in ("raise", "warn"):
        with np.errstate(all=treatment):
            outcome = run_fit(prepared(estimator), X, strict=False)
        succeed(outcome, f"numpy errors set to {treatment!r}: ")
        faces.append(outcome.face())
    assert faces[0] == faces[1], "numpy's error state changes the result"


def check_rows_out_of_bounds_are_clipped(estimator: Any) -> None:
    """Rows outside `bounds` are moved to the border; how far outside they were has no effect.

    Every row is outside, by a factor of four and of eight. In a box, such rows end up in its
    corners, so rows in the corners are fitted too: an estimator that drops outside rows would treat
    both factors alike. Only messages, and the released counts of rows outside behind them, may tell
    them apart. An error that begins with "bounds must be None" says that there are no bounds.
    """
    rows = np.sign(check_data(30)) * (1 + np.abs(check_data(30)))
    for bounds in (1.0, (-1.0, 1.0)) * ("bounds" in estimator.get_params()):
        outcomes = []
        # Powers of two, so that the clipped rows agree to the last bit.
        # What leaves such rows out treats both factors alike, and has no more to show.
        corners = isinstance(bounds, tuple) and not estimator._leaves_out_rows_outside
        tables = [4 * rows, 8 * rows, *([np.sign(rows)] if corners else [])]
        for points in tables:
            outcomes.append(run_fit(prepared(estimator, bounds=bounds), points))
        if str(outcomes[0].error).startswith("bounds must be None"):
            continue  # with these parameters there are none
        for outcome in outcomes:
            succeed(outcome, "rows out of bounds: ")
        clipped = outcomes[0].face() == outcomes[1].face()
        answers = [released_state(each.estimator, "messages_", "_outside") for each in outcomes]
        clipped = clipped and all(answer == answers[0] for answer in answers)
        assert clipped, "rows outside the bounds are not clipped to them"


def check_n_jobs_has_no_effect(estimator: Any) -> None:
    """With a seed, results are bitwise identical with one worker and with two."""
    if "n_jobs" not in estimator.get_params():
        return
    results = []
    for n_jobs in (1, 2):
        with altering(PARTS, 1):  # two parts, as of many rows
            outcome = run_fit(prepared(estimator, n_jobs=n_jobs), check_data(300))
        succeed(outcome)
        results.append(released_state(outcome.estimator))
    assert results[0] == results[1], "n_jobs changes the result"


CHECKS = (
    check_plan_and_report_agree,
    check_charge_is_true,
    check_total_is_right,
    check_cost_is_independent_of_data,
    check_ledger_is_charged_before_data,
    check_exhausted_ledger_refuses,
    check_replay,
    check_replay_of_hard_groups,
    check_replay_of_methods,
    check_missing_groups_are_refused,
    check_drawn_data,
    check_refit,
    check_noise_law,
    check_noise_is_fresh,
    check_seeded_noise_is_told,
    check_no_leaks,
    check_pickle,
    check_parameters_are_kept,
    check_prediction_is_free,
    check_small_data,
    check_numpy_error_state_has_no_effect,
    check_rows_out_of_bounds_are_clipped,
    check_n_jobs_has_no_effect,
)
