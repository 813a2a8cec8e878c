"""Noisy means of bounded vectors, one of each row: the release that moments of columns are made of.

A row is clipped to the ends of each column, so that nothing is far out in any of them. It becomes a
vector of offsets from a released center and of their powers, over the reach of the column, and the
vector is clipped to a ball (:func:`clipped_mean`). Rows are seldom far out in several columns, so
the radius of the ball is about that of one column at its end, not the root of the number of
columns: noisy counts of the norms tell. The radius with the least noise and loss together is taken,
or a larger one as long as noise is a small part of what sampling adds.

Each part puts its vectors on an integer grid, clips them there and adds them up exactly.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._privacy._grid import MOST_COLUMNS, Grid, clip_integer_rows, row_norms_squared, sum_type
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from ..shared.quantiles import noisy_prefix_sums
from ..shared.row_sums import counted
from ..shared.rows import row_slices
from ..shared.table import Part, Table

_BINS, _OCTAVE = 256, 32  # of norms: so many in an octave
FREE = 0.2
"""Part of the sampling error that noise may be and add next to nothing to: 2 % in all."""

_WHOLE = 2.0**10  # steps of a row that is beyond the ends of one column
_ROUNDED = 1e-5  # of the side of public bounds: what rounding may exceed


@dataclass(frozen=True)
class Vectors:
    """What becomes of a row: the offsets of columns, over their reach, and powers of their
    magnitudes, less a shift, times a weight. Arrays are (d,)."""

    columns: np.ndarray  # which of the table
    low: np.ndarray  # ends that entries are clipped to
    high: np.ndarray
    center: np.ndarray  # between them
    signed: bool = True  # whether offsets are among them
    powers: tuple[tuple[int, float], ...] = ()  # with weights
    shifts: tuple[Any, ...] = ()  # of powers, at least 0
    beyond: float = 0.0  # of a release, in squared sensitivity, for which rows are beyond the ends
    outer: Any = None  # (2, d), public ends where these are others

    @property
    def half(self) -> np.ndarray:
        """The reach: from the center to the farther end; 1 where both ends are the same."""
        reach = np.maximum(self.high - self.center, self.center - self.low)
        return np.where(reach > 0, reach, 1.0)

    @property
    def weights(self) -> list[float]:
        """Of all that is added up, d entries of each; entries are at most the weight."""
        return [1.0] * self.signed + [weight for _, weight in self.powers]

    @property
    def most(self) -> float:
        """A norm that no vector exceeds."""
        return math.sqrt(len(self.low)) * float(np.linalg.norm(self.weights))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (n, k) of rows: each a function of its row alone, elementwise."""
        x = np.asarray(rows, dtype=np.float64)[:, self.columns]
        inside = np.clip(x, self.low, self.high)
        offsets = np.clip((inside - self.center) / self.half, -1.0, 1.0)
        found = [offsets] * self.signed
        for (power, weight), shift in zip(self.powers, self.shifts, strict=True):
            found.append(weight * (np.abs(offsets) ** power - shift))
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def in_steps(self, rows: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """The vectors as integers, rounded toward zero, and their exact squared norms. Entries are
        at most 1, which is at most `LIMIT` steps, and shifts leave half of the others at most."""
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        steps = np.trunc(self(rows) * (1.0 / grid.unit))
        return steps, row_norms_squared(steps, 1.001 / grid.unit)

    def outside(self, rows: np.ndarray) -> np.ndarray:
        """Which entries are below and above the ends (n, 2 d), by more than rounding, as integers:
        of length at most `_WHOLE` for a row. Public ends come first: how far an entry is beyond
        them makes no difference to what is counted of released ones, which have priority."""
        x, off = np.asarray(rows, dtype=np.float64)[:, self.columns], self.high - self.low
        least, most = (self.low, self.high) if self.outer is None else self.outer
        inside = np.clip(x, least, most)
        public = np.concatenate([least == self.low, most == self.high])
        below = np.where(least == self.low, x, inside) < self.low - _ROUNDED * off
        above = np.where(most == self.high, x, inside) > self.high + _ROUNDED * off
        found = np.concatenate([below, above], axis=1)
        found &= ~public | ~(found & ~public).any(axis=1, keepdims=True)
        number = np.maximum(np.count_nonzero(found, axis=1), 1)
        return found * np.floor(_WHOLE / np.sqrt(number) * (1 - 2.0**-50))[:, None]


class Clipped(NamedTuple):
    """The noisy mean of vectors."""

    parts: list[np.ndarray]  # (d,) of each weight: the mean of what it is the weight of
    sds: list[float]  # of their noise
    beyond: np.ndarray  # (2, d), shares of the rows below and above the ends; 0 if not asked for
    beyond_sd: float
    radius: float
    lost: float  # about how much of its length the clip takes from a vector, on average


def clipped_mean(
    session: PrivacySession,
    table: Table,
    vectors: Vectors,
    size: float,
    entry: str,
    *,
    rho: float,
    counts: float,
    most: float,
    free: float,
    likely: float,
) -> Clipped:
    """The mean of the vectors of rows, clipped to a radius of at most `most`.

    `size` is a released number of rows. `counts` is what the entry "distances" pays for the counts
    that the radius is chosen by. `free` is a noise of a sum that is of no account, and `likely` the
    part of what the clip takes from all vectors that a coordinate may lose.
    """
    top = vectors.most
    most = min(most, top)
    edges = most * 2.0 ** (np.arange(-_BINS + 1, 1) / _OCTAVE)
    (exact,) = table.sums(_norm_counts, vectors, top, edges)
    sums, sigma = noisy_prefix_sums(session, "distances", exact[None, ::-1], table.units, counts)
    noise = 1 / math.sqrt(2 * rho)
    radius, lost = _radius(sums[0, ::-1][1:], edges, noise, free, likely)
    return summed(session, table, vectors, size, entry, rho, radius)._replace(lost=lost / size)


def summed(
    session: PrivacySession,
    table: Table,
    vectors: Vectors,
    size: float,
    entry: str,
    rho: float,
    radius: float | None = None,
) -> Clipped:
    """The mean of the vectors of rows, clipped to a public or released radius."""
    radius = vectors.most if radius is None else radius
    grid = _grid(radius)
    total, outside = table.sums(_vector_sums, vectors, radius)
    # A row adds a vector of norm at most `radius`, in steps, and to the counts one of at most
    # `_WHOLE`. Each over its claim, squared: (1 - w) + w = 1. Rows of a unit have weights of sum at
    # most one, so by the triangle inequality a unit adds no more.
    w, d = vectors.beyond, len(vectors.low)
    limit = round_up(grid.steps(radius) / math.sqrt(1 - w))
    value, claim, step = total, np.full(len(total), limit), np.full(len(total), grid.unit)
    if w:
        value = np.append(total, outside)
        claim = np.append(claim, np.full(2 * d, round_up(_WHOLE / math.sqrt(w))))
        step = np.append(step, np.full(2 * d, 1 / _WHOLE))
    noisy = session.gaussian(entry, value, sensitivity=claim, unit=step, rho=rho) / size
    sd, weights = limit * grid.unit / math.sqrt(2 * rho) / size, vectors.weights
    pieces = np.split(noisy[: len(total)], len(weights))
    parts = [part / weight for part, weight in zip(pieces, weights, strict=True)]
    for i, shift in enumerate(vectors.shifts, vectors.signed):
        parts[i] = parts[i] + shift
    beyond = noisy[len(total) :].reshape(2, d) if w else np.zeros((2, d))
    beyond_sd = 1 / math.sqrt(2 * rho * w) / size if w else 0.0
    return Clipped(parts, [sd / weight for weight in weights], beyond, beyond_sd, radius, 0.0)


def _grid(radius: float) -> Grid:
    """Of vectors up to a norm, with entries of up to 1."""
    return Grid.for_radius(max(radius, 1.0))


def _radius(
    beyond: np.ndarray, edges: np.ndarray, noise: float, free: float, likely: float
) -> tuple[float, float]:
    """A radius, and what is lost of the lengths of all vectors, by noisy numbers `beyond` edges."""
    tail = isotonic_regression(beyond, y_min=0.0, increasing=False)
    # The integral of the number of vectors that are longer; those beyond the last edge are about
    # as long.
    lengths = (tail[:-1] + tail[1:]) / 2 * np.diff(edges)
    lost = np.append(np.cumsum(lengths[::-1])[::-1], 0.0)
    costs = np.square(noise * edges) + np.square(likely * lost)
    best = int(np.flatnonzero(costs <= costs.min() + free**2)[-1])
    return float(edges[best]), float(lost[best])


# -- passes ----------------------------------------------------------------------------------------


def _norm_counts(
    part: Part, vectors: Vectors, top: float, edges: np.ndarray
) -> tuple[Part, tuple[np.ndarray]]:
    """A pass: weights of vectors with norms below the first edge, between edges, and beyond."""
    X, grid = part.source.read(), _grid(top)
    edges, places = np.square(grid.steps(edges)), np.empty(part.units.n_rows, dtype=np.int64)
    for place in row_slices(part.units.n_rows, _width(X, vectors)):
        squares = vectors.in_steps(X[place], grid)[1]
        places[place] = np.searchsorted(edges, squares, side="right")
    return part, (counted(places.__getitem__, len(places), part.units, len(edges) + 1),)


def _vector_sums(part: Part, vectors: Vectors, radius: float) -> tuple[Part, tuple]:
    """A pass: the exact sums of the vectors, clipped to the radius, and of which entries are beyond
    the ends, both in steps."""
    X, grid, n = part.source.read(), _grid(radius), part.units.n_rows
    k = len(vectors.low) * len(vectors.weights)
    total, outside = np.zeros(k, dtype=sum_type(n, 24)), np.zeros(2 * len(vectors.low), np.int64)
    for place in row_slices(n, _width(X, vectors)):
        own, units = np.asarray(X[place]), part.units.take(place)
        # Integers of at most 2**24, a chunk of at most 2**16 rows: exact sums.
        steps, squares = vectors.in_steps(own, grid)
        steps = clip_integer_rows(steps, grid.steps(radius), squares, own=True)
        total += exact_integers(units.weigh(steps).sum(axis=0))
        if vectors.beyond:
            outside += exact_integers(units.weigh(vectors.outside(own)).sum(axis=0))
    return part, (total, outside)


def _width(X: Any, vectors: Vectors) -> int:
    return max(int(X.shape[1]), len(vectors.low) * len(vectors.weights))
