"""Checks that every private estimator has to pass, in the manner of scikit-learn's."""

import pickle
from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from .._privacy._budget import PrivacyBudget
from .._privacy._ledger import PrivacyLedger
from .._privacy._tape import Tape
from ..exceptions import BudgetExceededError, SeededNoiseWarning, UtilityWarning
from ._claims import paid
from ._leaks import scan_for_leaks
from ._noise_law import noise_audit
from ._observe import accepts_groups, prepared, run_fit
from ._replay import replay_audit

__all__ = ["CHECKS", "check_data", "check_dp_estimator", "check_groups", "hard_groups"]

_EXPECTED_WARNINGS = (SeededNoiseWarning, UtilityWarning)
_N_FEATURES = 3


def check_dp_estimator(estimator, *, generate_only=False):
    """Check that an estimator keeps the contract of differentially private estimators.

    Parameters
    ----------
    estimator : estimator derived from the package's base class
        An instance; clones of it are fitted, and no ledger of yours is charged.
    generate_only : bool, default=False
        Return the checks instead of running them.

    Returns
    -------
    checks : None, or iterator of (estimator, check)
        Each check takes the estimator, and has a ``__name__``.

    Raises
    ------
    AssertionError
        With what is wrong, from the first check that fails.

    See Also
    --------
    replay_audit : The most telling of the checks, for your own data.
    """
    checks = ((clone(estimator), check) for check in CHECKS)
    if generate_only:
        return checks
    for instance, check in checks:
        check(instance)
    return None


# -- privacy loss ----------------------------------------------------------------------------------


def check_replay(estimator):
    """Neighbours differ only by noise that is paid for; small data and the empty set too."""
    for n, d, recordings in ((20, 3, 1), (400, 3, 1), (30, 12, 1), (2, 5, 1), (1, 3, 1), (0, 3, 1)):
        X = check_data(n, n, d)
        _assert_none(_replayed(estimator, X, recordings=recordings, html=n == 20))
        if accepts_groups(estimator) and n > 1:
            _assert_none(_replayed(estimator, X, groups=check_groups(n), recordings=recordings))


def check_replay_of_hard_groups(estimator):
    """Units stay what they are with ids that cannot be sorted, converted or printed faithfully."""
    if accepts_groups(estimator):
        for groups in hard_groups(20).values():
            _assert_none(_replayed(estimator, check_data(20, 20), groups=groups))


def check_missing_groups_are_refused(estimator):
    """A row without an id belongs to nobody: no fit may guess to whom."""
    if not accepts_groups(estimator):
        return
    for missing in (None, np.nan, np.datetime64("NaT"), np.ma.masked, (1, np.nan)):
        groups = [missing, *check_groups(19).tolist()]
        outcome = run_fit(prepared(estimator), check_data(20), groups)
        named = isinstance(outcome.error, ValueError) and "groups" in str(outcome.error)
        assert named, f"{missing!r} among the groups is not refused by name: {outcome.error!r}"


def _replayed(estimator, X, **options):
    result = replay_audit(estimator, X, **options)
    return result.violations or ([] if result.passed else ["all pairs are voided"])


def check_noise_law(estimator):
    """The noise has the claimed scale, no mean, and is never used twice."""
    _assert_none(noise_audit(estimator, check_data(400), fits=30))
    if accepts_groups(estimator):
        _assert_none(noise_audit(estimator, check_data(30), groups=check_groups(30), fits=10))


def check_noise_is_fresh(estimator):
    """Without random_state, noise is new each time, whatever numpy's global seed."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        first = _drawn_with_global_seed(estimator, 0)
        # Where a fit draws one small number, two may be alike: once in 150 times. Not nine.
        same = all(np.array_equal(first, _drawn_with_global_seed(estimator, 0)) for _ in range(8))
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert not same, "the same noise again and again with random_state=None"


def _drawn_with_global_seed(estimator, seed):
    """All noise of a fit with a moderate budget, so that there is noise to see."""
    np.random.seed(seed)  # noqa: NPY002 - the global state is what must have no effect
    recorder = Tape()
    moderate = prepared(estimator, random_state=None, epsilon=1.0, rho=None)
    _succeed(run_fit(moderate, check_data(30), recorder=recorder))
    return np.concatenate([np.ravel(event.output - event.value).astype(float)
                           for event in paid(recorder.events) if event.kind == "gaussian"])


def check_seeded_noise_is_told(estimator):
    """A seed is warned of, and told by the report."""
    for seed, source in ((0, "seeded"), (None, "system")):
        outcome = run_fit(prepared(estimator, random_state=seed), check_data(30))
        _succeed(outcome)
        warned = any(issubclass(kind, SeededNoiseWarning) for kind, _ in outcome.warnings)
        assert warned == (seed is not None), "SeededNoiseWarning, if and only if there is a seed"
        assert outcome.estimator.privacy_report_.noise == source, "the report's noise source"


# -- cost ------------------------------------------------------------------------------------------


def check_cost_is_independent_of_data(estimator):
    """Two data sets, of any size and scale, cost the same."""
    charges = []
    for X in (check_data(30), 1e4 * check_data(211, seed=1)):
        ledger = _ledger()
        _succeed(run_fit(prepared(estimator, ledger=ledger), X))
        charges.append([replace(charge, time="") for charge in ledger.entries])
    assert charges[0] == charges[1], "the charge depends on the data"
    assert len(charges[0]) == 1, "a fit must charge its ledger exactly once"


def check_plan_and_report_agree(estimator):
    """The plan, the report and the charge tell the same guarantee, and it is what was asked for."""
    ledger = _ledger()
    copy = prepared(estimator, ledger=ledger)
    plan = copy.privacy_plan(_N_FEATURES)
    _succeed(run_fit(copy, check_data(50)))
    report, (charge,) = copy.privacy_report_, ledger.entries
    for name in ("epsilon", "rho"):
        assert getattr(plan, name) == getattr(report, name) == getattr(charge, name), name
        asked = getattr(copy._target(), name)
        assert asked is None or getattr(plan, name) <= asked * (1 + 1e-9), f"more {name} than asked"
    assert plan.target.delta == report.delta == charge.delta == copy.delta, "delta"
    assert plan.unit == report.unit == charge.unit == "row", "unit"
    assert report.spent_rho <= plan.rho * (1 + 1e-12), "more spent than planned"
    names = {entry.name for entry in plan.entries}
    assert {row["release"] for row in report.releases} <= names, "a release beside the plan"


def check_ledger_is_charged_before_data(estimator):
    """The charge is there when the data are first looked at, and a fit that fails keeps it."""
    ledger, seen = _ledger(), []
    watched = _Watched(check_data(30), lambda: seen.append(len(ledger.entries)))
    _succeed(run_fit(prepared(estimator, ledger=ledger), watched))
    assert seen and set(seen) == {1}, "data were looked at before the ledger was charged"
    outcome = run_fit(prepared(estimator, ledger=ledger), check_data(30), recorder=_Bomb())
    assert isinstance(outcome.error, _Explosion), "the fit hides an error"
    assert len(ledger.entries) == 2, "a fit that failed was not charged, or was refunded"


def check_exhausted_ledger_refuses(estimator):
    """Without enough budget, a fit raises and leaves the data alone."""

    def touch():
        raise AssertionError("data were looked at although the ledger is exhausted")

    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e-9, delta=1e-12))
    outcome = run_fit(prepared(estimator, ledger=ledger), _Watched(check_data(30), touch))
    assert isinstance(outcome.error, BudgetExceededError), f"no refusal, but {outcome.error!r}"
    assert not ledger.entries, "a refused fit was charged"


def check_prediction_is_free(estimator):
    """predict, transform and score charge nothing and change nothing."""
    ledger, X = _ledger(), check_data(30)
    outcome = run_fit(prepared(estimator, ledger=ledger), X)
    _succeed(outcome)
    before = _released_state(outcome.estimator)
    for method in ("predict", "transform", "score"):
        if hasattr(outcome.estimator, method):
            first, second = (getattr(outcome.estimator, method)(X) for _ in range(2))
            np.testing.assert_array_equal(first, second, err_msg=f"{method} is random")
    assert len(ledger.entries) == 1, "prediction charges the ledger"
    assert _released_state(outcome.estimator) == before, "prediction changes the estimator"


# -- what a fitted estimator shows -----------------------------------------------------------------


def check_no_leaks(estimator):
    """No training value in pickle, texts, HTML, warnings or errors."""
    _assert_none(scan_for_leaks(estimator, check_data(25)))
    if accepts_groups(estimator):
        _assert_none(scan_for_leaks(estimator, check_data(25), groups=check_groups(25)))


def check_pickle(estimator):
    """A pickle holds releases only: no labels, nothing whose size grows with n; it predicts."""
    assert set(estimator._not_released) <= {"labels_"}, "only labels_ may be kept in memory"
    sizes = {}
    for n in (500, 8000):
        outcome = run_fit(prepared(estimator), check_data(n))
        _succeed(outcome)
        data = pickle.dumps(outcome.estimator)
        sizes[n] = len(data)
    # Two bytes for each row added would be 15000; the number of releases may vary by a few.
    assert abs(sizes[8000] - sizes[500]) < 3750, "the size of the pickle depends on n"
    copy = pickle.loads(data)
    assert not any(hasattr(copy, name) for name in copy._not_released), "labels_ in the pickle"
    for method in {"predict", "transform"} & set(dir(copy)):
        np.testing.assert_array_equal(getattr(copy, method)(check_data(9)),
                                      getattr(outcome.estimator, method)(check_data(9)))


def check_parameters_are_kept(estimator):
    """A fit and a clone leave parameters alone; clones are not fitted."""
    copy = prepared(estimator)
    before = copy.get_params(deep=False)
    _succeed(run_fit(copy, check_data(30)))
    assert all(value is before[name] for name, value in copy.get_params(deep=False).items()), (
        "a fit changes parameters")
    again = clone(copy)
    assert repr(again) == repr(clone(estimator).set_params(ledger=None, random_state=0))
    assert not [name for name in vars(again) if name.endswith("_")], "a clone is fitted"


# -- all data get an answer ------------------------------------------------------------------------


def check_small_data(estimator):
    """0, 1, k-1 and 20 rows, at tiny and huge budgets: always a finite answer, no other warning."""
    k = estimator.get_params().get("n_clusters", 2)
    for epsilon in (0.01, 1000.0):
        for n in sorted({0, 1, k - 1, 20}):
            copy = prepared(estimator, epsilon=epsilon, rho=None)
            outcome = run_fit(copy, check_data(n), internal=n == 0)
            _succeed(outcome, f"epsilon={epsilon:g}, n={n}: ")
            _check_finite(copy)
            assert isinstance(copy.status_, str) and copy.status_, "status_ must be words"
            warned = any(issubclass(kind, UtilityWarning) for kind, _ in outcome.warnings)
            assert warned == (copy.status_ != "ok"), "UtilityWarning, unless status_ is 'ok'"


def check_numpy_error_state_has_no_effect(estimator):
    """Whatever numpy is told to raise: an underflow or an overflow is a fact about a row."""
    signs = np.sign(check_data(2))
    X = np.concatenate([check_data(30), 5e-324 * signs, 1.7e308 * signs])
    faces = []
    for treatment in ("raise", "warn"):
        with np.errstate(all=treatment):
            outcome = run_fit(prepared(estimator), X, strict=False)
        _succeed(outcome, f"numpy errors set to {treatment!r}: ")
        faces.append(outcome.face())
    assert faces[0] == faces[1], "numpy's error state changes the result"


def _check_finite(estimator):
    for name, value in vars(estimator).items():
        # A number may be nan or inf where there is nothing to tell; an answer may not.
        if name.endswith("_") and isinstance(value, np.ndarray):
            assert np.all(np.isfinite(value)), f"{name} is not finite"


def check_rows_out_of_bounds_are_clipped(estimator):
    """Rows outside `bounds` are moved to the border: how far outside they were has no effect."""
    rows = np.sign(check_data(30)) * (1 + np.abs(check_data(30)))
    for bounds in (1.0, (-1.0, 1.0)):
        faces = []
        for factor in (4.0, 8.0):  # powers of two, so that the clipped rows agree to the last bit
            outcome = run_fit(prepared(estimator, bounds=bounds), factor * rows)
            _succeed(outcome, "rows out of bounds: ")
            faces.append(outcome.face())
        assert faces[0] == faces[1], "rows outside the bounds are not clipped to them"


def check_n_jobs_has_no_effect(estimator):
    """The same bits with one worker and with two."""
    if "n_jobs" not in estimator.get_params():
        return
    results = []
    for n_jobs in (1, 2):
        outcome = run_fit(prepared(estimator, n_jobs=n_jobs), check_data(300))
        _succeed(outcome)
        results.append(_released_state(outcome.estimator))
    assert results[0] == results[1], "n_jobs changes the result"


CHECKS = (
    check_plan_and_report_agree,
    check_cost_is_independent_of_data,
    check_ledger_is_charged_before_data,
    check_exhausted_ledger_refuses,
    check_replay,
    check_replay_of_hard_groups,
    check_missing_groups_are_refused,
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


# -- helpers ---------------------------------------------------------------------------------------


def check_data(n, seed=0, d=_N_FEATURES):
    """Two groups of points, with values of many digits."""
    rng = np.random.default_rng(seed)
    places = np.resize([[-3.0, 0.5, 0.1], [2.0, 2.0, -1.0]], (2, d))
    return places[np.arange(n) % 2] + 0.3 * ndtri(rng.random((n, d)))


def check_groups(n):
    """Groups of one to four rows, out of order."""
    return np.random.default_rng(1).permutation(np.arange(n) * 2 // 5)


def hard_groups(n):
    """Groups with ids of which an array or a sort would make something else, by what they are.

    Of about three rows each, so that neither a merged nor a split unit goes unnoticed.
    """
    big = [*(2**53 + k for k in range(4)), 0.5, 1.5, -1, -2]
    sets = [frozenset(range(i, j)) for i in range(3) for j in range(i, 4)]
    mixed = [1, "1", b"1", (1,), ("1",), 2**53 + 1, float(2**53), -1]
    return {name: [kinds[k % len(kinds)] for k in check_groups(n)]
            for name, kinds in (("big numbers", big), ("sets", sets), ("mixed", mixed))}


def _ledger():
    """More than any fit costs."""
    return PrivacyLedger(PrivacyBudget(epsilon=1e12, delta=0.999))


def _assert_none(problems):
    assert not problems, "; ".join(problems[:3]) + (" ..." if len(problems) > 3 else "")


def _succeed(outcome, context=""):
    """No error, and no warning but those that the contract knows."""
    if outcome.error is not None:
        raise AssertionError(f"{context}a fit raises {outcome.error!r}") from outcome.error
    other = [text for kind, text in outcome.warnings if not issubclass(kind, _EXPECTED_WARNINGS)]
    assert not other, f"{context}a fit warns: {other[0]}"


def _released_state(estimator):
    """What a pickle would hold, but for the parameters that may differ or have no pickle."""
    state = estimator.__getstate__()
    return pickle.dumps({name: state[name] for name in state if name not in ("ledger", "n_jobs")})


class _Watched:
    """An array-like whose shape is public, and that tells when its values are asked for."""

    def __init__(self, X, touch):
        self._X, self._touch = X, touch
        self.shape = X.shape

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        self._touch()
        return np.asarray(self._X, dtype=dtype)


class _Explosion(Exception):
    """Not an error that any estimator would handle."""


class _Bomb:
    """A tape that breaks the fit at its first release."""

    def play(self, event):
        if event.entry:
            raise _Explosion
        return event.output
