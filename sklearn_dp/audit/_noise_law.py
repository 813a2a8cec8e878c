"""Does the noise of recorded releases follow the law that they claim?

Every release is turned into numbers that are independent N(0, 1) *exactly* if the claim holds, by
the randomised probability integral transform: the claimed distribution function on both sides of
the integer that came out, and a uniform number in between. A mistake in the scale, in the mean or
in the independence then shows in three kinds of exact test.
"""

from collections import defaultdict

import numpy as np
from scipy.special import chdtr, chdtrc, fdtr, fdtrc, ndtr, ndtri

from ._replay import record
from .laws import law_of

__all__ = ["FALSE_ALARM", "noise_audit", "noise_problems"]

FALSE_ALARM = 1e-6
"""Chance that all the tests together blame a correct estimator."""

_LAGS = (1, 2, 3, 4)
_COARSE = 2.0  # noise below this many steps says too little about its bits


def noise_audit(estimator, X, *, groups=None, fits=20, random_state=0):
    """Test the noise of many fits against the claimed scales.

    Parameters
    ----------
    estimator : estimator of this package
    X : ndarray of shape (n_samples, n_features)
    groups : array-like of shape (n_samples,), optional
    fits : int, default=20
    random_state : int, default=0
        First seed of the fits.

    Returns
    -------
    problems : list of str
        Each test that fails, with its p-value. A correct estimator yields an empty list but for a
        probability of 1e-6. With m numbers from a release, noise too small by a factor of 1 - h
        is found when about m h^2 > 20; 100 numbers find noise that is halved.
    """
    recordings = [record(estimator, X, groups=groups, random_state=random_state + i)
                  for i in range(fits)]
    found = [text for recording in recordings for text in recording.problems]
    return found + noise_problems([recording.events for recording in recordings], random_state)


def noise_problems(tapes, random_state=0):
    """The same for recordings that are there already.

    Parameters
    ----------
    tapes : list of list of Event
    random_state : int, default=0
        For the auditor's own uniform numbers.

    Returns
    -------
    problems : list of str
    """
    rng = np.random.default_rng(random_state)
    normals, repeats = defaultdict(list), defaultdict(list)
    for events in tapes:
        standard = [(event, _standardised(event, rng)) for event in events]
        for event, numbers in standard:
            # Noise that clients add is no release, and only their sum is.
            share = "share of " if event.kind == "share" else ""
            normals[share + event.entry].append(numbers)
        for lag in _LAGS:
            repeats[lag] += _pairs([z for event, z in standard if _is_fine(event)], lag)
    tests = [test for entry, parts in normals.items()
             for test in _law_tests(entry, np.concatenate(parts))]
    tests += [test for lag, pairs in repeats.items() for test in _independence_tests(lag, pairs)]
    limit = FALSE_ALARM / max(len(tests), 1)
    return [f"{text} (p = {chance:.2g})" for text, chance in tests if chance < limit]


# -- tests -----------------------------------------------------------------------------------------


def _law_tests(entry, numbers):
    """Sum of squares, against chi-square, and sum."""
    if not len(numbers):
        return []
    square, total = float(np.sum(np.square(numbers))), float(np.sum(numbers))
    return [(f"{entry}: noise smaller than claimed", chdtr(len(numbers), square)),
            (f"{entry}: noise larger than claimed", chdtrc(len(numbers), square)),
            (f"{entry}: noise has a mean", 2 * ndtr(-abs(total) / np.sqrt(len(numbers))))]


def _pairs(numbers, lag):
    """Disjoint pairs of releases `lag` apart, cut to the same length."""
    starts = [i for i in range(len(numbers) - lag) if i % (2 * lag) < lag]
    return [(a[:size], b[:size]) for a, b in ((numbers[i], numbers[i + lag]) for i in starts)
            for size in [min(len(a), len(b))]]


def _independence_tests(lag, pairs):
    """Of independent N(0, 1), sums and differences have a ratio of squares that follows F."""
    if not pairs:
        return []
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    ratio = np.sum(np.square(first + second)) / max(np.sum(np.square(first - second)), 1e-300)
    size = len(first)
    return [(f"noise repeats after {lag} releases", fdtrc(size, size, ratio)),
            (f"noise is taken back after {lag} releases", fdtr(size, size, ratio))]


def _is_fine(event):
    return event.kind == "gaussian" and np.min(event.scale) > _COARSE


# -- transforms ------------------------------------------------------------------------------------


def _standardised(event, rng):
    """Numbers that are N(0, 1) if the event's noise follows its claim."""
    low, high = law_of(event).numbers(event)
    low, high = np.ravel(low), np.ravel(high)
    return ndtri(low + rng.random(low.shape) * (high - low))
