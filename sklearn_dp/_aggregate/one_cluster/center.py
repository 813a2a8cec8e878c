"""The first ball of a search: the box of a random grid that holds most points.

Rows are mapped to few dimensions beyond 8 features: by random signs to 4 ("grid"), or to 4 released
principal axes ("pca"). Of 16 shifts of a grid of boxes whose side is a few r, choose the one whose
fullest box holds most points, by the exponential mechanism: a shift that cuts the cluster in two
would lose it. Release its fullest box, by a stability histogram.

A neighbor adds a point to one box of every grid: the fullest box of each, and the count of one box,
move by one. The box of a point is a function of its exact integer coordinates. About `MOST_COUNTED`
rows are counted, or as many as hold enough of the cluster: rows take part by coins of their own, at
a rate that is a function of releases.

"clip" takes no box at all, and "paper" is in `_published/one_cluster`. How the methods compare:
``doc/benchmarks/one_cluster.md``.
"""

import math

import numpy as np

from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._pure_releases import choose
from ..._privacy._sealed import SealedNames
from ..._privacy._session import PrivacySession
from ..._privacy.mechanisms.stability import release_names
from ..._queries.boxes import INSIDE, Boxes, FullestBoxes, InBox, NamedBoxes, box_of
from ..._queries.grids import Active
from ..._queries.handles import GridRows
from ..._queries.samples import Coins
from ..._queries.second_moments import SecondMoment, symmetric
from ..shared.centering import noise_sd
from .balls import Region, clip_to_ball
from .radius import exponential_epsilon

CENTER_METHODS = ("grid", "pca", "clip", "paper")
_SHIFTS = 16  # random grids to choose from
_MOST_BOXED = 8  # features that are cut into boxes as they are
_PROJECTED = 4  # dimensions that more features are projected to
_PROJECTED_SIDE = 8.0  # side of a box there, in radii
_PRINCIPAL_SIDE = 2.0  # the same on axes of unit length
BASIS_STEPS = 2.0**20
"""Steps of the entries of a basis: a map by them takes integers to integers."""

MOST_COUNTED = 2**20
"""Rows whose boxes are counted, about, but for clusters that are too small for that."""

_CLEAR = 200  # standard deviations of the noise of a box: points of a cluster that is sampled
_SAFE = 1 - 1e-9


# -- boxes ------------------------------------------------------------------------------------


def grid_entries(rho: float, delta: float, *, principal: bool = False) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`heavy_box` or :func:`heavy_point`, worth `rho` and `delta`.
    `principal`: principal axes are released first, for 40% of rho."""
    if principal:
        axes = PlanEntry.gaussian("axes", 0.4 * rho, "R^2 in the norm of the second moment")
        return (axes, *grid_entries(0.6 * rho * _SAFE, delta))
    words, kind, rest = "1 unit in a box", Mechanism.STABILITY_HISTOGRAM, 0.7 * rho * _SAFE
    fullest = "1 unit in the fullest box"
    shift = PlanEntry("shift", Mechanism.EXPONENTIAL, 0.3 * rho, sensitivity=fullest)
    return (shift, PlanEntry("box", kind, rest, delta, sensitivity=words))


def signs(session: PrivacySession, d: int, k: int) -> np.ndarray:
    """A random k x d matrix of signs: projections of integers stay integers, and distances grow by
    about sqrt(k)."""
    return np.where(session.rng("projection").random((k, d)) < 0.5, -1.0, 1.0)


def rate_of_boxes(session: PrivacySession, prefix: str, size: float, target: float) -> float:
    """At what rate in (0, 1] rows are counted in boxes, by parameters and releases. A sample has
    some 200 standard deviations of the noise of a box from the cluster of `target` points."""
    noise = noise_sd(session.remaining(prefix + "box"))
    return min(1.0, max(MOST_COUNTED, _CLEAR * noise * size / target) / max(size, 1.0))


def heavy_box(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    radius: float,
    *,
    coins: Coins | None = None,
    principal: bool = False,
    replace: bool = False,
) -> Region | None:
    """A ball about an integer center that holds the box, of a few radii, of most of a cluster, or
    None.

    The radius is released, in steps. The active rows in the box are `INSIDE` from here on. With
    `coins` the box is chosen by a sample of them. `principal`: cut along released principal axes;
    only for neighbors that add or remove a row. `replace`: neighbors replace a row."""
    d = rows.n_features
    boxed = d <= _MOST_BOXED and not principal
    if principal:
        # The active rows reach farthest along these axes; they are random if noise dominates.
        moment = session.release(prefix + "axes", rows.ask(Active(SecondMoment(rows.limit))))
        _, axes = np.linalg.eigh(symmetric(moment, d) / rows.unit**2)
        matrix = np.rint(axes[:, -_PROJECTED:].T * BASIS_STEPS)
        grid = Boxes(matrix, _PRINCIPAL_SIDE * radius * BASIS_STEPS)
    elif boxed:
        # Large enough that one of the shifts leaves most of a ball of that radius in one box.
        grid = Boxes(None, radius * (1 + max(4, d)))
    else:
        grid = Boxes(signs(session, d, _PROJECTED), _PROJECTED_SIDE * radius)
    shifts = session.rng(prefix + "shifts").random((_SHIFTS, grid.width(d))) * grid.side
    best = choose(
        session,
        prefix + "shift",
        rows.ask(FullestBoxes(grid, shifts, rows.table.n_parts, coins)),
        epsilon=exponential_epsilon(session.remaining(prefix + "shift")),
    )
    (box_names,) = rows.ask(NamedBoxes(grid, shifts[best], coins=coins, replace=replace))
    box = heaviest(session, prefix + "box", box_names, grid.width(d))
    if box is None:
        return None
    rows.apply(InBox(grid, shifts[best], box))
    if not boxed:
        return Region(np.zeros(d), rows.limit, INSIDE)
    center = np.rint((box + 0.5) * grid.side - shifts[best])
    most = math.floor(rows.limit)  # integers again, or sums about it would be none
    radius = grid.side * math.sqrt(d) / 2 + math.sqrt(d)
    # Distances to a center within twice the reach of the rows are exact.
    return Region(clip_to_ball(np.clip(center, -most, most), 2 * rows.limit), radius, INSIDE)


def heavy_point(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    *,
    coins: Coins | None = None,
    replace: bool = False,
) -> np.ndarray | None:
    """A point of the grid (d,) that many rows are equal to, or None: for a radius of zero."""
    (point_names,) = rows.ask(NamedBoxes(Boxes(None, 1.0), 0.0, coins=coins, replace=replace))
    point = heaviest(session, prefix + "box", point_names, rows.n_features)
    return None if point is None else point.astype(np.float64)


def heaviest(
    session: PrivacySession,
    entry: str,
    candidates: SealedNames,
    width: int,
    rho: float | None = None,
    delta: float | None = None,
) -> np.ndarray | None:
    """Coordinates (width,) of a box with many points, by a stability histogram; None if none stands
    out. By default it costs what is left of rho, and all of delta."""
    rho = session.remaining(entry) if rho is None else rho
    delta = session.plan[entry].delta if delta is None else delta
    names, values = release_names(session, entry, candidates, rho=rho, delta=delta)
    return box_of(names[values.argmax()], width) if len(names) else None
