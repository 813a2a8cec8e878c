"""Checks that every private estimator has to pass, in the manner of scikit-learn's.

Each raises `AssertionError` in words, and kills at least one mutant
(`tests/audit/test_mutants.py`). Statistical ones state their false-alarm rate. No check can see a
leak that waits for data, parameters or times that are never met, a wrong proof whose claim no pair
of neighbors here violates, or what happens below Python.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, clone

from .._costs.budget import PrivacyBudget
from .._costs.ledger_terms import LedgerCharge
from .._costs.numbers import is_integer
from .._costs.plan import PrivacyPlan
from .._privacy._ledger import PrivacyLedger
from .._privacy._trace import Event, Trace, altering
from .._rows.table import PARTS
from .._silence import overheard, own_streams
from ..exceptions import BudgetExceededError, SeededNoiseWarning, UtilityWarning
from ._noise_law import noise_audit
from ._observe import (
    Explosion,
    Outcome,
    accepts_groups,
    n_features_of,
    n_features_seen,
    prepared,
    run_fit,
    scan_for_leaks,
)
from ._recount import all_gaussian, paid
from ._replay import Recorder, Replay, different, record, replay_audit

_RECENT = timedelta(hours=1)
_EXPECTED_WARNINGS = (SeededNoiseWarning, UtilityWarning)
N_FEATURES = 3
# Numbers of rows and columns, and whether the rows are replayed in groups too.
REPLAYED = (
    (20, 3, True),
    (400, 3, True),
    (30, 12, True),
    (2, 5, True),
    (1, 3, False),
    (0, 3, False),
)
NOISE_FITS = (30, 3, 10)  # fits to narrow data, to many columns, and with groups
_MANY = 128  # columns


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


# -- tools -----------------------------------------------------------------------------------------


def rich_ledger(plan: PrivacyPlan | None = None) -> PrivacyLedger:
    """A ledger in memory that allows more than any fit costs, with the terms of a plan."""
    terms = {} if plan is None else {"unit": plan.unit, "relation": plan.relation}
    return PrivacyLedger(PrivacyBudget(epsilon=1e12, delta=0.999), **terms)


def check_data(n: int, seed: int = 0, d: int = N_FEATURES) -> np.ndarray:
    """Two well separated groups of points (n, d), with values of many digits, for leaks."""
    rng = np.random.default_rng(seed)
    # Each place is repeated by itself: they are apart in every d, also where 6 divides it.
    places = np.stack([np.resize(place, d) for place in ([-3.0, 0.5, 0.1], [2.0, 2.0, -1.0])])
    return places[np.arange(n) % 2] + 0.3 * ndtri(rng.random((n, d)))


def check_groups(n: int) -> np.ndarray:
    """Groups of one to four rows, out of order."""
    return np.random.default_rng(1).permutation(np.arange(n) * 2 // 5)


def assert_none(problems: Sequence[str]) -> None:
    """Fail with the first three problems, if there are any."""
    assert not problems, "; ".join(problems[:3]) + (" ..." if len(problems) > 3 else "")


def succeed(outcome: Outcome, context: str = "") -> None:
    """No error, and no warning but those that the contract knows."""
    if outcome.error is not None:
        raise AssertionError(f"{context}a fit raises {outcome.error!r}") from outcome.error
    other = [text for kind, text in outcome.warnings if not issubclass(kind, _EXPECTED_WARNINGS)]
    assert not other, f"{context}a fit warns: {other[0]}"


def released_state(estimator: Any, *but: str) -> bytes:
    """The contents of a pickle, without parameters that may differ, and attributes in `but`."""
    state, left_out = estimator.__getstate__(), ("ledger", "n_jobs")
    return pickle.dumps(
        {name: state[name] for name in state if name not in left_out and not name.endswith(but)}
    )


class Watched:
    """An array-like of `rows` whose shape is public, and that tells when its values are read."""

    def __init__(self, X: Any, touch: Callable[[], Any]) -> None:
        self.rows, self._touch = X, touch
        self.shape = X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Tell, and hand the values over."""
        self._touch()
        return np.asarray(self.rows, dtype=dtype)


class Bomb:
    """A trace that breaks the fit at its first release."""

    def record(self, event: Event) -> Any:
        """Let the seed event pass, which belongs to no plan entry; the first release explodes."""
        if event.entry:
            raise Explosion
        return event.output


# -- cost ------------------------------------------------------------------------------------------


def check_cost_is_independent_of_data(estimator: Any) -> None:
    """Fits to any two data sets cost the same: else the cost is a release without noise."""
    charges = []
    for X in (check_data(30), 1e4 * check_data(211, seed=1)):
        ledger = rich_ledger()
        succeed(run_fit(prepared(estimator, ledger=ledger), X))
        charges.append([replace(charge, time="") for charge in ledger.entries])
    assert charges[0] == charges[1], "the charge depends on the data"
    assert len(charges[0]) == 1, "a fit must charge its ledger exactly once"


def check_plan_and_report_agree(estimator: Any) -> None:
    """Plan, report and charge state one guarantee: at most 1e-9 above the target."""
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
    """Every field of the charge is that of the plan, and of what was done, for rows and groups."""
    X = check_data(40)
    for unit, groups in (("row", None), ("group", check_groups(40))):
        if unit == "group" and not accepts_groups(estimator):
            continue
        plan = prepared(estimator).privacy_plan(n_features_seen(estimator, X), unit=unit)
        ledger, recorder = rich_ledger(plan), Trace()
        succeed(run_fit(prepared(estimator, ledger=ledger), X, groups, recorder=recorder))
        assert len(ledger.entries) == 1, f"a fit is charged {len(ledger.entries)} times"
        (charge,) = ledger.entries
        age = datetime.now(UTC) - datetime.fromisoformat(charge.time).astimezone(UTC)
        assert -_RECENT < age < _RECENT, "the charge has another time than the fit"
        costs = {name: getattr(plan, name) for name in ("epsilon", "rho", "delta_failure")}
        # Fields that the audit does not know have their defaults: it is not a ledger of one key.
        expected = LedgerCharge(
            **costs,
            delta=plan.target.delta,
            gaussian=plan.gaussian,
            unit=unit,
            relation=plan.relation,
            label=type(estimator).__name__,
            time=charge.time,
        )
        assert charge == expected, f"the ledger hears {charge} where the plan says {expected}"
        assert not charge.gaussian or all_gaussian(recorder.events), (
            "the ledger hears of Gaussian releases where there are others"
        )


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
    """A pickle contains releases only, and nothing whose size grows with n. It can predict."""
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
    """Fit 500 of the 8,000 rows with the same releases: no length that is shown follows n."""
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
    """Rows outside `bounds` are moved to the border; how far outside they were has no effect, by a
    factor of four and of eight.

    In a box, such rows end up in its corners, so rows in the corners are fitted too. Only messages,
    and the released counts of rows outside behind them, may tell these apart. An error that begins
    with "bounds must be None" says that there are no bounds."""
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
        told = ("messages_", "status_", "_outside", "_earlier_days")
        answers = [released_state(each.estimator, *told) for each in outcomes]
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


# -- privacy loss and noise ------------------------------------------------------------------------


def check_replay(estimator: Any) -> None:
    """Neighbors differ only by noise that is paid for; small data and the empty set too.

    20 rows: all kinds of neighbors, and HTML displays. 400: many rows in each cluster or block. 12
    columns: more than most public defaults assume. 2, 1 and 0 rows: fits that give up. Strangers,
    whose rows come in any number and size, join 20 and 400 rows."""
    for n, d, with_groups in REPLAYED:
        X = check_data(n, n, d)
        assert_none(replay_problems(estimator, X, html=n == 20, strangers=n in (20, 400)))
        if with_groups and accepts_groups(estimator):
            assert_none(replay_problems(estimator, X, groups=check_groups(n), strangers=n == 20))


def replay_problems(estimator: Any, X: Any, **options: Any) -> list[str]:
    """The violations that a replay audit finds; an audit without a pair is one too."""
    result = replay_audit(estimator, X, stop_at_first=True, **options)
    return result.violations or ([] if result.passed else ["all pairs are voided"])


def check_refit(estimator: Any) -> None:
    """A used estimator answers as a fresh one, under replay: nothing of an earlier fit is left, of
    rows of other shapes, or the same, or parameters, or of one that was pickled."""
    X = check_data(40)
    for groups in (None, check_groups(40)) if accepts_groups(estimator) else (None,):
        fresh = record(estimator, X, groups=groups)
        assert_none(fresh.problems)
        units = np.arange(len(X) if groups is None else len(set(groups)))
        for pickled in (False, True):
            used = _used(prepared(estimator), X)
            used = pickle.loads(pickle.dumps(used)) if pickled else used
            replay = Replay(fresh.events, units)
            outcome = run_fit(used, X, groups, recorder=replay)
            # Which equal objects are one object changes a pickle and tells nothing.
            one, other = (each.face() | {"pickle": b""} for each in (fresh.outcome, outcome))
            moved = [entry for entry, ratio in replay.ratios.items() if ratio > 0]
            problems = [*replay.finish(), *different(one, other, "from a fresh fit")]
            problems += [f"{entry}: the statistic is another one" for entry in moved]
            assert_none([f"after {1 + pickled} fits of other rows: {text}" for text in problems])


def _used(estimator: Any, X: np.ndarray) -> Any:
    """An estimator after fits to rows far from `X`: one that is left over moves every sum."""
    rows = 50 + 7 * ndtri(np.random.default_rng(1).random((2 * len(X) + 1, n_features_of(X) + 2)))
    other = {"epsilon": 7.0, "rho": None, "delta": 1e-3, "bounds": 1e4}
    kept = {name: getattr(estimator, name) for name in other.keys() & estimator.get_params()}
    run_fit(estimator.set_params(**{name: other[name] for name in kept}), rows)
    run_fit(estimator.set_params(**kept), rows[: len(X), : n_features_of(X)])
    return estimator


def check_noise_law(estimator: Any) -> None:
    """The noise has the claimed law, is independent, and is never used twice: 30 fits of narrow
    data, for dependence; three fits of 128 columns, where an estimator takes as many; ten fits with
    groups, whose noise scales are other ones."""
    narrow, wide, grouped = NOISE_FITS
    assert_none(noise_audit(estimator, check_data(400), fits=narrow))
    assert_none(noise_audit(estimator, check_data(300, d=_many_columns(estimator)), fits=wide))
    if accepts_groups(estimator):
        assert_none(noise_audit(estimator, check_data(30), groups=check_groups(30), fits=grouped))


def _many_columns(estimator: Any) -> int:
    """A grid, or public numbers for each column, may not take as many as others."""
    try:
        prepared(estimator).privacy_plan(_MANY)
    except ValueError:
        return N_FEATURES
    return _MANY


def check_noise_is_fresh(estimator: Any) -> None:
    """Without random_state, noise is new each time, whatever numpy's global seed."""
    with overheard(), own_streams() as seed:  # the generator is the process's: threads take turns
        first = _drawn_with_global_seed(estimator, seed)
        # Where a fit draws one small number, two may be alike: once in 150 times. Not nine.
        same = all(
            np.array_equal(first, _drawn_with_global_seed(estimator, seed)) for _ in range(8)
        )
    assert not same, "the same noise again and again with random_state=None"


def _drawn_with_global_seed(estimator: Any, seed: Callable[[int], None]) -> np.ndarray:
    """All noise of a fit with a moderate budget, so that there is noise to see."""
    seed(0)  # the global state is what must have no effect
    recorder = Trace()
    moderate = prepared(estimator, random_state=None, epsilon=1.0, rho=None)
    succeed(run_fit(moderate, check_data(30), recorder=recorder))
    return np.concatenate(
        [
            np.ravel(event.output - event.value).astype(float)
            for event in paid(recorder.events)
            if event.kind == "gaussian"
        ]
    )


def check_seeded_noise_is_told(estimator: Any) -> None:
    """A seed is warned of, and told by the report."""
    for seed, source in ((0, "seeded"), (None, "system")):
        outcome = run_fit(prepared(estimator, random_state=seed), check_data(30))
        succeed(outcome)
        warned = any(issubclass(kind, SeededNoiseWarning) for kind, _ in outcome.warnings)
        assert warned == (seed is not None), "SeededNoiseWarning, if and only if there is a seed"
        noise = outcome.estimator.privacy_report_.noise
        assert noise in (source, "altered"), "the report's noise source"  # altered: by a mutant


CHECKS = (
    check_plan_and_report_agree,
    check_charge_is_true,
    check_cost_is_independent_of_data,
    check_ledger_is_charged_before_data,
    check_exhausted_ledger_refuses,
    check_replay,
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
