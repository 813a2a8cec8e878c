"""A released second moment, and the exact projection onto axes found in it."""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import clip_integer_rows
from ..._privacy._mechanisms import gram

__all__ = ["BASIS_BITS", "Axes", "plain_axes", "second_moment"]

BASIS_BITS = 20


@dataclass(frozen=True)
class Axes:
    """An integer basis of a subspace, and the released spread along it.

    Attributes
    ----------
    basis : ndarray of shape (d, q) or None
        Orthonormal up to rounding to multiples of 2**-20, in such steps. None: the identity.
    spread : ndarray of shape (q,)
        Standard deviations, in grid steps.
    half_widths : ndarray of shape (q,)
        Of the box that is searched.
    limit : float
        Rows are clipped to this norm where there is no basis.
    rest : float, default=0.0
        Released mean squared length off these axes.
    """

    basis: np.ndarray | None
    spread: np.ndarray
    half_widths: np.ndarray
    limit: float
    rest: float = 0.0

    def project(self, rows, squares):
        """Integer rows to integer coordinates on the axes.

        Far rows stay far where there is a basis: a clip would pull a small cluster far out
        towards the others.
        """
        if self.basis is None:
            return clip_integer_rows(rows, self.limit, squares)
        # At most 2**25 times 2**20: exact products and sums, whatever BLAS does.
        return np.floor(rows @ self.basis * 2.0**-BASIS_BITS)

    def flatten(self, points):
        """Released points of the whole space to coordinates along the axes."""
        return points if self.basis is None else points @ (self.basis * 2.0**-BASIS_BITS)

    def lift(self, points):
        """Coordinates along the axes to points of the whole space."""
        return points if self.basis is None else points @ (self.basis.T * 2.0**-BASIS_BITS)


def plain_axes(n_features, limit):
    """The coordinate axes, with a nominal spread, where a rotation is not worth its price."""
    whole = np.full(n_features, float(limit))
    return Axes(None, whole / math.sqrt(1.5 * n_features), whole, float(limit))


def second_moment(session, entry, rows, limit, units, rho):
    """Noisy sum of x x^T over rows clipped to a norm, in squared steps; see `gram`."""
    parts = ((part, x, rows.squares[part]) for part, x in rows.chunks())
    return (
        gram(session, entry, parts, rows.n_features, limit, units, unit=rows.unit, rho=rho)
        / rows.unit**2
    )
