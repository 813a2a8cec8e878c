"""Private quantiles of columns, of any number and at any level, from a few Gaussian releases.

Released are noisy *ranks*: for each column, how many units are below each edge of 1,023 bins. Every
quantile is then read off, with an interval (Woodruff's: the values at the rank, less and plus what
noise and sampling may move it by).

**Noise.** Ranks are released through a root of sums (`sklearn_dp._queries.ranks`): 3.3 times the
noise of a count, where noise on the bins would add up to 32 times. Pure differential privacy has
Laplace noise on bins and blocks of them, which comes to 8.6 times that of a count in the mean.

**Bins.** A first release has coarse bins: equal ones of the public bounds, or else of a geometric
grid of both signs. The next two each divide the part that holds the quantiles, by ranks that are
released and by their noise: whole years in a box of a billion are told apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

from ..._costs.plan import PlanEntry
from ..._costs.rounding import sum_down
from ..._privacy._domain import Domain
from ..._privacy._pure_releases import release_laplace
from ..._privacy._session import PrivacySession
from ..._queries.ranks import BLOCK, ColumnBlocks, ColumnRanks, prefix_noise, prefix_of_blocks
from ..._queries.table_rows import TableRows

_ZOOM, _RANKS = "coarse ranks", "ranks"
_N_ZOOMS = 2
_ZOOM_SHARE = 0.2  # of both
_PURE_ZOOM = 0.125  # of epsilon, for each where all noise has Laplace's law
_BINS = 1024
_OCTAVE = 4  # bins of the geometric grid, from 2^-63.75 to 2^63.75
_MARGIN = 4.0  # standard deviations of a coarse rank that are kept about the quantiles
_NIL = 2.0**-50  # without bounds: magnitudes that are not told from 0
_LEVEL = float(norm.ppf(0.975))
_WORDS = "root of the features: a unit adds to each column at most one column of the root of sums"


@dataclass(frozen=True)
class Quantiles:
    """Released quantiles of columns."""

    values: np.ndarray  # (n_levels, d)
    # As estimates of a population: noise, sampling, width of bins. Infinite: no end of an interval.
    errors: np.ndarray
    rank_errors: np.ndarray  # standard deviation of the noise in the share of units below a value
    resolution: np.ndarray  # (d,), width of the bins
    at_bound: np.ndarray  # (n_levels, d): at a bound other than 0, so that rows may lie beyond it
    hidden: np.ndarray  # (n_levels, d): noise hid the part of the column to divide
    size: float  # released number of units
    size_sd: float
    too_few: float  # so many times the units would be enough to see the quantiles


@dataclass(frozen=True)
class _Ranks:
    """Released numbers of units below edges, in one round."""

    edges: np.ndarray  # (d, 1023), increasing
    below: np.ndarray  # (d, 1024), increasing: units below each edge, and at the end all of them
    size: float
    sigma: float  # standard deviation of the noise of a number
    pure: bool

    def sd(self, level: float) -> float:
        """Largest standard deviation of a rank less `level` times the number of units."""
        return self.sigma * _rank_noise(level, len(self.edges), self.pure)

    def sampling(self, level: float) -> float:
        """How far sampling moves a rank at the most, at 95%."""
        # Weights are at most 1, so their squares sum to no more than they do: the error of a share
        # of weighted units is at most this.
        return _LEVEL * math.sqrt(self.size * level * (1 - level))

    def bins(self, column: int, rank: float, side: Literal["left", "right"] = "left") -> int:
        """The bin in which a column reaches a rank ("left"), or exceeds it ("right")."""
        return min(int(np.searchsorted(self.below[column], rank, side)), _BINS - 1)

    def value(self, column: int, rank: float) -> float:
        """The value at a rank, within its bin in proportion; an edge if it is beyond all."""
        edges, below, place = self.edges[column], self.below[column], self.bins(column, rank)
        if place in (0, _BINS - 1):
            return float(edges[0 if place == 0 else -1])
        part = (rank - below[place - 1]) / (below[place] - below[place - 1])
        return float(edges[place - 1] + part * (edges[place] - edges[place - 1]))


def quantile_entries(rho: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_quantiles`, of sum at most rho."""
    zoom = _ZOOM_SHARE * rho
    ranks = sum_down([rho, -zoom])
    return (
        PlanEntry.gaussian(_ZOOM, zoom, _WORDS, uses=_N_ZOOMS),
        PlanEntry.gaussian(_RANKS, ranks, _WORDS),
    )


def pure_entries(epsilon: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_quantiles` without a delta."""
    zoom = _PURE_ZOOM * epsilon
    shares = {f"{_ZOOM} {i + 1}": zoom for i in range(_N_ZOOMS)}
    shares[_RANKS] = sum_down([epsilon, *(-share for share in shares.values())])
    words = "twice the features: a unit adds to each column one bin and one block"
    return tuple(PlanEntry.of_epsilon(name, share, words) for name, share in shares.items())


def fit_quantiles(
    session: PrivacySession, table: TableRows, levels: Sequence[float], domain: Domain | None
) -> Quantiles:
    """Release quantiles of the columns of a table at some levels in (0, 1)."""
    low, high = _ends(domain, table.n_features)
    edges, spread = _first_edges(domain, low, high), np.zeros(table.n_features)
    for i in range(_N_ZOOMS):
        coarse = _release(session, _ZOOM, table, edges, (low, high), i)
        spread = np.maximum(spread, _least_spread(coarse, levels))
        edges = _between(*_region(coarse, levels, domain is not None))
    ranks = _release(session, _RANKS, table, edges, (low, high))
    estimates = np.array(
        [[_read(ranks, j, q, low[j], high[j]) for j in range(table.n_features)] for q in levels]
    )
    # An answer of a few bins that are wide beside it, and beside what else there is in the column
    # (that of many zeros may be 0, with others far away): no round has seen it.
    nil = _NIL if domain is None else (high - low) / 2**10
    values = np.clip(estimates[..., 0], low, high)
    least = np.maximum(np.abs(values).max(axis=0), nil)
    scale = np.maximum.reduce([least, spread, _least_spread(ranks, levels)])
    resolution = (edges[:, -1] - edges[:, 0]) / (_BINS - 2)
    # Within bounds coarse bins are of use, too; without any, the columns have to be found.
    needed = coarse if domain is None else ranks
    return Quantiles(
        values,
        estimates[..., 1],
        np.array([ranks.sd(q) for q in levels]) / max(ranks.size, 1.0),
        resolution,
        (low < high)
        & ((low != 0) & (values <= low + resolution) | (high != 0) & (values >= high - resolution)),
        (estimates[..., 2] > 0) | (estimates[..., 3] > 0) & (estimates[..., 1] > scale / 10),
        ranks.size,
        ranks.sigma * float(np.linalg.norm(_decode(ranks.pure)[-1])) / math.sqrt(table.n_features),
        # Three standard deviations of a rank, relative to the units that lie beyond it.
        max(3 * needed.sd(q) / (min(q, 1 - q) * max(ranks.size, 1.0)) for q in levels),
    )


def _ends(domain: Domain | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value that a column may have."""
    if domain is None:
        return np.full(d, -np.inf), np.full(d, np.inf)
    if domain.low is None or domain.high is None:
        return np.full(d, -domain.radius), np.full(d, domain.radius)
    return domain.low, domain.high


def _first_edges(domain: Domain | None, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Public edges of the bins of all columns: those of the first release."""
    if domain is not None:
        # Values at the upper bound have a bin of their own.
        return np.column_stack([_between(low, high, _BINS - 2), np.nextafter(high, np.inf)])
    half = (_BINS - 2) // 2
    positive = 2.0 ** ((np.arange(half) - half // 2) / _OCTAVE)
    return np.tile(np.concatenate([-positive[::-1], [0.0], positive]), (len(low), 1))


def _between(low: np.ndarray, high: np.ndarray, n: int = _BINS - 1) -> np.ndarray:
    """Edges of equal bins from low to high."""
    return np.minimum(np.linspace(low, high, n, axis=1), high[:, None])


@lru_cache(maxsize=2)
def _decode(pure: bool) -> np.ndarray:
    """The matrix that makes ranks of what is released of a column."""
    if not pure:
        return prefix_noise(_BINS)
    return prefix_of_blocks(np.eye(_BINS + _BINS // BLOCK)).T


@lru_cache(maxsize=256)
def _rank_noise(level: float, d: int, pure: bool) -> float:
    """Return the noise of a rank for noise of scale 1, where the number of units is a mean over d
    columns."""
    decode = _decode(pure)
    norm = np.linalg.norm(decode - level / d * decode[-1], axis=1).max()
    # The ranks of the other columns have noise of their own.
    others = level / d * math.sqrt(d - 1) * float(np.linalg.norm(decode[-1]))
    return math.hypot(norm, others)


def _release(
    session: PrivacySession,
    entry: str,
    table: TableRows,
    edges: np.ndarray,
    ends: tuple,
    number: int | None = None,
) -> _Ranks:
    """Ranks about some edges, in round `number` of several."""
    pure = entry not in session.plan or session.plan[entry].epsilon is not None
    if pure:
        name = entry if number is None else f"{entry} {number + 1}"
        epsilon = cast(float, session.plan[name].epsilon)
        answer = table.ask(ColumnBlocks(edges, *ends))
        released = release_laplace(session, name, answer, epsilon=epsilon)
        sigma = math.sqrt(2) * answer.claim.l1 * answer.claim.unit / epsilon
    else:
        rho = session.remaining(entry) / (1 if number is None else _N_ZOOMS - number)
        answer = table.ask(ColumnRanks(edges, *ends))
        released = session.release(entry, answer, rho=rho)
        sigma = answer.claim.l2 * answer.claim.unit / math.sqrt(2 * rho)
    noisy = released @ _decode(pure).T
    below = np.array([isotonic_regression(each, y_min=0.0) for each in noisy])
    return _Ranks(edges, below, max(float(noisy[:, -1].mean()), 0.0), sigma, pure)


def _region(ranks: _Ranks, levels: Sequence[float], bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the quantiles of each column may be, by released ranks and their noise."""
    least, most = min(levels) * ranks.size, (1 - max(levels)) * ranks.size
    below, above = (
        _MARGIN * ranks.sd(level) + ranks.sampling(level) for level in (min(levels), max(levels))
    )
    if not bounded:  # without bounds there is always something to leave out
        below, above = min(below, least / 2), min(above, most / 2)
    first, last = least - below, ranks.size - most + above
    ends = [
        (
            edges[max(ranks.bins(j, first, "right") - 1, 0)],
            edges[min(ranks.bins(j, last), _BINS - 2)],
        )
        for j, edges in enumerate(ranks.edges)
    ]
    low, high = np.array(ends).T
    return low, high


def _least_spread(ranks: _Ranks, levels: Sequence[float]) -> np.ndarray:
    """Return a lower bound on the standard deviation of each column, by ranks far from its
    quantiles.

    A share p beyond an edge and a share q on the other side of a quantile have, at a distance x of
    the two, a variance of at least p q / (p + q) x^2.
    """
    widths = np.zeros(len(ranks.edges))
    less = _MARGIN * max(ranks.sd(level) for level in levels)
    for column, (edges, below) in enumerate(zip(ranks.edges, ranks.below, strict=True)):
        for level, q, beyond, sign in (
            (max(levels), max(levels), below[-1] - below[:-1], 1.0),
            (min(levels), 1 - min(levels), below[:-1], -1.0),
        ):
            p = np.maximum(beyond - less, 0.0) / max(ranks.size, 1.0)
            apart = sign * (edges - ranks.value(column, level * ranks.size))
            squares = p * q / (p + q) * np.square(np.maximum(apart, 0.0))
            widths[column] = max(widths[column], math.sqrt(float(squares.max())))
    return widths


def _read(
    ranks: _Ranks, column: int, level: float, low: float, high: float
) -> tuple[float, float, bool, bool]:
    """A quantile of a column, its standard error; whether it is outside of all bins, or in few."""
    rank, edges = level * ranks.size, ranks.edges[column]
    reach = math.hypot(_LEVEL * ranks.sd(level), ranks.sampling(level))
    first, last = ranks.bins(column, rank - reach, "right"), ranks.bins(column, rank + reach)
    ends = np.concatenate([[low], edges, [high]])
    width = ends[last + 1] - ends[first] if last or high > low else 0.0
    value = ranks.value(column, rank)
    # An interval of the error is symmetric about the value: it has to reach the farther end, too.
    # All zeros of a column are at one edge of a bin, and a value is anywhere in it.
    farther = max(value - ends[first], ends[last + 1] - value) if width else 0.0
    bins = math.hypot(width / 2, _LEVEL * (edges[1] - edges[0]) / math.sqrt(12))
    outside = ranks.bins(column, rank) in (0, _BINS - 1) and low < high
    return value, max(farther, bins) / _LEVEL, outside, last - first < 3
