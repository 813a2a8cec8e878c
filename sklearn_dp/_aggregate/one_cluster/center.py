"""GoodCenter: a point near a cluster of t points, given a radius at which one exists.

Four routes. "grid": the heaviest box of a randomly shifted grid, after a random projection in
many dimensions. "pca": the same after a projection to released principal axes. "paper":
algorithm 2 as published [1]_, with the corrections noted where they are made. "clip": no box at
all; the whole domain is the first ball. Means of points in ever smaller balls follow
(`search`).

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016.
"""

import math

import numpy as np
from scipy.special import ndtri

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._units import Units
from ..friendly.average import friendly_average
from ..shared.axes import second_moment
from .balls import clip_to_ball, squared_distances
from .radius import BETA, exponential_epsilon

__all__ = [
    "CENTER_METHODS",
    "grid_entries",
    "heavy_box",
    "heavy_point",
    "paper_center",
    "paper_entries",
]

CENTER_METHODS = ("grid", "pca", "clip", "paper")
_SHIFTS = 16
_MOST_BOXED = 8  # features that are cut into boxes as they are
_PROJECTED = 4  # dimensions that more features are projected to
_PROJECTED_SIDE = 8.0  # side of a box there, in radii
_PRINCIPAL_SIDE = 2.0  # the same on axes of unit length
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MOST_CELL = 2.0**40
_ROUNDS = 64  # of the published search for a partition
_BASIS_STEPS = 2.0**20
_SAFE = 1 - 1e-9


# -- boxes ------------------------------------------------------------------------------------


def grid_entries(rho, delta, *, principal=False):
    """Plan entries of :func:`heavy_box`, or :func:`heavy_point` in its place."""
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


def _signs(session, d, k):
    """A random k x d matrix of signs: projections of integers stay integers."""
    return np.where(session.rng("projection").random((k, d)) < 0.5, -1.0, 1.0)


def _principal(session, entry, rows, chosen):
    """The released axes along which the chosen rows reach farthest from the public center.

    Where the data say nothing against the noise, these are random axes, as good as any others.
    """
    units = Units(rows.n_rows)
    units.weights = chosen.astype(np.int64)  # 0 for rows that do not count
    moment = second_moment(session, entry, rows, rows.limit, units, session.remaining(entry))
    _, axes = np.linalg.eigh(moment)
    return np.rint(axes[:, -_PROJECTED:].T * _BASIS_STEPS)


def _mapped(rows, matrix):
    """A map of every row, exact: |A x| is an integer below 2**53, and so is each partial sum.

    A row of signs gives at most d |x|, one of a basis in steps about 2**20 |x|.
    """
    out = np.empty((rows.n_rows, len(matrix)))
    for part, x in rows.chunks(len(matrix)):
        out[part] = x @ matrix.T
    return out


def _boxes(points, shift, side):
    """Integer coordinates of each point's box: elementwise."""
    cells = np.floor((points + shift) / side)
    return np.clip(cells, -_MOST_CELL, _MOST_CELL).astype(np.int64)


def _fullest(cells):
    """Number of points in the fullest box, boxes told apart by a hash.

    Boxes with the same hash count as one: that is a partition as well, and its fullest cell gains
    or loses at most one point between neighbours.
    """
    if not len(cells):
        return 0
    odd = np.cumprod(np.full(cells.shape[1], _MIX))  # modulo 2**64
    key = (cells.astype(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    key.sort()
    ends = np.flatnonzero(np.append(key[1:] != key[:-1], True))
    return int(np.diff(ends, prepend=-1).max())


def _heaviest(session, entry, cells, rho, delta, replace):
    """Coordinates of a box with many points, by a stability histogram; None if none stands out."""
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


def _box_spend(session, entry="box"):
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
    principal : bool, default=False
        Cut along released principal axes; only for neighbours that add or remove a row.

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
        side = _PRINCIPAL_SIDE * radius * _BASIS_STEPS
    elif boxed:
        matrix, side = np.eye(d), radius * (1 + max(4, d))
    else:
        matrix, side = _signs(session, d, _PROJECTED), _PROJECTED_SIDE * radius
    points = _mapped(rows, matrix)
    shifts = session.rng(prefix + "shifts").random((_SHIFTS, len(matrix))) * side
    fullest = [_fullest(_boxes(points[chosen], shift, side)) for shift in shifts]
    # The number of points in the fullest box moves by at most one.
    best = session.exponential(
        prefix + "shift",
        fullest,
        sensitivity=1,
        epsilon=exponential_epsilon(session.remaining(prefix + "shift")),
    )
    cells = _boxes(points, shifts[best], side)
    box = _heaviest(
        session, prefix + "box", cells[chosen], *_box_spend(session, prefix + "box"), replace
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
    """A point of the grid that many rows are equal to, or None; pays as a box does."""
    cells = np.concatenate([np.empty((0, rows.n_features)), *(x for _, x in rows.chunks())])
    found = _heaviest(
        session,
        prefix + "box",
        cells[chosen].astype(np.int64),
        *_box_spend(session, prefix + "box"),
        replace,
    )
    return None if found is None else found.astype(np.float64)


# -- the published algorithm ------------------------------------------------------------------


def paper_entries(rho, delta):
    """Plan entries of :func:`paper_center`: four equal shares, as published."""
    part, failure = rho / 4 * _SAFE, delta / 3 * _SAFE
    return (
        PlanEntry("partition", Mechanism.ABOVE_THRESHOLD, part, sensitivity="1 unit in a box"),
        PlanEntry(
            "box", Mechanism.STABILITY_HISTOGRAM, part, failure, sensitivity="1 unit in a box"
        ),
        PlanEntry(
            "axes",
            Mechanism.STABILITY_HISTOGRAM,
            part,
            failure,
            uses=None,
            sensitivity="1 unit on each axis",
        ),
        PlanEntry("members", Mechanism.FRIENDLY_AVERAGE, part / 10, failure, sensitivity="1 unit"),
        PlanEntry("average", Mechanism.FRIENDLY_AVERAGE, part * 0.9, sensitivity="2 R / size"),
    )


def paper_center(session, prefix, rows, radius, t, size, chosen, *, replace=False):
    """Algorithm 2: projection, random boxes, a rotated box, noisy average.

    Parameters
    ----------
    t : float
        Points that a ball of the radius holds.
    size : float
        Released number of points.

    Returns
    -------
    center : ndarray of shape (d,), integers, or None
        None when a step fails.
    """
    bound = max(size, 2.0)
    k = math.ceil(46 * math.log2(2 * bound / BETA))  # base 2: the natural logarithm is vacuous
    side = 300 * radius * math.sqrt(k)  # of A x, which is not divided by the root of k
    points = _mapped(rows, _signs(session, rows.n_features, k))
    shifts = session.rng(prefix + "partitions").random((_ROUNDS, k)) * side
    entry = prefix + "partition"
    epsilon = math.sqrt(2 * session.remaining(entry)) * _SAFE
    level = t - 25 / epsilon * math.log(2 * bound / BETA)
    fullest = [_fullest(_boxes(points[chosen], shift, side)) for shift in shifts]
    found = session.above_threshold(
        entry, fullest, math.ceil(max(level, t / 2)), sensitivity=1, epsilon=epsilon
    )
    if found is None:
        return None
    cells = _boxes(points, shifts[found], side)
    box = _heaviest(
        session, prefix + "box", cells[chosen], *_box_spend(session, prefix + "box"), replace
    )
    if box is None:
        return None
    members = chosen & (cells == box).all(axis=1)
    ball = _rotated_ball(session, prefix, rows, members, radius, k, bound, replace)
    return None if ball is None else _average(session, prefix, rows, members, *ball)


def _rotated_ball(session, prefix, rows, members, radius, k, bound, replace):
    """Center and radius of a ball about most members: heavy intervals on random axes."""
    d = rows.n_features
    axes = _random_basis(session, d)
    width = 900 * radius * math.sqrt(k * math.log(d * bound / BETA) / d)
    places = _mapped(rows, np.rint(axes * _BASIS_STEPS))
    cells = _boxes(places, 0.0, width * _BASIS_STEPS)
    rho, delta = (share / d * _SAFE for share in _box_spend(session, prefix + "axes"))
    center = np.zeros(d)
    for i in range(d):
        interval = _heaviest(
            session, prefix + "axes", cells[members, i : i + 1], rho, delta, replace
        )
        if interval is None:
            return None
        center += axes[i] * ((interval[0] + 0.5) * width)
    # Intervals widened to three times their width: a box of diagonal 3 width sqrt(d).
    return clip_to_ball(np.rint(center), rows.limit), 1.5 * width * math.sqrt(d)


def _random_basis(session, d):
    """A uniformly random orthonormal basis, as rows."""
    q, r = np.linalg.qr(ndtri(session.rng("basis").random((d, d))))
    return (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T


def _average(session, prefix, rows, members, center, radius):
    """The noisy average of the members in the ball.

    That members are close to each other is only likely, so the ball decides: any two points that
    are averaged are within 2 `radius`, and, in the domain, within its diameter.
    """
    near = members & (squared_distances(rows, center) <= math.floor(radius**2))
    survivors = np.concatenate(
        [np.empty((0, rows.n_features)), *(x[near[part]] for part, x in rows.chunks())]
    )
    found = friendly_average(
        session,
        prefix + "members",
        prefix + "average",
        survivors,
        min(radius, rows.limit),
        rho_size=session.remaining(prefix + "members"),
        rho_mean=session.remaining(prefix + "average"),
        delta=session.plan[prefix + "members"].delta,
    )
    return None if found is None else clip_to_ball(np.rint(found.mean), rows.limit)
