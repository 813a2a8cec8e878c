"""How far out a column is clipped, by noisy numbers of rows that are far from its center.

The noise of squares grows with the clip, and what the clip takes from the rows beyond it shrinks.
About a thousand laws say what these may be: ``A exp(-p ((x / start)^g - 1) / g)`` rows are farther
out than x, from power laws (g = 0) over exponential ones (1) to those that end (6), and now and
then some more, that noise hides, fall by a heavy power law of their own. Each law weighs as much as
the numbers are likely under it. The clip is where noise and loss are least together, on average
over the laws, and that average is what the loss is told as.
"""

import math
from typing import NamedTuple

import numpy as np

_BINS, _SPLIT = 11, 4  # octaves; steps of a clip in each
EDGES = 2.0 * 2.0 ** np.arange(_BINS)
"""Lower edges of bins of distances, in spreads; the last bin takes all beyond."""

_POWERS, _SHAPES = (0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0), (1e-9, 0.4, 1.0, 2.5, 6.0)
_ENDING, _FLAT = 2.0, 0.5  # shapes that end: of others there are none with lower powers
# A power; in standard deviations of noise, how many rows fall by it; and how likely that is. A
# public end says that rows may be as far out: there it is as likely as none.
_HEAVY, _FEW, _SELDOM = 0.9, np.array([0.0, 1.0, 4.0]), np.array([1.0, 0.06, 0.06])
_PARTS = 2.0 ** (-np.arange(16) / 2)  # of the most rows that there may be beyond the start
_CLEAR = 4.0  # standard deviations of its noise: rows are seen in a bin
_BEFORE, _AFTER = 1, 2  # bins before the start, which laws agree with, and beyond the last one
_ROUGH = 0.4  # of a number: what a law is off by
_LEAST = 0.3  # rows: fewer are none
_INNER = 0.7  # square of the distance of rows that are not far, in spreads
_MIDDLE = 2.0**0.5  # of a bin, over its edge

# Of the mean that what a clip takes of offsets is told as: between the usual one and that of
# squares, as seldom laws with heavy tails take most.
_ORDER = 1.6


def _laws() -> tuple[np.ndarray, np.ndarray]:
    """Parts of the rows at the start that are farther out, for steps from `_BEFORE` bins before it,
    by each law and by the heavy one."""
    x = 2.0 ** (np.arange(-_SPLIT * _BEFORE, _SPLIT * (_BINS + _AFTER) + 1) / _SPLIT)
    light = [
        np.exp(-np.minimum(p * (x**g - 1) / g, 700.0))
        for g in _SHAPES
        for p in _POWERS
        if g > _ENDING or p > _FLAT
    ]
    return np.array(light), x**-_HEAVY


_LAWS, _FALL = _laws()
_ALL = np.indices((len(_LAWS), len(_PARTS), len(_FEW))).reshape(3, -1)
_NEVER = 1e-9  # of the most likely law: others change no digit that noise leaves


class Reach(NamedTuple):
    """Clips of columns (m,), in spreads, and what they take."""

    clip: np.ndarray
    offsets: np.ndarray  # from the mean distance, on the day with the least clip
    scale: np.ndarray  # from the standard deviation, in parts of it


def reach_of(
    counts: np.ndarray,
    sd: np.ndarray,
    noise: np.ndarray,
    ends: np.ndarray,
    size: np.ndarray,
    before: np.ndarray,
) -> Reach:
    """Clips, by numbers of rows (m, k) of all days with noise of `sd` (m,). Sums of squares have
    noise of so many squares of the clip, no row is farther out than the ends, and `before` are the
    least clips of other days."""
    columns = zip(counts, sd, noise, ends, size, before, strict=True)
    return Reach(*np.array([_of_column(*each) for each in columns]).T)


def _of_column(
    counts: np.ndarray, sd: float, noise: float, end: float, size: float, before: float
) -> tuple[float, float, float]:
    """The clip of a column, and what it takes of offsets and of the standard deviation."""
    clear = np.flatnonzero(counts > _CLEAR * sd)
    start = int(clear[-1]) if len(clear) else 0
    first = max(start - _BEFORE, 0)
    steps = np.arange(_SPLIT * (_BINS + _AFTER - first) + 1)
    edges = EDGES[first] * 2.0 ** (steps / _SPLIT)
    steps += _SPLIT * (_BEFORE - start + first)
    most = float(np.maximum(counts[start : start + 2], 0.0).sum()) + 3 * sd
    octaves = slice(0, _SPLIT * (_BINS - first), _SPLIT)

    def numbers_of(laws: np.ndarray, at: slice) -> np.ndarray:
        """How many rows are beyond some edges by each law."""
        law, part, heavy = laws
        far = _LAWS[:, steps[at]][law] * (most * _PARTS[part])[:, None]
        far += (sd * _FEW[heavy])[:, None] * _FALL[steps[at]]
        far[(far < _LEAST) | (edges[at] >= end)] = 0.0
        return far

    expected = -np.diff(numbers_of(_ALL, octaves), append=0.0)
    variance = sd**2 + np.square(_ROUGH * expected)
    fit = -np.sum(np.square(counts[first:] - expected) / variance + np.log(variance), axis=1) / 2
    # Numbers of rows are about as likely in equal steps of their roots.
    likely = np.where(np.isinf(end), _SELDOM, 1.0)[_ALL[2]] * _PARTS[_ALL[1]] ** 0.5
    weight = np.exp(fit - fit.max()) * likely
    kept = weight > _NEVER * weight.max()
    numbers, weight = numbers_of(_ALL[:, kept], slice(None)), weight[kept] / weight[kept].sum()
    middle = (numbers[:, 1:] + numbers[:, :-1]) / 2
    offsets, squares = (
        np.cumsum((middle * np.diff(edges**order))[:, ::-1], axis=1)[:, ::-1] for order in (1, 2)
    )
    near = np.maximum(counts[:first], 0.0) @ np.square(_MIDDLE * EDGES[:first]) + _INNER * size
    total = near + numbers[:, 0] * edges[0] ** 2 + squares[:, 0]
    parts = 1 - np.sqrt(1 - squares / total[:, None])
    noisy = noise * edges[:-1] ** 2 / 2 * math.sqrt(weight @ total**-2.0)
    best = int(np.argmin(np.hypot(noisy, weight @ parts)))
    least = min(best, max(int(np.searchsorted(edges, before, side="right")) - 1, 0))
    mean = float(weight @ offsets[:, least] ** _ORDER) ** (1 / _ORDER) / size
    return float(edges[best]), mean, float(weight @ parts[:, best])
