"""Audits of recorded noise, which has to follow the law that a release claims.

Every release is turned into numbers that are
independent N(0, 1) *exactly* if the claim holds (:mod:`._laws`). With m numbers, noise too small by
a factor of 1 - h is found when about m h^2 > 20.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, fdtr, fdtrc, ndtr, ndtri
from scipy.stats import kstest
from sklearn.base import BaseEstimator

from .._privacy._trace import Event
from ._laws import law_of
from ._replay import record

_TAILS = (1.75, 2.55, 3.05, 3.55, 4.05)  # a little beyond where noise may have been clamped
_FEWEST = 20  # numbers below which the shape of a law says nothing
_MOST_SORTED = 200_000  # numbers that the test of Kolmogorov and Smirnov sorts
_NEAR = (1, 2, 3, 4, 5, 6, 7, 8)


def law_tests(name: str, numbers: np.ndarray) -> list[tuple[str, float]]:
    """Exact p-values of the sum of squares, which is chi-square, and of the sum, which is N(0, n).

    >>> [round(chance, 3) for _, chance in law_tests("halved", np.full(80, 0.5))]
    [0.0, 1.0, 0.0]
    """
    if not len(numbers):
        return []
    square, total = float(np.sum(np.square(numbers))), float(np.sum(numbers))
    return [
        (f"{name}: noise smaller than claimed", float(chdtr(len(numbers), square))),
        (f"{name}: noise larger than claimed", float(chdtrc(len(numbers), square))),
        (f"{name}: noise has a mean", float(2 * ndtr(-abs(total) / np.sqrt(len(numbers))))),
    ]


def shape_tests(name: str, numbers: np.ndarray) -> Iterator[tuple[str, float]]:
    """Goodness of fit (Kolmogorov and Smirnov, exact) and the numbers beyond some sigmas."""
    n = len(numbers)
    if n < _FEWEST:
        return
    yield f"{name}: noise of another law", float(kstest(numbers[:_MOST_SORTED], "norm").pvalue)
    for limit in _TAILS:
        n_beyond, chance = np.count_nonzero(np.abs(numbers) > limit), 2 * float(ndtr(-limit))
        yield f"{name}: too few beyond {limit} sigma", float(bdtr(n_beyond, n, chance))
        if n_beyond:
            yield f"{name}: too many beyond {limit} sigma", float(bdtrc(n_beyond - 1, n, chance))


def within_release_tests(releases: list[np.ndarray]) -> Iterator[tuple[str, float]]:
    """Dependence inside releases, each in its own shape, and scales by place."""
    tests: dict[str, list[Any]] = {}
    for numbers in releases:
        for what, pair in _partners(numbers):
            tests.setdefault(what, []).append(pair)
    for what, pairs in tests.items():
        first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
        yield from pair_tests(what, first, second)
    yield from _place_tests([np.ravel(numbers) for numbers in releases if np.size(numbers) > 1])


def _partners(numbers: np.ndarray) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Pairs of numbers of one release that a faulty sampler would tie together, disjoint."""
    flat = np.ravel(numbers)
    size = len(flat)
    shifts = {f"of numbers {lag} apart": lag for lag in _NEAR}
    shifts |= {
        "of halves": size // 2,
        "of longer halves": -(-size // 2),
        "of thirds": size // 3,
        "of quarters": size // 4,
    }
    if np.ndim(numbers) > 1:
        shifts["of rows"] = np.shape(numbers)[-1]
    for what, lag in shifts.items():
        if 0 < lag < size:
            first = np.arange(size - lag)
            first = first[first // lag % 2 == 0]
            yield what, (flat[first], flat[first + lag])
    if size > 1:
        yield "of mirror images", (flat[: size // 2], flat[::-1][: size // 2])


def _place_tests(releases: list[np.ndarray]) -> Iterator[tuple[str, float]]:
    """Test whether some places of a release get less noise, by the F law of two halves' squares."""
    if not releases:
        return
    for what, place in (("first", 0), ("last", -1)):
        yield from law_tests(
            f"{what} numbers of releases", np.array([numbers[place] for numbers in releases])
        )
    halves = [(numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]) for numbers in releases]
    turns = [(numbers[::2], numbers[1::2]) for numbers in releases]
    for what, sides in (("halves", halves), ("even and odd places", turns)):
        one, other = (np.concatenate(side) for side in zip(*sides, strict=True))
        ratio = np.mean(np.square(one)) / max(np.mean(np.square(other)), 1e-300)
        yield (
            f"noise within releases: {what} have other scales",
            2 * float(min(fdtr(len(one), len(other), ratio), fdtrc(len(one), len(other), ratio))),
        )


def pair_tests(
    what: str, first: np.ndarray, second: np.ndarray, where: str = "within releases"
) -> Iterator[tuple[str, float]]:
    """Test pairs, by the F law of sums and differences; 45 / c^2 pairs show a correlation c."""
    size = len(first)
    if not size:
        return
    ratio = np.sum(np.square(first + second)) / max(np.sum(np.square(first - second)), 1e-300)
    yield f"noise {where}: repeats {what}", float(fdtrc(size, size, ratio))
    yield f"noise {where}: is taken back {what}", float(fdtr(size, size, ratio))


def between_tests(
    fits: list[list[np.ndarray]], lags: Iterable[int], where: str
) -> Iterator[tuple[str, float]]:
    """Releases some steps apart, in pairs without common members, cut to the same length."""
    for lag in lags:
        pairs = []
        for numbers in fits:
            # Where i is in the first half of its 2 lag places, no release is in two pairs.
            for i in range(len(numbers) - lag):
                if i % (2 * lag) < lag:
                    size = min(len(numbers[i]), len(numbers[i + lag]))
                    pairs.append((numbers[i][:size], numbers[i + lag][:size]))
        if pairs:
            first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
            yield from pair_tests(f"after {lag} releases", first, second, where)


# -- repeats ---------------------------------------------------------------------------------------


_FINE = 2.0**24  # steps: coarser numbers agree too often
_CELL = 2.0**-20  # standardized numbers in the same cell of this width agree
_RUN = 3  # numbers in a row that have to agree
_MOST = 40_000  # numbers that are compared with each other


def repeat_tests(traces: list[list[Event]]) -> Iterator[tuple[str, float]]:
    """Test for three fine numbers in a row that come twice, or are taken back, in these fits."""
    runs = [np.empty((0, _RUN))]
    for events in traces:
        numbers = np.concatenate([np.empty(0), *map(_fine_numbers, events)])
        numbers = numbers[: max(64, _MOST // len(traces))]
        if len(numbers) >= _RUN:
            runs.append(sliding_window_view(numbers, _RUN))
    cells = np.floor(np.concatenate(runs) / _CELL)
    both = np.concatenate([cells, -1 - cells])
    if len(cells) > 1:
        # The later of two numbers is fresh, with a density of at most 0.4 whatever came before.
        chance = 2 * len(cells) ** 2 * (0.4 * _CELL) ** _RUN
        again = len(np.unique(both, axis=0)) < len(both)
        yield "noise is used again", chance if again else 1.0


def _fine_numbers(event: Event) -> np.ndarray:
    """Standardized noise of many steps."""
    if event.kind not in ("gaussian", "inner_gaussian", "share"):
        return np.empty(0)
    noise = np.ravel(np.asarray(event.output - event.value, dtype=np.float64))
    scale = np.ravel(np.broadcast_to(event.scale, np.shape(event.value)))
    return (noise / scale)[scale >= _FINE]


# -- noise law -------------------------------------------------------------------------------------


FALSE_ALARM = 1e-6  # chance that all the tests together blame a correct estimator
_LAGS = range(1, 25)  # releases apart
_FITS = range(1, 7)  # fits apart
COARSE = 2.0  # noise below this many steps says too little about its bits
_BEYOND = 40.0  # an impossible outcome, as a number of sigmas
SHAPED = ("gaussian", "laplace", "inner_gaussian", "inner_laplace", "share")


def noise_audit(
    estimator: BaseEstimator,
    X: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    fits: int = 20,
    random_state: int = 0,
) -> list[str]:
    """Test the noise of many fits against the claimed distributions.

    Parameters
    ----------
    estimator : estimator of this package
        Clones are fitted.
    X : ndarray of shape (n_samples, n_features)
        Many columns give many numbers: with 256, one fit is often enough to test the tails.
    groups : array-like of shape (n_samples,), optional
        The unit of each row.
    fits : int, default=20
        Number of fits, each with fresh noise; their numbers are tested together.
    random_state : int, default=0
        First seed of the fits; the audit is then deterministic.

    Returns
    -------
    problems : list of str
        Each failed test, with its p-value. For a correct estimator the list is empty except with a
        probability of 1e-6.

    Notes
    -----
    Tests, for each plan entry and over all of them: scale, mean, shape (goodness of fit), tails
    beyond 1.75, 2.5, 3, 3.5 and 4 sigma, dependence within a release (halves, mirror images,
    neighbors, rows) and between releases up to 24 apart and fits up to 6 apart, reuse of fine noise
    anywhere, and noise that leans toward the value. With m numbers from an entry, noise too small
    by a factor of 1 - h is found when about m h^2 > 20.

    Not tested: tails beyond 4 sigma, or beyond 3 if fits release fewer than some 9000 numbers
    (tests of this package try the sampler with half a million); a wrong distribution of a single
    entry that releases one number, if the difference is too small for the number of fits; noise
    with too few bits behind it; wrong sensitivities (replay).
    """
    recordings = [
        record(estimator, X, groups=groups, random_state=random_state + i) for i in range(fits)
    ]
    problems = [text for recording in recordings for text in recording.problems]
    return problems + noise_problems([recording.events for recording in recordings], random_state)


def noise_problems(traces: list[list[Event]], random_state: int = 0) -> list[str]:
    """Test the noise of recordings; the seed is for the auditor's own numbers."""
    rng = np.random.default_rng(random_state)
    fits = [[(event, standardized(event, rng)) for event in events] for events in traces]
    tests = [*_entry_tests(fits), *_dependence_tests(fits), *repeat_tests(traces)]
    return unlikely(tests)


def unlikely(tests: list[tuple[str, float]], false_alarm: float = FALSE_ALARM) -> list[str]:
    """The tests that fail: less likely than the false alarm over their number (Bonferroni)."""
    limit = false_alarm / max(len(tests), 1)
    return [f"{text} (p = {chance:.2g})" for text, chance in tests if not chance >= limit]


def _entry_tests(fits: Any) -> Iterator[tuple[str, float]]:
    """Laws of the numbers of each entry, and of all."""
    entries = defaultdict(list)
    for event, numbers in (pair for fit in fits for pair in fit):
        # Noise that clients add is no release, and only their sum is.
        share = "share of " if event.kind == "share" else ""
        entries[share + event.entry].append(np.ravel(numbers))
        entries["all entries"].append(np.ravel(numbers))
    for entry, parts in entries.items():
        numbers = np.concatenate(parts)
        yield from law_tests(entry, numbers)
        yield from shape_tests(entry, numbers)


def _dependence_tests(fits: Any) -> Iterator[tuple[str, float]]:
    """Numbers that should have nothing to do with each other, nor with the sign of statistics."""
    shaped = [pair for fit in fits for pair in fit if pair[0].kind in SHAPED]
    yield from within_release_tests([numbers for _, numbers in shaped])
    noise = np.concatenate([np.empty(0), *(np.ravel(numbers) for _, numbers in shaped)])
    signs = [np.sign(np.ravel(event.value)).astype(np.float64) for event, _ in shaped]
    total = float(noise @ np.concatenate([np.empty(0), *signs]))
    size = sum(int(np.count_nonzero(each)) for each in signs)
    if size:
        yield "noise leans to the value", float(2 * ndtr(-abs(total) / np.sqrt(size)))
    # Noise of so many steps that nearly all of a number is the kernel's bits.
    kinds = ("gaussian", "inner_gaussian")
    fine = [
        [np.ravel(v) for event, v in fit if event.kind in kinds and np.min(event.scale) > COARSE]
        for fit in fits
    ]
    yield from between_tests(fine, _LAGS, "between releases")
    nothing = np.empty(0)
    columns = [list(column) for column in zip_longest(*fine, fillvalue=nothing)]
    yield from between_tests(columns, _FITS, "between fits")


def standardized(event: Event, rng: np.random.Generator) -> np.ndarray:
    """Numbers that are N(0, 1) if the event's noise follows its claim."""
    law = law_of(event)
    low, high = map(np.atleast_1d, law.numbers(event))
    numbers = ndtri(low + rng.random(low.shape) * (high - low))
    if law.folded:
        numbers = numbers * np.where(rng.random(low.shape) < 0.5, -1.0, 1.0)
    return np.clip(numbers, -_BEYOND, _BEYOND)
