"""Replay audits of data and parameters drawn at random, for bugs that wait for a trigger.

Such a trigger may be one n or d. Everything follows from a seed, so a violation names the case that
shows it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._checks import assert_none
from sklearn_dp.audit._noise_law import (
    COARSE,
    FALSE_ALARM,
    SHAPED,
    law_tests,
    standardized,
    unlikely,
)
from sklearn_dp.audit._observe import KINDS, accepts_groups, neighboring_pairs, prepared
from sklearn_dp.audit._replay import STORAGES, ReplayResult, record, replay_recording

SMALL = 49  # numbers of rows 0, ..., 48 that as many cases in a row have once each
MOST_COLUMNS = 24  # numbers of columns 1, ..., 24 that as many cases in a row have once each
LARGE = tuple(np.geomspace(SMALL, 5000, 5).tolist())  # ends of ranges, of which each has one case
MOST_ROWS = 2**16 + 2**12  # of the largest case: more than any chunk that rows are read in
PERIOD = SMALL + len(LARGE)  # cases after which all of this is drawn anew

# Of the largest case, which takes as long as all others where a fit is quadratic in the rows.
_FEW_COLUMNS, _FEW_CLUSTERS = 3, 2
_FINE_NUMBERS = "fine numbers of "
_ADDED = tuple(kind for kind in KINDS if not kind.startswith("remove"))
_REMOVED = tuple(kind for kind in KINDS if kind.startswith("remove"))
_SIZES = ("n_clusters", "n_components")
_BLOCKS = ("n_blocks", "n_tuples")  # few: of many blocks of few rows each, a row changes nothing


@dataclass(frozen=True)
class Case:
    """One data set with the parameters of the fit."""

    n: int  # rows
    d: int  # columns
    seed: int  # of everything else

    def rows(self) -> np.ndarray:
        """Clusters, ties, equal rows or distant rows, at a scale between 1e-3 and 1e6."""
        rng = np.random.default_rng([1, self.n, self.d, self.seed])
        scale, shift = 10 ** rng.uniform(-3, 6), rng.choice([0.0, 0.0, 1e3])
        places = rng.uniform(-1, 1, size=(4, self.d))[rng.integers(0, 4, self.n)]
        near = places + 0.1 * ndtri(rng.random((self.n, self.d)))
        kind = rng.integers(0, 6)
        if kind == 0:
            near = np.rint(2 * near)
        elif kind == 1:
            near = np.repeat(near[:1], self.n, axis=0)
        elif kind == 2 and self.n:
            near[rng.integers(self.n)] = 1e5
        return scale * (near + shift)

    def groups(self) -> Any:
        """None in two of three cases; else ints, strings, or objects that have no order."""
        rng = np.random.default_rng([2, self.n, self.d, self.seed])
        kind, numbers = rng.integers(0, 9), rng.integers(0, self.n // 2 + 1, self.n)
        if kind == 0:
            return numbers
        if kind == 1:
            return np.array([f"unit {number}" for number in numbers], dtype="U9")
        if kind == 2:
            mixed = np.empty(self.n, dtype=object)
            mixed[:] = [
                (int(k), f"{k}", ("unit", int(k)), frozenset({int(k)}))[k % 4] for k in numbers
            ]
            return mixed
        return None

    def storage(self) -> str:
        """One of five, equally likely."""
        return STORAGES[self.seed % len(STORAGES)]

    def parameters(self, estimator: Any) -> dict[str, Any]:
        """Budget, delta, bounds, number of clusters or components, of blocks or tuples."""
        rng = np.random.default_rng([3, self.n, self.d, self.seed])
        drawn: dict[str, Any] = {
            "epsilon": float(10 ** rng.uniform(-1, 3)),
            "rho": None,
            "delta": float(10 ** rng.uniform(-9, -2)),
        }
        if rng.random() < 0.25:
            drawn |= {"epsilon": None, "rho": float(10 ** rng.uniform(-3, 2))}
        low = -(10 ** rng.uniform(-2, 6, self.d))
        bounds = (None, float(-low[0]), (float(low[0]), float(-2 * low[0])), (low, -3 * low))
        place = rng.integers(0, 6) % 4
        size = int(rng.integers(1, 7 if self.n <= LARGE[-1] else _FEW_CLUSTERS + 1))
        blocks = int(rng.integers(2, 7))
        known = estimator.get_params(deep=False)
        if "bounds" in known:
            drawn["bounds"] = bounds[place]
        return drawn | {
            name: number
            for names, number in ((_SIZES, size), (_BLOCKS, blocks))
            for name in names
            if name in known
        }


def drawn_cases(count: int = PERIOD, random_state: int = 0) -> Iterator[Case]:
    """Cases in strata. Of 54 in a row, each n from 0 to 48 once, then one in each quarter of the
    numbers up to 5,000, then one beyond 2^16. Each d from 1 to 24 twice in the first 48."""
    rng = np.random.default_rng([7, random_state])
    columns: list[int] = []
    sizes: list[int] = []
    for _ in range(count):
        if not sizes:
            large = np.rint(np.exp(rng.uniform(*np.log([LARGE[:-1], LARGE[1:]]))))
            sizes = [*large.astype(int).tolist(), *rng.permutation(SMALL).tolist()]
            sizes = [int(rng.integers(2**16 + 1, MOST_ROWS)), *sizes]
        n = sizes.pop()
        columns = columns or (1 + rng.permutation(MOST_COLUMNS)).tolist()
        d = columns.pop() if sizes else int(rng.integers(1, _FEW_COLUMNS + 1))
        yield Case(n, d, int(rng.integers(2**31)))


def scale_problems(
    events: list[Event], random_state: int = 0, false_alarm: float = FALSE_ALARM
) -> list[str]:
    """Scales only, of one recording: for a few fits of many different data sets. Each entry has a
    test of its own, and its fine numbers where others are coarse: these are mostly rounding."""
    rng = np.random.default_rng(random_state)
    entries = defaultdict(list)
    for event in events:
        numbers = standardized(event, rng)
        entries[event.entry].append(np.ravel(numbers))
        if event.kind in SHAPED:  # one scale for each number: some may be of many steps
            scale = np.broadcast_to(np.atleast_1d(event.scale), numbers.shape)
            fine = numbers[scale > COARSE]
            if 0 < fine.size < numbers.size:
                entries[_FINE_NUMBERS + event.entry].append(fine)
    parts = {entry: np.concatenate(numbers) for entry, numbers in entries.items()}
    whole = [numbers for entry, numbers in parts.items() if not entry.startswith(_FINE_NUMBERS)]
    tests = law_tests("all of the fit", np.concatenate([np.empty(0), *whole]))
    for entry, numbers in parts.items():
        tests += law_tests(entry, numbers)
    return unlikely(tests, false_alarm)


def drawn_audit(
    estimator: BaseEstimator,
    cases: Iterable[Case] | None = None,
    *,
    pairs: int = 2,
    random_state: int = 0,
    stop_at_first: bool = False,
) -> ReplayResult:
    """Audit fits to drawn data with drawn parameters by replay, and test their noise scales.

    Budget, bounds, and numbers of clusters or components and of blocks or tuples are replaced by
    drawn ones. `cases` are 54 of `drawn_cases` by default, with `pairs` of neighbors each,
    alternately added and removed; beyond 2^16 rows, half as many. The largest case comes last, and
    takes most of the time if a fit is quadratic in the rows.

    What the default 54 cases meet: for certain, a leak at one n up to 48 or at one d up to 24, and
    one at all n from 1,574 to 5,000 or beyond 2^16 (with up to 3 columns and 2 clusters); with a
    probability of 2.6 / n, one at a single n between 49 and 5,000; with 0.12, one that needs a
    certain n and a certain d; with 0.998 and more, one that needs a certain storage, kind of groups
    or bounds. All tests of noise scales together have a false alarm with a probability of 1e-6.
    Noise whose scale is wrong in a single case is found if that fit has some 80 numbers (halved) or
    500 (by 1.25).

    A wrong *sensitivity* can pass although its trigger is met: a replay sees it only if a pair of
    neighbors moves the statistic by more than is claimed. In estimators that release functions of
    *blocks* (`DPKTupleKMeans`, `SampleAndAggregate`) one row
    among several rarely does that. Audit them with many pairs (``replay_audit(estimator, X,
    repeats=50)``), or with an inner estimator that looks for a single row.
    """
    cases = list(drawn_cases(random_state=random_state) if cases is None else cases)
    total = ReplayResult(type(estimator).__name__)
    for case in cases:
        total += _audit_case(estimator, case, pairs, random_state, FALSE_ALARM / len(cases))
        if stop_at_first and total.violations:
            break
    return total


def _audit_case(
    estimator: Any, case: Case, pairs: int, random_state: int, false_alarm: float
) -> ReplayResult:
    """Replays of a few neighbors of one case, and the test of its noise scales."""
    fitted = _with_parameters(estimator, case)
    X, groups = case.rows(), case.groups() if accepts_groups(estimator) else None
    rng = np.random.default_rng([4, case.n, case.d, case.seed])
    pairs, first = (pairs, 0) if case.n <= LARGE[-1] else ((pairs + 1) // 2, case.seed)
    kinds = [rng.choice(_REMOVED if turn % 2 else _ADDED) for turn in range(first, first + pairs)]
    neighbors = list(neighboring_pairs(X, rng, kinds=kinds, groups=groups))
    seed, storage = case.seed % 2**20, case.storage()
    original = record(fitted, X, groups=groups, random_state=seed, storage=storage)
    result = replay_recording(original, neighbors)
    problems = [*result.violations, *scale_problems(original.events, random_state, false_alarm)]
    result.violations = [f"{case}: {text}" for text in problems]
    return result


def _with_parameters(estimator: Any, case: Case) -> Any:
    """The drawn parameters, but for numbers of clusters or blocks that the estimator refuses."""
    drawn = case.parameters(estimator)
    for leave_out in ((), _BLOCKS, (*_SIZES, *_BLOCKS), (*_SIZES, *_BLOCKS, "bounds")):
        kept = {name: value for name, value in drawn.items() if name not in leave_out}
        fitted = prepared(estimator, **kept)
        try:
            fitted.privacy_plan(case.d)
        except ValueError:
            continue
        return fitted
    return prepared(estimator, **{name: drawn[name] for name in ("epsilon", "rho")})


def check_drawn_data(estimator: Any) -> None:
    """Rows, columns, clusters, arrays, bounds, budgets and groups drawn at random, for triggers."""
    assert_none(drawn_audit(estimator, stop_at_first=True).violations)
