"""Principal axes of some of the points, released, and exact coordinates along them.

Both ways of :mod:`.partition` and :mod:`.spherical` look for balls in a few dimensions: there are
k means, so the span of the first k principal axes nearly holds them, and the spread of a component
across that span, which hides small gaps in many dimensions, is gone (lemma 3.1 of Kamath et al.,
2019).

Coordinates decide on which side of a cut a row is. They are products of integers below 2**53, so
that they do not depend on the other rows, nor on the BLAS: the basis is rounded to multiples of
2**-20, and a row has at most 2**26 steps.
"""

import numpy as np

from ..._privacy._units import Units
from ..shared.axes import second_moment
from ..shared.grid_table import GridTable
from ..shared.rows import Rows

__all__ = ["BASIS_STEPS", "chosen_points", "top_axes"]

BASIS_STEPS = 2.0**20
"""Steps of an integer basis to a unit of length."""


def chosen_points(rows, chosen):
    """The rows that a mask chooses, as one array; no rows give an array of shape (0, d)."""
    return np.concatenate(
        [np.empty((0, rows.n_features)), *(x[chosen[part]] for part, x in rows.chunks())]
    )


def top_axes(session, entry, rows, chosen, radius, k, origin=None):
    """The first k principal axes of some points about a released origin.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays for the second moment, with all that it has left.
    rows : Rows
        One for each unit.
    chosen : ndarray of bool of shape (n,)
        Which of the rows count: a function of each row and of releases.
    radius : float
        Released, in steps: points farther from the origin are clipped to it. Adding or removing
        a point then moves the sum of x x^T by at most radius**2 in the Frobenius norm, since
        |x x^T|_F = |x|**2; `second_moment` claims that much.
    k : int
    origin : ndarray of shape (d,), integers, optional
        Released; the origin of the rows by default. The paper takes the moment of points that
        lie in a ball about a released center without moving that center to the origin, which has
        no such bound.

    Returns
    -------
    basis : ndarray of shape (d, k)
        Orthonormal columns but for rounding, in steps of 2**-20.
    """
    points, ball = chosen_points(rows, chosen), rows.ball
    if origin is not None:
        points, ball = points - origin, rows.limit + np.linalg.norm(origin)
    moment = second_moment(
        session,
        entry,
        GridTable.of(Rows.of(points, ball), Units(len(points))),
        radius,
        session.remaining(entry),
    )
    # Largest signed eigenvalues: of a large negative one there is noise only.
    return np.rint(np.linalg.eigh(moment)[1][:, ::-1][:, :k] * BASIS_STEPS)
