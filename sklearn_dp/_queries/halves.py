"""Questions for separated Gaussians: halves of a table, nodes of a tree, and terrific balls.

*Halves and points of units* are tables whose rows are made of those of another table, where these
are. Both are drawn by the numbers of units (`_queries/samples.py`), however the rows are cut into
parts. Coins are independent, so a unit that comes or goes is in one half and moves no other unit.
Halves by position would not do: with one row less at the top, a row of another unit goes from one
half to the other.

*Inner tables* are a :class:`.Part` in the state of each part, under a name. A pass over one is a
pass over the outer table, for every engine.

*Nodes* are the points, one for each unit, that released balls cut off: disjoint sets of units.

*Scores* of terrific balls (Kamath et al., NeurIPS 2019, definition 5.2); what these are, see
:mod:`sklearn_dp._published.terrific`.

The published score has a bounded sensitivity for a ball that is public or released, and not for one
about a data point that is chosen without noise: moving this point moves the ball.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

import numpy as np

from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._grid import Domain, clip_integer_rows
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, UnitFacts, Units
from .._privacy.mechanisms.stability import UnitDraws, addressed_draws
from .._rows.rows import Rows, nearest
from .._rows.table import ROWS, Engine, Part, PartSource, PassFunction, SplitFunction, Table
from ._query import Facts, IntegerPoints, PointQuery, Public, Step, TableRows
from .balls import collected, neighbor_counts, squared_distances
from .grids import ACTIVE, GridRows, projected
from .samples import ByPart, Coins, UnitNumbers, numbered
from .whitened import LABELS

__all__ = [
    "BallLabels",
    "CHOSEN",
    "Cut",
    "Divided",
    "LeafLabels",
    "NODES",
    "View",
    "chosen_points",
    "labels_of_points",
    "viewed",
]


# -- halves and points of units --------------------------------------------------------------------


class InnerEngine:
    """Computes on parts that parts of another table hold, by name; see :class:`.Engine`."""

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name, self.n_parts = table, name, table.engine.n_parts

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """In the next pass over the outer table."""
        self.table.update(_inside, self.name, function, broadcast)

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """A pass over the outer table."""
        return self.table.sums(_inside, self.name, function, broadcast)

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """A value for each inner row."""
        return self.table.rows(_rows_inside, self.name, function, broadcast)

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """Not for inner rows: engines bring those together that they have read."""
        raise TypeError("rows of an inner table do not travel.")

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> Engine:
        """Neither are there new parts of them."""
        raise TypeError("rows of an inner table do not travel.")


def inner_table(
    rows: TableRows,
    name: str,
    n_features: int,
    make: Callable[..., Part],
    *broadcast: Any,
    units: UnitFacts | None = None,
) -> TableRows:
    """A handle of what `make`, a pure function of a module, gives for each part in the next pass.
    Another table of the same name ends. Its rows are units of weight one, unless `units` say what
    else they are."""
    table = rows._raw()
    if units is None and (table.units.grouped or table.units.scale != 1):
        raise TypeError("a row must be all of its unit here.")
    table.update(_made, name, make, broadcast)
    units = replace(units or UnitFacts(), unit=table.units.unit)
    return TableRows(Table(InnerEngine(table, name), n_features, np.float64, units))


def alone(rows: GridRows, name: str) -> GridRows:
    """Return the same rows with a state of their own, each row as a unit."""
    inner = inner_table(rows.table, name, rows.n_features, rows_alone)
    return GridRows(inner, rows.ball, rows.unit)


def rows_alone(part: Part) -> Part:
    """The rows of a part, for a table with a state of its own."""
    return Part(part.source, part.units, {ROWS: part[ROWS]})


class Dropped(Step):
    """Parts let go of inner tables by name, or of rows on a grid: they are the memory of a fit."""

    names: tuple[str, ...] = ()
    rows: bool = False

    def on(self, part: Part) -> Part:
        return part.without(*self.names, *([ROWS] if self.rows else []))


def _made(part: Part, name: str, make: Callable[..., Part], broadcast: tuple) -> tuple[Part, tuple]:
    return part.having(**{name: make(part, *broadcast)}), ()


def _inside(part: Part, name: str, function: PassFunction, broadcast: tuple) -> tuple[Part, tuple]:
    inner, sums = function(part[name], *broadcast)
    return part.having(**{name: inner}), sums


def _rows_inside(
    part: Part, name: str, function: Callable[..., np.ndarray], broadcast: tuple
) -> np.ndarray:
    return function(part[name], *broadcast)


POINTS = "points"
"""Name of the table of :func:`unit_points`, in the state of the parts."""

_SECOND, _HALF = "second half", "half of the points"


def in_second(draws: np.ndarray) -> np.ndarray:
    """True where units are in the second half: a fair coin of each, made of its 64 random bits."""
    return (draws & np.uint64(1)).astype(bool)


def in_first(draws: np.ndarray) -> np.ndarray:
    """True where units are in the first half: the others."""
    return (draws & np.uint64(1)) == 0


def second_half(
    rows: GridRows, numbers: UnitNumbers, draws: UnitDraws, domain: Domain, known: Domain | None
) -> GridRows:
    """The rows of the second half of the units, moved into public bounds and clipped into a domain.
    All rows of a unit are in it or none: what is released of it costs nothing in the other half."""
    table = rows.table
    inner = inner_table(
        table, _SECOND, table.n_features, _chosen_half, numbers, draws, known, units=table.units
    )
    return GridRows.quantize(inner, domain)


def unit_points(
    session: PrivacySession,
    rows: GridRows,
    domain: Domain,
    known: Domain | None,
    numbers: UnitNumbers | None = None,
) -> GridRows:
    """One row of each unit, drawn at random, each of which is then a unit of its own, on the grid.

    Counts of points in balls have sensitivity one for points; a unit of many rows would have to
    share its weight among balls. A row is drawn from the bits that belong to the unit, so adding or
    removing a unit adds or removes one point and leaves the others."""
    table = rows.table
    start = partial(inner_table, table, POINTS, rows.n_features)
    if not rows.units.grouped:  # which is public
        return GridRows(start(rows_alone), rows.ball, rows.unit)
    size = (numbered(table) if numbers is None else numbers).size
    (members,) = table._raw().sums(_members)
    drawn = _drawn_rows(members, addressed_draws(session, size).take(0, size), size)
    inner = start(_drawn_points, drawn, domain, known, table.n_parts, units=UnitFacts())
    return GridRows(inner, rows.ball, rows.unit)


def half_of_points(
    points: GridRows,
    numbers: UnitNumbers,
    draws: UnitDraws,
    *,
    second: bool,
    axes: np.ndarray | None = None,
) -> GridRows:
    """The points along released integer axes (d, q), of which those of a half are looked at."""
    q = points.n_features if axes is None else axes.shape[1]
    inner = inner_table(points.table, _HALF, q, _half_of_part, numbers, draws, second, axes)
    return GridRows(inner, points.limit, points.unit)


def along(rows: Rows, axes: np.ndarray | None) -> Rows:
    """Integer coordinates along the axes, as long as a row may be at the most."""
    if axes is None:
        return rows
    return rows.map(partial(projected, basis=axes, limit=rows.limit), axes.shape[1])


class _ChosenSource(PartSource):
    """Some rows of a source, moved into public bounds."""

    def __init__(self, source: PartSource, places: np.ndarray, within: Any) -> None:
        self.source, self.places, self.within = source, places, within
        self.number = source.number

    def read(self) -> Any:
        return _ChosenRows(self.source.read(), self.places, self.within)

    def n_rows(self) -> int:
        return len(self.places)


class _ChosenRows:
    """These rows, made when they are asked for: each is a function of one row."""

    def __init__(self, X: Any, places: np.ndarray, within: Any) -> None:
        self.X, self.places, self.within = X, places, within
        self.shape = (len(places), X.shape[1])

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> np.ndarray:
        rows = self.X[self.places[part]]
        return rows if self.within is None else self.within.clip_points(rows)


# -- passes ----------------------------------------------------------------------------------------


def _chosen_half(part: Part, numbers: Any, draws: UnitDraws, within: Domain | None) -> Part:
    """The rows of the second half; of their units each is there as a whole."""
    there = in_second(numbers.draws_of(part, draws))
    source = _ChosenSource(part.source, np.flatnonzero(there), within)
    return Part(source, part.units.take(there))


def _half_of_part(
    part: Part, numbers: Any, draws: UnitDraws, second: bool, axes: np.ndarray | None
) -> Part:
    active = (in_second if second else in_first)(numbers.draws_of(part, draws))
    return Part(part.source, part.units, {ROWS: along(part[ROWS], axes), ACTIVE: active})


def _members(part: Part) -> tuple[Part, tuple[ByPart]]:
    """The numbers of the units of a part, and how many rows of each it has."""
    units = part.units
    there, counts = np.unique(cast("np.ndarray", units.index), return_counts=True)
    ids = there if units.numbers is None else units.numbers[there]
    return part, (ByPart({part.source.number: (exact_integers(ids), counts)}),)


def _drawn_rows(members: ByPart, draws: np.ndarray, size: int) -> Any:
    """Which row stands for each unit, by `draws` (uint64, (size,)): units and rows of each part."""
    totals = np.zeros(size, dtype=np.int64)
    for ids, counts in members.values.values():
        totals[ids] += counts
    # 32 random bits times the number of rows, over 2**32: a row whose probability is off by at
    # most 2**-32. This is no noise, so that bias costs no privacy.
    low = draws & np.uint64(2**32 - 1)
    chosen = ((low * totals.view(np.uint64)) >> np.uint64(32)).view(np.int64)
    drawn = {}
    for number in sorted(members.values):  # in the order of the rows
        ids, counts = members.values[number]
        here = (chosen[ids] >= 0) & (chosen[ids] < counts)
        drawn[number] = ids[here], chosen[ids[here]]
        chosen[ids] -= counts
    return drawn


def _drawn_points(
    part: Part, drawn: Any, domain: Domain, within: Domain | None, n_parts: int
) -> Part:
    """The rows of a part that stand for units, in the order of these."""
    units, (ids, ranks) = part.units, drawn[part.source.number]
    numbers = np.arange(units.size) if units.numbers is None else units.numbers
    numbers_of_units = numbers[units.index]
    order = np.argsort(numbers_of_units, kind="stable")
    ids, ranks = ids[np.argsort(ids)], ranks[np.argsort(ids)]
    places = order[np.searchsorted(numbers_of_units[order], ids) + ranks]
    source, alone = _ChosenSource(part.source, places, within), Units(len(places))
    alone.numbers = ids
    return Part(source, alone, {ROWS: Rows.of_source(source, domain, len(places), n_parts=n_parts)})


# -- nodes -----------------------------------------------------------------------------------------


NODES = "nodes"
"""Name, in the state of a part, of the number of the node that each of its points is in."""
CHOSEN = "chosen points"
"""Name of the table of :func:`chosen_points`."""

_VIEW = "view"


class View(Public):
    """Integer coordinates of a node: of the whole space, or along its principal axes."""

    # (d,), integers: the released center of the node; only coordinates along axes are taken about
    # it
    origin: np.ndarray
    # released radius about it, in steps: of the largest ball to look for, and of the clip before
    # coordinates along axes are taken
    limit: float
    basis: np.ndarray | None = None  # (d, k), integers, in steps of 2**-20; None: the whole space

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return len(self.origin) if self.basis is None else self.basis.shape[1]

    def of(self, rows: Rows) -> Rows:
        """Rows of coordinates, each a function of its row."""
        if self.basis is None:
            return rows
        return rows.map(self._project, self.n_features, limit=self.limit)

    def of_points(self, points: np.ndarray) -> np.ndarray:
        """Released integer points."""
        return points if self.basis is None else self._project(points)

    def _project(self, x: np.ndarray, squares: Any = None) -> np.ndarray:
        assert self.basis is not None
        # Integers of at most 2**26 and 2**20, their sums below 2**53: exact.
        clipped = clip_integer_rows(x - self.origin, self.limit)
        return projected(clipped, squares, basis=self.basis, limit=self.limit)


class Cut(Public):
    """The releases of a node that has been cut, and of those below it."""

    view: View
    center: IntegerPoints
    square: float
    inside: Self | None  # None: a leaf
    outside: Self | None  # None: a leaf

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return sum(1 if each is None else each.n_leaves for each in (self.inside, self.outside))

    def holds(self, rows: Rows) -> np.ndarray:
        """True where a row is inside the ball: a function of that row and of releases."""
        return squared_distances(self.view.of(rows), self.center) <= self.square


def _leaf_labels(rows: Rows, cut: Cut | None) -> np.ndarray:
    """The leaf of each row, from the inside out. Without a cut there is one leaf."""
    if cut is None:
        return np.zeros(rows.n_rows, dtype=np.int64)
    first, second = _leaf_labels(rows, cut.inside), _leaf_labels(rows, cut.outside)
    return np.where(cut.holds(rows), first, second + (cut.inside.n_leaves if cut.inside else 1))


def labels_of_points(points: np.ndarray, ball: float, cut: Cut | None) -> np.ndarray:
    """The leaves of released integer points in a ball."""
    return _leaf_labels(Rows.of(points, ball), cut)


class LeafLabels(Step):
    """Each row has the number of its leaf."""

    cut: Cut | None

    def on(self, part: Part) -> Part:
        return part.having(**{LABELS: _leaf_labels(part[ROWS], self.cut)})


class BallLabels(Step):
    """The number of the first ball that a row is near, or of the nearest center, on axes (d, q)."""

    axes: np.ndarray | None
    centers: IntegerPoints  # (k, q), integers
    squares: np.ndarray  # (k,), of the distances up to which rows are near

    def on(self, part: Part) -> Part:
        rows = along(part[ROWS], self.axes)
        labels = exact_integers(nearest(rows, self.centers)[0])
        for number in reversed(range(len(self.centers))):  # the first one is written last
            near = squared_distances(rows, self.centers[number]) <= self.squares[number]
            labels[near] = number
        return part.having(**{LABELS: labels})


class Divided(Step):
    """The points of the node of some number go to its children: inside, and outside."""

    number: int
    cut: Cut
    children: Sequence[int]

    def on(self, part: Part) -> Part:
        rows = part[ROWS]
        node = part.state.get(NODES, np.zeros(rows.n_rows, dtype=np.int32))
        children = np.where(self.cut.holds(rows), *self.children)
        node = np.where(node == self.number, children, node)
        return part.having(**{NODES: node.astype(np.int32, casting="same_kind")})


def viewed(points: GridRows, number: int, view: View) -> GridRows:
    """The points of a node in some coordinates; until the next look."""
    inner = inner_table(points.table, _VIEW, view.n_features, _viewed_part, number, view)
    ball = points.ball if view.basis is None else view.limit
    return GridRows(inner, ball, points.unit)


def _viewed_part(part: Part, number: int, view: View) -> Part:
    """The points of a part in some coordinates, of which those of a node are looked at."""
    node = part.state.get(NODES)
    active = {} if node is None else {ACTIVE: node == number}
    return Part(part.source, part.units, {ROWS: view.of(part[ROWS]), **active})


def chosen_points(rows: GridRows, origin: np.ndarray | None = None) -> GridRows:
    """Those points that are looked at, about a released integer origin, in steps of one."""
    ball = rows.ball if origin is None else rows.limit + float(np.linalg.norm(origin))
    inner = inner_table(rows.table, CHOSEN, rows.n_features, _chosen_part, origin)
    return GridRows(inner, ball)


def _chosen_part(part: Part, origin: np.ndarray | None) -> Part:
    rows, chosen = part[ROWS], part.state.get(ACTIVE)
    rows_inside = [np.empty((0, rows.n_features), dtype=np.int32)]
    for place, x in rows.chunks():
        x = x if chosen is None else x[chosen[place]]
        # Integers of at most 2**26.
        rows_inside.append(bounded_integers(x if origin is None else x - origin, np.int32))
    points = np.concatenate(rows_inside)
    ball = rows.limit if origin is None else rows.limit + float(np.linalg.norm(origin))
    return Part(part.source, Units(len(points)), {ROWS: Rows.of(points, ball)})


# -- terrific balls --------------------------------------------------------------------------------


def terrific_scores(
    inside: np.ndarray, around: np.ndarray, outside: np.ndarray, t: int
) -> np.ndarray:
    """min(in, t; out, t; t - min(around, t)): between 0 and t, elementwise.

    One point more or less moves one of the three disjoint counts by one, so for a fixed ball the
    score moves by at most one. The published count of points within c r is the same, as
    ``around`` is what is not inside. Without the cap of ``around`` the score would have no lower
    bound, and the sum of :class:`LargestScores` no bounded sensitivity."""
    return np.minimum(np.minimum(np.minimum(inside, outside), t), t - np.minimum(around, t))


class BallScores(PointQuery):
    """The scores of balls of active points about centers (m, q), of squares (r,), which are to be
    empty up to larger ones; and a public `tilt` (r,) more: (m r,)."""

    centers: IntegerPoints
    near: np.ndarray
    wide: np.ndarray
    t: int
    tilt: np.ndarray

    def _check(self) -> None:
        if not (self.near <= self.wide).all():
            raise ValueError("what is around a ball is not inside of it.")

    @property
    def _every(self) -> np.ndarray:
        return np.unique(np.append(self.near, self.wide))

    def on(self, part: Part) -> tuple[Part, tuple]:
        """One pass: each squared distance falls into a cell between two of all the radii, and sums
        of cells from the left are the counts of balls."""
        rows, active, every = part[ROWS], part.state.get(ACTIVE), self._every
        m, width, directions = len(self.centers), len(every) + 1, -2.0 * self.centers.T
        counts, offset = np.zeros((m, width), dtype=np.int64), np.arange(m) * width
        lengths = np.einsum("ij,ij->i", self.centers, self.centers)
        for place, x in rows.chunks(m):
            x = x if active is None else x[active[place]]
            # Integers of at most 2**51 all the way: exact, whatever the order of the sums is.
            squared = x @ directions
            squared += lengths
            squared += np.einsum("ij,ij->i", x, x)[:, None]
            cells = np.searchsorted(every, squared.ravel()).reshape(squared.shape) + offset
            counts += np.bincount(cells.ravel(), minlength=counts.size).reshape(counts.shape)
        return part, (counts,)

    def exact(self, sums: tuple) -> tuple:
        below = np.cumsum(sums[0], axis=1)
        inside, within = (
            below[:, np.searchsorted(self._every, squares)] for squares in (self.near, self.wide)
        )
        outside = below[:, -1:] - within
        scores = terrific_scores(inside, within - inside, outside, self.t) + self.tilt
        return (scores.ravel(),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """See :func:`terrific_scores`."""
        return (Claim.of_entries(1.0, len(self.centers) * len(self.near)),)


class LargestScores(PointQuery):
    """t L(r) for each radius: the sum of the t largest scores of balls about active points, or
    those of a sample. Each is between 0 and t**2; short of t points, the missing scores are 0."""

    radii: np.ndarray
    ratio: float
    t: int
    coins: Coins | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (collected(part, ACTIVE, self.coins),)

    def exact(self, sums: tuple) -> tuple:
        points = np.concatenate(sums[0].in_order())
        near, wide = np.floor(np.square(self.radii)), np.floor(np.square(self.ratio * self.radii))
        top = min(self.t, len(points))
        if not (top and len(near)):
            return (np.zeros(len(near), dtype=np.int64),)
        every = _Squares(np.append(near, wide))
        counts = exact_integers(neighbor_counts(points, every))
        inside = counts[:, np.searchsorted(every.squares, near)]
        within = counts[:, np.searchsorted(every.squares, wide)]
        scores = terrific_scores(inside, within - inside, len(points) - within, self.t)
        return (np.partition(scores, len(scores) - top, axis=0)[len(scores) - top :].sum(axis=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Adding or removing or replacing a point moves each by at most 2 t - 1. Of the t points
        that attain the larger maximum at most one is not in both data sets; it brings at most t,
        and each of the t - 1 others has a score that moves by at most one. So the smaller maximum
        is no more than t + t - 1 below. In a sample a point is there or not."""
        rate = 1.0 if self.coins is None else self.coins.rate
        return (Claim.of_entries(2.0 * self.t - 1, len(self.radii), rate),)


class _Squares:
    """Squared radii in increasing order, as `neighbor_counts` takes them."""

    def __init__(self, squares: np.ndarray) -> None:
        self.squares = np.unique(squares)

    def bins(self, squared: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.squares, squared)
