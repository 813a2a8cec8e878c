"""Does the noise of recorded releases follow the law that they claim?

Every release is turned into numbers that are independent N(0, 1) *exactly* if the claim holds, by
the randomized probability integral transform: the claimed distribution function on both sides of
the integer that came out, and a uniform number in between. A mistake in the scale, in the shape, in
the mean or in the independence then shows in exact tests: see :mod:`sklearn_dp.audit._noise_law`
for what each of them can see.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, fdtr, fdtrc, ndtr, ndtri
from scipy.stats import kstwo
from sklearn.base import BaseEstimator

from .._costs.budget import PrivacyBudget
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._pure_releases import release_laplace
from .._privacy._sealed import Claim, Sealed
from .._privacy._session import PrivacySession
from .._privacy._trace import Event, Trace, trace
from .._privacy._units import UnitFacts
from ._replay import record
from .mechanisms import law_of

_TAILS = (1.75, 2.55, 3.05, 3.55, 4.05)  # a little beyond where noise may have been clamped
_FEWEST = 20  # numbers below which the shape of a law says nothing
_MOST_SORTED = 200_000  # numbers that the test of Kolmogorov and Smirnov sorts
_NEAR = (1, 2, 3, 4, 5, 6, 7, 8)


def law_tests(name: str, numbers: np.ndarray) -> list[tuple[str, float]]:
    """Sum of squares, against chi-square, and sum: what is tested, and the chance.

    Exact p-values: under the claim the sum of squares of the numbers (n,), which are those of
    `name`, is chi-square with n degrees of freedom, and the sum is N(0, n).

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
    some = np.sort(ndtr(numbers[:_MOST_SORTED]))
    steps = np.arange(len(some) + 1) / len(some)
    distance = max(np.max(steps[1:] - some), np.max(some - steps[:-1]))
    yield f"{name}: noise of another law", float(kstwo.sf(distance, len(some)))
    for limit in _TAILS:
        n_beyond, chance = np.count_nonzero(np.abs(numbers) > limit), 2 * float(ndtr(-limit))
        yield f"{name}: too few beyond {limit} sigma", float(bdtr(n_beyond, n, chance))
        if n_beyond:
            yield f"{name}: too many beyond {limit} sigma", float(bdtrc(n_beyond - 1, n, chance))


def within_release_tests(releases: list[np.ndarray]) -> Iterator[tuple[str, float]]:
    """Dependence inside releases: halves, mirror images, neighbors, rows; scales by place. The
    standard numbers of each release come in its own shape."""
    tests: dict[str, list[Any]] = {}
    for numbers in releases:
        for what, pair in _partners(numbers):
            tests.setdefault(what, []).append(pair)
    for what, pairs in tests.items():
        first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
        yield from pair_tests(what, first, second)
    yield from _place_tests([np.ravel(numbers) for numbers in releases if np.size(numbers) > 1])


def _partners(numbers: np.ndarray) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Pairs of numbers of one release that a faulty sampler would tie together, disjoint within a
    kind. The release has its own shape: rows are known by the last axis."""
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
    """Test whether some places of a release get less noise: the ratio of two halves' squares
    follows an F law."""
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
    """Test pairs: of independent N(0, 1), sums and differences have a ratio of squares that follows
    F. `what` says how the partners were chosen. A correlation c makes the ratio about (1 + c) / (1
    - c), seen from about 45 / c^2 pairs on."""
    size = len(first)
    if not size:
        return
    ratio = np.sum(np.square(first + second)) / max(np.sum(np.square(first - second)), 1e-300)
    yield f"noise {where}: repeats {what}", float(fdtrc(size, size, ratio))
    yield f"noise {where}: is taken back {what}", float(fdtr(size, size, ratio))


def between_tests(
    fits: list[list[np.ndarray]], lags: Iterable[int], where: str
) -> Iterator[tuple[str, float]]:
    """Releases some steps apart, in pairs without common members, cut to the same length. `fits`
    are sequences of releases, as standard numbers."""
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


def lean_test(numbers: np.ndarray, values: np.ndarray) -> Iterator[tuple[str, float]]:
    """Test whether noise knows the sign of what it is added to, which no test of its law alone
    sees."""
    signs = np.sign(values)
    size = int(np.count_nonzero(signs))
    if not size:
        return
    total = float(np.sum(signs * numbers))
    yield "noise leans to the value", float(2 * ndtr(-abs(total) / np.sqrt(size)))


# -- repeats ---------------------------------------------------------------------------------------


_FINE = 2.0**14  # steps; coarser numbers agree too often
_LONGEST = 8  # numbers of a run
_MOST_PARTNERS = 100  # of a place: noise of few values agrees everywhere, and some runs are enough
_MOST = 40_000  # numbers that are compared with each other


def repeat_tests(traces: list[list[Event]]) -> Iterator[tuple[str, float]]:
    """Test for three or four fine numbers in a row that come twice in all these fits, if any are
    fine."""
    numbers, radii, fits = _fine_numbers(traces)
    if len(numbers) < 2:
        return
    chance = min(_longest_run(numbers, radii, fits, sign) for sign in (1, -1))
    # Pairs of places, lengths of a run, two signs.
    yield "noise is used again", min(1.0, chance * len(numbers) ** 2 * _LONGEST)


def _fine_numbers(traces: list[list[Event]]) -> tuple[np.ndarray, ...]:
    """Return z of fine noise (2^14 steps or more), the radius of its rounding, and its fit: at most
    40,000."""
    most = max(64, _MOST // max(len(traces), 1))
    numbers, radii, fits = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=int)]
    for number, events in enumerate(traces):
        budget = most
        for event in events:
            if event.kind not in ("gaussian", "inner_gaussian", "share"):
                continue
            noise = np.ravel(np.asarray(event.output - event.value, dtype=np.float64))
            scale = np.ravel(np.broadcast_to(event.scale, np.shape(event.value)))
            noise, scale = (side[scale >= _FINE][:budget] for side in (noise, scale))
            numbers.append(noise / scale)
            radii.append(0.5 / scale)
            fits.append(np.full(len(noise), number))
            budget -= len(noise)
    return tuple(map(np.concatenate, (numbers, radii, fits)))


def _longest_run(numbers: np.ndarray, radii: np.ndarray, fits: np.ndarray, sign: int) -> float:
    """Smallest bound of the chance that a given pair of places begins a run as good as this.

    `radii` are half a step of the rounding of the standardized noise, in the same unit. Runs do not
    cross from one of the `fits` into the next. The product of the chances of agreement along the
    best run; 1 where nothing agrees.
    """
    first, second = _agreeing(numbers, radii, sign)
    chance, best = np.ones(len(first)), 1.0
    for step in range(_LONGEST):
        a, b = first + step, second + step
        here = (b < len(numbers)) & (a < len(numbers))
        a, b = a[here], b[here]
        reach = radii[a] + radii[b]
        same = (fits[a] == fits[first[here]]) & (fits[b] == fits[second[here]])
        same &= np.abs(numbers[a] - sign * numbers[b]) <= reach
        # Rounded numbers agree only if ideal ones do within twice the reach; the later of the two
        # is fresh, with a density of at most 0.4 whatever came before.
        chance = (chance[here] * np.minimum(1.0, 1.6 * reach))[same]
        first, second = first[here][same], second[here][same]
        if not len(first):
            break
        best = min(best, float(chance.min()))
    return best


def _agreeing(numbers: np.ndarray, radii: np.ndarray, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places i < j with ``abs(z_i - sign z_j)`` within twice the largest radius. A sign of
    -1 finds noise that is taken back. By sorting, in O(n log n): all pairs would be 10^9. At most
    100 partners of each place."""
    order = np.argsort(numbers)
    ranked, reach = numbers[order], 2 * float(radii.max())
    low = np.searchsorted(ranked, sign * numbers - reach)
    high = np.searchsorted(ranked, sign * numbers + reach, side="right")
    sizes = np.minimum(high - low, _MOST_PARTNERS)
    second = np.repeat(np.arange(len(numbers)), sizes)
    inside = np.arange(len(second)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = order[np.repeat(low, sizes) + inside]
    keep = first < second
    return first[keep], second[keep]


# -- noise law -------------------------------------------------------------------------------------


FALSE_ALARM = 1e-6
"""Chance that all the tests together blame a correct estimator."""

_LAGS = range(1, 25)  # releases apart
_FITS = range(1, 7)  # fits apart
_COARSE = 2.0  # noise below this many steps says too little about its bits
_BEYOND = 40.0  # an impossible outcome, as a number of sigmas
_FINE_NUMBERS = "fine numbers of "
_SHAPED = ("gaussian", "laplace", "inner_gaussian", "inner_laplace", "share")


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
    anywhere, and noise that leans toward the value. The module ``sklearn_dp.audit._noise_law``
    has a table of how many numbers each deficit needs; with m numbers from an entry, noise too
    small by a factor of 1 - h is found when about m h^2 > 20.

    Not tested: tails beyond 4 sigma, or beyond 3 if fits release fewer than some 9000 numbers
    (:func:`kernel_problems` tests the kernel's own sampler with more of them); a wrong distribution
    of a single entry that releases one number, if the difference is too small for the number of
    fits; noise with too few bits behind it (``tests/entropy.py``); wrong sensitivities (replay).
    """
    recordings = [
        record(estimator, X, groups=groups, random_state=random_state + i) for i in range(fits)
    ]
    problems = [text for recording in recordings for text in recording.problems]
    return problems + noise_problems([recording.events for recording in recordings], random_state)


def noise_problems(traces: list[list[Event]], random_state: int = 0) -> list[str]:
    """Test the noise of recordings; the seed is for the auditor's own numbers."""
    rng = np.random.default_rng(random_state)
    fits = [[(event, _standardized(event, rng)) for event in events] for events in traces]
    tests = [*_entry_tests(fits), *_dependence_tests(fits), *repeat_tests(traces)]
    return _unlikely(tests)


def scale_problems(
    events: list[Event], random_state: int = 0, false_alarm: float = FALSE_ALARM
) -> list[str]:
    """Scales only, of one recording: for a few fits of many different data sets.

    The seed is for the auditor's own uniform numbers.

    All tests of the recording together have a false alarm with the given probability. At 1e-6 over
    54 recordings, one with m numbers is found when its scales are all too small by 1 - h with
    m h^2 > 20, and so is a single entry with m numbers. Noise of less than a step is mostly
    rounding, which the auditor fills up with random numbers: eleven fine numbers without any noise
    were hidden by three coarse ones, and 44 by four. So each entry has a test of its own, and so
    have its fine numbers where others are coarse.
    """
    rng = np.random.default_rng(random_state)
    entries = defaultdict(list)
    for event in events:
        numbers = _standardized(event, rng)
        entries[event.entry].append(np.ravel(numbers))
        if event.kind in _SHAPED:  # one scale for each number: some may be of many steps
            scale = np.broadcast_to(np.atleast_1d(event.scale), numbers.shape)
            fine = numbers[scale > _COARSE]
            if 0 < fine.size < numbers.size:
                entries[_FINE_NUMBERS + event.entry].append(fine)
    parts = {entry: np.concatenate(numbers) for entry, numbers in entries.items()}
    whole = [numbers for entry, numbers in parts.items() if not entry.startswith(_FINE_NUMBERS)]
    tests = law_tests("all of the fit", np.concatenate([np.empty(0), *whole]))
    for entry, numbers in parts.items():
        tests += law_tests(entry, numbers)
    return _unlikely(tests, false_alarm)


def kernel_problems(random_state: None | int = 0, *, size: Any = 450_000) -> list[str]:
    """Test a bare session: `size` numbers of Gaussian noise, for the tails beyond 4 sigma, a
    quarter of Laplace."""
    plan = PrivacyPlan(
        PrivacyBudget(rho=8.0, delta=0.5),
        (
            PlanEntry("gaussian", Mechanism.SEVERAL, 4.0, uses=None),
            PlanEntry("laplace", Mechanism.LAPLACE, 4.0, uses=None),
        ),
    )
    shape, claim = (size // 1000, 250), Claim(2.0**20, l1=2.0**20)
    with trace(Trace()) as recorder:
        session = PrivacySession(plan, random_state=random_state)
        for _ in range(4):
            zeros = np.zeros(shape, np.int64), np.zeros((shape[0], 62), np.int64)
            of_both = (Sealed(each, claim, UnitFacts(), "zeros") for each in zeros)
            session.release("gaussian", next(of_both), rho=0.5)
            release_laplace(session, "laplace", next(of_both), epsilon=0.5)
    return noise_problems([recorder.events])


def _unlikely(tests: list[tuple[str, float]], false_alarm: float = FALSE_ALARM) -> list[str]:
    """The tests that fail: less likely than the false alarm over their number (Bonferroni). A
    chance that is no number is a failure too."""
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
    """Numbers that should have nothing to do with each other, nor with the sign of the
    statistic."""
    shaped = [pair for fit in fits for pair in fit if pair[0].kind in _SHAPED]
    yield from within_release_tests([numbers for _, numbers in shaped])
    yield from lean_test(
        *(
            np.concatenate([np.empty(0), *side])
            for side in (
                [np.ravel(numbers) for _, numbers in shaped],
                [np.ravel(event.value).astype(np.float64) for event, _ in shaped],
            )
        )
    )
    # Noise of so many steps that nearly all of a number is the kernel's bits.
    kinds = ("gaussian", "inner_gaussian")
    fine = [
        [np.ravel(v) for event, v in fit if event.kind in kinds and np.min(event.scale) > _COARSE]
        for fit in fits
    ]
    yield from between_tests(fine, _LAGS, "between releases")
    nothing = np.empty(0)
    columns = [list(column) for column in zip_longest(*fine, fillvalue=nothing)]
    yield from between_tests(columns, _FITS, "between fits")


def _standardized(event: Event, rng: np.random.Generator) -> np.ndarray:
    """Numbers that are N(0, 1) if the event's noise follows its claim."""
    law = law_of(event)
    low, high = map(np.atleast_1d, law.numbers(event))
    numbers = ndtri(low + rng.random(low.shape) * (high - low))
    if law.folded:
        numbers = numbers * np.where(rng.random(low.shape) < 0.5, -1.0, 1.0)
    return np.clip(numbers, -_BEYOND, _BEYOND)
