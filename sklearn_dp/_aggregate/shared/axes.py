"""A released second moment, and the exact projection onto axes found in it.

Cells are cut along few axes (:class:`Axes`). Rows are integers, and so is the basis, in steps of
2**-20: a projected row is then a function of that row and of the released basis, bit for bit.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._privacy._aggregates import exact_gram, gram
from ..._privacy._grid import clip_integer_rows
from ..._privacy._products import NearRows
from ..._privacy._session import PrivacySession
from .rows import ROWS, GridTable
from .table import Part

BASIS_BITS = 20
_FLUCTUATIONS = 2.5  # of the largest eigenvalue of noise, which it exceeds in less than 1 %


@dataclass(frozen=True)
class Axes:
    """An integer basis of a subspace, and the released spread along it."""

    # (d, q), orthonormal up to rounding to multiples of 2**-20, in such steps; None: the identity
    basis: np.ndarray | None
    spread: np.ndarray  # (q,), standard deviations, in grid steps
    half_widths: np.ndarray  # (q,), of the box that is searched
    limit: float  # rows are clipped to this norm where there is no basis
    rest: float = 0.0  # released mean squared length off these axes

    def project(self, rows: Any, squares: np.ndarray) -> np.ndarray:
        """Integer rows (m, d), of norm at most 2**25, to integer coordinates (m, q) on the axes.
        Far rows stay far where there is a basis: clipped, they would mix with others."""
        if self.basis is None:
            rows = rows.dense() if isinstance(rows, NearRows) else rows
            return clip_integer_rows(rows, self.limit, squares)
        # At most 2**25 times 2**20: exact products and sums, whatever BLAS does.
        return np.floor(rows @ self.basis * 2.0**-BASIS_BITS)

    def flatten(self, points: np.ndarray) -> np.ndarray:
        """Released points of the whole space to coordinates along the axes, in plain floats."""
        return points if self.basis is None else points @ (self.basis * 2.0**-BASIS_BITS)

    def lift(self, points: np.ndarray) -> np.ndarray:
        """Coordinates along the axes to points of the whole space."""
        return points if self.basis is None else points @ (self.basis.T * 2.0**-BASIS_BITS)


def noise_edge(sd: float, d: int) -> float:
    """What the largest eigenvalue of a symmetric matrix of noise seldom exceeds.

    With the standard deviation `sd` on the diagonal and sd / sqrt(2) off it, that eigenvalue is
    about sd sqrt(2 d), with fluctuations of the size sd / sqrt(2) d^(-1/6) (Tracy and Widom).

    >>> round(noise_edge(1.0, 2), 2)
    3.57
    """
    return sd * (math.sqrt(2 * d) + _FLUCTUATIONS / math.sqrt(2) * d ** (-1 / 6))


def plain_axes(n_features: int, limit: float) -> Axes:
    """The coordinate axes, with the spread of rows of mean squared length limit^2 / 1.5."""
    whole = np.full(n_features, float(limit))
    return Axes(None, whole / math.sqrt(1.5 * n_features), whole, float(limit))


def second_moment(
    session: PrivacySession, entry: str, rows: GridTable, limit: float, rho: float
) -> np.ndarray:
    """Noisy sum (d, d) of x x^T over rows clipped to a norm, in squared steps; see `gram`."""

    def exact(coarse: float) -> np.ndarray:
        return rows.sums(_gram, limit, coarse)[0]

    return (
        gram(session, entry, exact, rows.n_features, limit, unit=rows.unit, rho=rho) / rows.unit**2
    )


def _gram(part: Part, limit: float, coarse: float) -> tuple[Part, tuple]:
    rows, units = part[ROWS], part.units
    chunks = rows.squared_chunks(near=units.weights is None)
    return part, (exact_gram(chunks, rows.n_features, limit, coarse, units),)


def normal_points(rng: np.random.Generator, n: int, spread: np.ndarray) -> np.ndarray:
    """Public points (n, q), no noise, of a normal law with a spread (q,) along each axis."""
    uniform = rng.random((n, len(spread)))
    return ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) * spread
