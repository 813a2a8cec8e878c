"""The first ball of a search: the box of a random grid that holds most points.

Given a released radius r at which some ball holds t points:

1. Map the rows to few dimensions: not at all up to 8 features ("grid"), by random signs to 4
   dimensions beyond ("grid"), or to 4 released principal axes ("pca").
2. Draw 16 shifts of a grid of boxes whose side is a few r. Choose the shift whose fullest box holds
   most points, by the exponential mechanism: a shift that cuts the cluster in two would lose it.
3. Release the box with most points, by a stability histogram over the occupied boxes.
4. The rows in that box go on; where the boxes are those of the features, its middle is the first
   center.

A neighbour adds a point to one box of every grid: the fullest box of each, and the count of one
box, move by one. What else is in the data does not change the box of a point, which is a function
of its exact integer coordinates.

"clip" takes no box at all, and "paper" is in :mod:`.published_center`. Means of points in ever
smaller balls follow (:mod:`.search`). How the methods compare: ``doc/benchmarks/one_cluster.md``.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016. Its
   algorithm 2 has boxes of 300 r sqrt(k) after a projection to k = 46 log2(2 n / beta) dimensions,
   for the worst case; here they are as small as they may be for most points to stay together.
"""

import math

import numpy as np

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..shared.axes import second_moment
from ..shared.grid_table import GridTable
from .radius import exponential_epsilon

__all__ = [
    "BASIS_STEPS", "CENTER_METHODS", "box_spend", "boxes", "fullest", "grid_entries", "heaviest",
    "heavy_box", "heavy_point", "mapped", "signs",
]  # fmt: skip

CENTER_METHODS = ("grid", "pca", "clip", "paper")
_SHIFTS = 16  # random grids to choose from
_MOST_BOXED = 8  # features that are cut into boxes as they are
_PROJECTED = 4  # dimensions that more features are projected to
_PROJECTED_SIDE = 8.0  # side of a box there, in radii
_PRINCIPAL_SIDE = 2.0  # the same on axes of unit length
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: 2**64 over the golden ratio
_MOST_CELL = 2.0**40  # coordinates of a box, far beyond those of any grid that is used
BASIS_STEPS = 2.0**20
"""Steps of the entries of a basis: a map by them takes integers to integers."""

_SAFE = 1 - 1e-9


# -- boxes ------------------------------------------------------------------------------------


def grid_entries(rho, delta, *, principal=False):
    """Plan entries of :func:`heavy_box`, or :func:`heavy_point` in its place.

    Parameters
    ----------
    rho, delta : float
        Of all entries together.
    principal : bool, default=False
        Whether principal axes are released first, for 40 % of rho.

    Returns
    -------
    entries : tuple of PlanEntry
    """
    if principal:
        axes = PlanEntry(
            "axes",
            Mechanism.GAUSSIAN,
            0.4 * rho,
            sensitivity="R^2 in the norm of the second moment",
        )
        return (axes, *grid_entries(0.6 * rho * _SAFE, delta))
    return (
        PlanEntry(
            "shift", Mechanism.EXPONENTIAL, 0.3 * rho, sensitivity="1 unit in the fullest box"
        ),
        PlanEntry(
            "box",
            Mechanism.STABILITY_HISTOGRAM,
            0.7 * rho * _SAFE,
            delta,
            sensitivity="1 unit in a box",
        ),
    )


def signs(session, d, k):
    """A random k x d matrix of signs: projections of integers stay integers.

    Not divided by sqrt(k), so distances grow by about that factor.
    """
    return np.where(session.rng("projection").random((k, d)) < 0.5, -1.0, 1.0)


def _principal(session, entry, rows, chosen):
    """The released axes along which the chosen rows reach farthest from the public center.

    Where the data say nothing against the noise, these are random axes, as good as any others.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Spends all that it has.
    rows : Rows
    chosen : ndarray of bool of shape (n,)

    Returns
    -------
    axes : ndarray of shape (4, d), integers
        Unit vectors in steps of 2**-20.
    """
    units = Units(rows.n_rows)
    units.weights = chosen.astype(np.int64)  # 0 for rows that do not count
    table = GridTable.of(rows, units)
    moment = second_moment(session, entry, table, rows.limit, session.remaining(entry))
    _, axes = np.linalg.eigh(moment)
    return np.rint(axes[:, -_PROJECTED:].T * BASIS_STEPS)


def mapped(rows, matrix):
    """A map of every row, exact: |A x| is an integer below 2**53, and so is each partial sum.

    A row of signs gives at most d |x|, one of a basis in steps about 2**20 |x|. So BLAS may add up
    in any order, and the image of a row has the same bits whatever other rows there are.

    Parameters
    ----------
    rows : Rows
    matrix : ndarray of shape (k, d), integer-valued

    Returns
    -------
    images : ndarray of shape (n, k)
    """
    out = np.empty((rows.n_rows, len(matrix)))
    for part, x in rows.chunks(len(matrix)):
        out[part] = x @ matrix.T
    return out


def boxes(points, shift, side):
    """Integer coordinates of each point's box: elementwise.

    Parameters
    ----------
    points : ndarray of shape (n, k)
    shift : float or ndarray of shape (k,)
    side : float

    Returns
    -------
    cells : ndarray of int64 of shape (n, k)

    Examples
    --------
    >>> boxes(np.array([[0.5, -0.5], [2.5, 7.0]]), 1.0, 2.0)
    array([[0, 0],
           [1, 4]])
    """
    cells = np.floor((points + shift) / side)
    return np.clip(cells, -_MOST_CELL, _MOST_CELL).astype(np.int64)


def fullest(cells):
    """Number of points in the fullest box, boxes told apart by a hash.

    Boxes with the same hash count as one: that is a partition as well, and its fullest cell gains
    or loses at most one point between neighbours. Sorting 64-bit keys is several times as fast as
    sorting rows, and this is done for each of the shifts.

    Examples
    --------
    >>> fullest(np.array([[0, 0], [1, 4], [0, 0]]))
    2
    """
    if not len(cells):
        return 0
    odd = np.cumprod(np.full(cells.shape[1], _MIX))  # modulo 2**64
    key = (cells.astype(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    key.sort()
    ends = np.flatnonzero(np.append(key[1:] != key[:-1], True))
    return int(np.diff(ends, prepend=-1).max())


def heaviest(session, entry, cells, rho, delta, replace):
    """Coordinates of a box with many points, by a stability histogram; None if none stands out.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays `rho` and `delta`.
    cells : ndarray of int64 of shape (m, k)
        One row for each point.
    rho, delta : float
    replace : bool
        Neighbours replace a point.

    Returns
    -------
    box : ndarray of int64 of shape (k,), or None
    """
    k = cells.shape[1]
    # Codes are the coordinates themselves: whatever else is in the data, a box has one name.
    names = np.ascontiguousarray(cells.astype(">i8")).view(f"S{8 * k}").ravel()
    codes, counts = np.unique(names, return_counts=True)
    # A replaced point leaves one box and enters another.
    codes, values = session.stability_histogram(
        entry, codes, counts, rho=rho, delta=delta, sensitivity=math.sqrt(2) if replace else 1.0
    )
    if not len(codes):
        return None
    return np.frombuffer(codes[values.argmax()].ljust(8 * k, b"\0"), dtype=">i8").astype(np.int64)


def box_spend(session: PrivacySession, entry: str) -> tuple[float, float]:
    """rho and delta of a box: what is left of the one, all of the other."""
    return session.remaining(entry), session.plan[entry].delta


def heavy_box(session, prefix, rows, radius, chosen, *, principal=False, replace=False):
    """A box of side a few radii that holds most of a cluster.

    Parameters
    ----------
    session : PrivacySession
    prefix : str
        Of the plan entries.
    rows : Rows
    radius : float
        Released, in steps.
    chosen : ndarray of bool of shape (n,)
        Rows to look at; a function of each row and of releases.
    principal : bool, default=False
        Cut along released principal axes; only for neighbours that add or remove a row.
    replace : bool, default=False
        Neighbours replace a row.

    Returns
    -------
    inside : ndarray of bool of shape (n,), or None
        None if no box stands out. Not a release: a function of each row and of releases.
    center : ndarray of shape (d,), integers
    reach : float
        All rows inside are within `reach` of the center.
    """
    d = rows.n_features
    boxed = d <= _MOST_BOXED and not principal
    if principal:
        matrix = _principal(session, prefix + "axes", rows, chosen)
        side = _PRINCIPAL_SIDE * radius * BASIS_STEPS
    elif boxed:
        # Large enough that one of the shifts leaves most of a ball of that radius in one box.
        matrix, side = np.eye(d), radius * (1 + max(4, d))
    else:
        matrix, side = signs(session, d, _PROJECTED), _PROJECTED_SIDE * radius
    points = mapped(rows, matrix)
    shifts = session.rng(prefix + "shifts").random((_SHIFTS, len(matrix))) * side
    scores = [fullest(boxes(points[chosen], shift, side)) for shift in shifts]
    # The number of points in the fullest box moves by at most one.
    best = session.exponential(
        prefix + "shift",
        scores,
        sensitivity=1,
        epsilon=exponential_epsilon(session.remaining(prefix + "shift")),
    )
    cells = boxes(points, shifts[best], side)
    box = heaviest(
        session, prefix + "box", cells[chosen], *box_spend(session, prefix + "box"), replace
    )
    if box is None:
        return None
    inside = chosen & (cells == box).all(axis=1)
    if not boxed:
        return inside, np.zeros(d), rows.limit
    center = np.rint((box + 0.5) * side - shifts[best])
    center = np.clip(center, -rows.limit, rows.limit)
    return inside, center, side * math.sqrt(d) / 2 + math.sqrt(d)


def heavy_point(session, prefix, rows, chosen, *, replace=False):
    """A point of the grid that many rows are equal to, or None; pays as a box does.

    For a released radius of zero, where boxes have no side. The cells are the integer rows
    themselves, so the point that is released is exact.

    Parameters
    ----------
    session : PrivacySession
    prefix : str
        Of the plan entries.
    rows : Rows
    chosen : ndarray of bool of shape (n,)
    replace : bool, default=False

    Returns
    -------
    point : ndarray of shape (d,), integers, or None
    """
    cells = np.concatenate([np.empty((0, rows.n_features)), *(x for _, x in rows.chunks())])
    found = heaviest(
        session,
        prefix + "box",
        cells[chosen].astype(np.int64),
        *box_spend(session, prefix + "box"),
        replace,
    )
    return None if found is None else found.astype(np.float64)
