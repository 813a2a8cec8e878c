"""Noisy means of bounded vectors, one of each row: the release that moments of columns are made of.

A row is clipped to the ends of each column, so that nothing is far out in any of them. It becomes a
vector of offsets from a released center and of their powers, over the reach of the column, and the
vector is clipped to a ball (:func:`clipped_mean`). Rows are seldom far out in several columns, so
the radius of the ball is about that of one column at its end, not the root of the number of
columns: noisy counts of the norms tell. The radius with the least noise and loss together is taken,
or a larger one as long as noise is a small part of what sampling adds.
"""

import math
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._privacy._session import PrivacySession
from ..._queries.columns import VectorRanks, Vectors, VectorSums
from ..._queries.handles import AnyTable, TableRows
from ..._queries.ranks import prefix_noise

_BINS, _OCTAVE = 256, 32  # of norms: so many in an octave
FREE = 0.2
"""Part of the sampling error that noise may be and add next to nothing to: 2 % in all."""


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
    table: AnyTable,
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
    edges = min(most, vectors.most) * 2.0 ** (np.arange(-_BINS + 1, 1) / _OCTAVE)
    ranks = VectorRanks(vectors, edges)
    longer = session.release("distances", TableRows(table).ask(ranks), rho=counts)
    longer = longer @ prefix_noise(ranks.n_bins).T
    radius, lost = _radius(longer[0, ::-1][1:], edges, 1 / math.sqrt(2 * rho), free, likely)
    return summed(session, table, vectors, size, entry, rho, radius)._replace(lost=lost / size)


def summed(
    session: PrivacySession,
    table: AnyTable,
    vectors: Vectors,
    size: float,
    entry: str,
    rho: float,
    radius: float | None = None,
) -> Clipped:
    """The mean of the vectors of rows, clipped to a public or released radius."""
    radius = vectors.most if radius is None else radius
    answer = TableRows(table).ask(VectorSums(vectors, radius))
    noisy = session.release(entry, answer, rho=rho) / size
    w, k, d, weights = vectors.beyond, vectors.width, len(vectors.low), vectors.weights
    sd = float(answer.claim.l2[0] * answer.claim.unit[0]) / math.sqrt(2 * rho) / size
    pieces = np.split(noisy[:k], len(weights))
    parts = [part / weight for part, weight in zip(pieces, weights, strict=True)]
    for i, shift in enumerate(vectors.shifts, vectors.signed):
        parts[i] = parts[i] + shift
    beyond = noisy[k:].reshape(2, d) if w else np.zeros((2, d))
    beyond_sd = 1 / math.sqrt(2 * rho * w) / size if w else 0.0
    return Clipped(parts, [sd / weight for weight in weights], beyond, beyond_sd, radius, 0.0)


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
