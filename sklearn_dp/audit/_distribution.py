"""Tests of numbers that are independent N(0, 1) if the noise follows its claim.

Each test yields what it would complain of and an exact p-value, or a bound of it, so whoever runs
m of them at the level 1e-6 / m blames correct noise with a probability of at most 1e-6 in all.

What they catch, at about 1e-9 for a test (a thousand tests):

======================================  =========================================================
deficit                                 numbers needed
======================================  =========================================================
scale too small by a factor 1 - h       20 / h^2 (halved: 80; by 1.25: 500)
a coin flip of +-sigma                  190
uniform, of the same variance           250 (nothing beyond 1.75 sigma, where 8% should be)
clamped at 2.5, 3, 3.5, 4 sigma         1700, 9100, 45000, 410000
a mean of m sigma                       38 / m^2
halves equal, antithetic, mirrored      40 (a correlation c of partners: 45 / c^2 pairs)
leans to the sign of the value          60
======================================  =========================================================
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, fdtr, fdtrc, ndtr
from scipy.stats import kstwo

__all__ = [
    "between_tests",
    "law_tests",
    "lean_test",
    "pair_tests",
    "shape_tests",
    "within_release_tests",
]

_TAILS = (1.75, 2.55, 3.05, 3.55, 4.05)  # a little beyond where noise may have been clamped
_FEWEST = 20  # numbers below which the shape of a law says nothing
_MOST = 200_000  # numbers that the test of Kolmogorov and Smirnov sorts
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
    some = np.sort(ndtr(numbers[:_MOST]))
    steps = np.arange(len(some) + 1) / len(some)
    distance = max(np.max(steps[1:] - some), np.max(some - steps[:-1]))
    yield f"{name}: noise of another law", float(kstwo.sf(distance, len(some)))
    for limit in _TAILS:
        found, chance = np.count_nonzero(np.abs(numbers) > limit), 2 * float(ndtr(-limit))
        yield f"{name}: too few beyond {limit} sigma", float(bdtr(found, n, chance))
        if found:
            yield f"{name}: too many beyond {limit} sigma", float(bdtrc(found - 1, n, chance))


def within_release_tests(releases: list[np.ndarray]) -> Iterator[tuple[str, float]]:
    """Dependence inside releases: halves, mirror images, neighbors, rows; scales by place.

    The standard numbers of each release come in its own shape.
    """
    found: dict[str, list[Any]] = {}
    for numbers in releases:
        for what, pair in _partners(numbers):
            found.setdefault(what, []).append(pair)
    for what, pairs in found.items():
        first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
        yield from pair_tests(what, first, second)
    yield from _place_tests([np.ravel(numbers) for numbers in releases if np.size(numbers) > 1])


def _partners(numbers: np.ndarray) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Pairs of numbers of one release that a faulty sampler would tie together.

    The release has its own shape: rows are known by the last axis. No number is in two pairs of the
    same kind, so under the claim all pairs are independent.
    """
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
    """Whether some places of a release get less noise than others.

    The sum of squares of one half over that of the other follows an F law; too small and too large
    are both wrong, hence twice the smaller tail.
    """
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
    """Of independent N(0, 1), sums and differences have a ratio of squares that follows F.

    `what` says how the partners were chosen. Equal partners make the ratio infinite, opposite ones
    make it zero. With a correlation c the ratio is about (1 + c) / (1 - c), seen from about 45 /
    c^2 pairs on.
    """
    size = len(first)
    if not size:
        return
    ratio = np.sum(np.square(first + second)) / max(np.sum(np.square(first - second)), 1e-300)
    yield f"noise {where}: repeats {what}", float(fdtrc(size, size, ratio))
    yield f"noise {where}: is taken back {what}", float(fdtr(size, size, ratio))


def between_tests(
    fits: list[list[np.ndarray]], lags: Iterable[int], where: str
) -> Iterator[tuple[str, float]]:
    """Releases some steps apart, in pairs without common members, cut to the same length.

    `fits` are sequences of releases, as standard numbers.
    """
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
    """Whether noise knows the sign of what it is added to.

    Noise that leans toward its value (or away from it) has the right variance, so no test of its
    law alone sees it. Under the claim, signs of values are independent of the noise.
    """
    signs = np.sign(values)
    size = int(np.count_nonzero(signs))
    if not size:
        return
    total = float(np.sum(signs * numbers))
    yield "noise leans to the value", float(2 * ndtr(-abs(total) / np.sqrt(size)))
