"""Does the noise of recorded releases follow the law that they claim?

Every release is turned into numbers that are independent N(0, 1) *exactly* if the claim holds, by
the randomised probability integral transform: the claimed distribution function on both sides of
the integer that came out, and a uniform number in between. A mistake in the scale, in the mean or
in the independence then shows in three kinds of exact test.
"""

from collections import defaultdict

import numpy as np
from scipy.special import betaincc, chdtr, chdtrc, fdtr, fdtrc, ndtr, ndtri

from ._replay import record

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
    groups : ndarray of shape (n_samples,), optional
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
    low, high = _TRANSFORMS.get(event.kind, _unknown)(event)
    low, high = np.ravel(low), np.ravel(high)
    return ndtri(low + rng.random(low.shape) * (high - low))


def _unknown(event):
    return np.empty(0), np.empty(0)


def _around(noise, scale, cdf):
    """Claimed distribution function below and above the rounding of ideal noise."""
    return cdf((noise - 0.5) / scale), cdf((noise + 0.5) / scale)


def _laplace_cdf(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _gaussian(event):
    # A sum may hold more shares of the noise than are needed.
    scale = np.asarray(event.scale) * np.sqrt(event.public.get("shares", 1.0))
    return _around(np.asarray(event.output - event.value, dtype=np.float64), scale, ndtr)


def _laplace(event):
    return _around(np.asarray(event.output - event.value, dtype=np.float64), event.scale,
                   _laplace_cdf)


def _published(event):
    """Occupied cells: the noisy count where it was published, else only that it is below `low`.

    A count below `low` may not be published: its chance is zero.
    """
    codes, counts = event.value
    cells, values = event.output
    place = np.searchsorted(cells, codes)
    seen = np.isin(codes, cells)
    noise = np.where(seen, values[np.minimum(place, max(len(cells) - 1, 0))] - counts
                     if len(cells) else 0, 0).astype(np.float64)
    low, high = _around(np.where(noise + counts < event.public["low"], -np.inf, noise),
                        event.scale, ndtr)
    hidden = ndtr((event.public["low"] - counts - 0.5) / event.scale)
    return np.where(seen, low, 0.0), np.where(seen, high, hidden)


def _sparse(event):
    """Occupied cells one by one; the number of empty ones, and the values of these."""
    low, high = _published(event)
    cells, values = event.output
    empty = ~np.isin(cells, event.value[0])
    chance = ndtr(-(event.public["low"] - 0.5) / event.scale)
    size, found = event.public["n_candidates"] - len(event.value[0]), int(empty.sum())
    # Given that an empty cell is published, in the upper tail: 1 - P[noise > v] / P[published].
    tail = [1 - ndtr(-(values[empty] + side) / event.scale) / chance for side in (-0.5, 0.5)]
    number = [_binomial_cdf(k, size, chance) for k in (found - 1, found)]
    return (np.concatenate([low, number[:1], np.maximum(tail[0], 0.0)]),
            np.concatenate([high, number[1:], tail[1]]))


def _binomial_cdf(k, n, p):
    """P[at most k of n]; n may be 2^50."""
    if 0 <= k < n:
        return betaincc(k + 1.0, float(n - k), p)
    return float(k >= n)


def _choice(event):
    """Exponential mechanism; the sparse vector technique has no closed form and is left out."""
    if "threshold" in event.public:
        return _unknown(event)
    scores = np.asarray(event.value, dtype=np.float64)
    weights = np.exp((scores - scores.max()) * event.scale)
    above = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return above[event.output], above[event.output + 1]


def _kept(chance, keep):
    """Independent decisions: the likely one in the middle of the normal law, the other in a tail.

    Less noise than claimed makes likely decisions likelier, and the sum of squares smaller.
    """
    likely = np.maximum(chance, 1 - chance)
    usual = keep == (chance >= 0.5)
    side = 1 - 2 * (np.arange(len(likely)) % 2)
    low, high = np.where(usual, 0.0, likely), np.where(usual, likely, 1.0)
    return (1 + side * low) / 2, (1 + side * high) / 2


def _lead(event):
    """Told, and then it is the best candidate, if its lead and noise reach the threshold."""
    best, second = np.sort(event.value)[:-3:-1]
    chance = 1 - _laplace_cdf((event.public["threshold"] - (best - second) - 0.5) / event.scale)
    told = event.output >= 0
    possible = float(not told or event.output == event.value.argmax())
    low, high = _kept(np.array([chance]), np.array([told]))
    return low * possible, high * possible


def _filter(event):
    level = np.ceil(event.public["threshold"]) - event.value - 0.5
    return _kept(ndtr(-level / event.scale), event.output)


def _bernoulli(event):
    return _kept(event.value, event.output)


_TRANSFORMS = {
    "gaussian": _gaussian, "share": _gaussian, "laplace": _laplace, "stability": _published,
    "sparse": _sparse,
    "choice": _choice, "lead": _lead, "filter": _filter, "bernoulli": _bernoulli,
    "inner_laplace": _laplace, "inner_gaussian": _gaussian, "inner_choice": _choice,
}  # fmt: skip
