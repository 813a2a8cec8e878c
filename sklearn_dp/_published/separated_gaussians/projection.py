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

from ..._aggregate.shared.axes import second_moment
from ..._privacy._session import PrivacySession
from ..._queries.grids import BASIS_BITS
from ..._queries.handles import GridRows
from ..._queries.inner import Dropped
from ..._queries.nodes import CHOSEN, chosen_points

BASIS_STEPS = 2.0**BASIS_BITS
"""Steps of an integer basis to a unit of length."""


def top_axes(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    radius: float,
    k: int,
    origin: np.ndarray | None = None,
) -> np.ndarray:
    """The first k principal axes of some points about a released origin.

    Orthonormal columns (d, k) but for rounding, in steps of 2**-20. The entry pays for the second
    moment, with all that it has left. There is one row for each unit; those count that the parts
    name `ACTIVE`, or all: a function of each row and of releases.

    Points farther from the origin than the radius (released, in steps) are clipped to it. Adding or
    removing a point then moves the sum of x x^T by at most radius**2 in the Frobenius norm, since
    |x x^T|_F = |x|**2; `second_moment` claims that much. `origin` (d,), integers, is released; that
    of the rows by default. The paper takes the moment of points that lie in a ball about a released
    center without moving that center to the origin, which has no such bound.
    """
    chosen, rho = chosen_points(rows, origin), session.remaining(entry)
    moment = second_moment(session, entry, chosen, radius, rho)
    rows.table.apply(Dropped((CHOSEN,)))
    # Largest signed eigenvalues: of a large negative one there is noise only.
    return np.rint(np.linalg.eigh(moment)[1][:, ::-1][:, :k] * BASIS_STEPS)
