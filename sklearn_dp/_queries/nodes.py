"""Parts of the points, one for each unit, that released balls cut off: disjoint sets of units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._privacy._grid import clip_integer_rows
from .._privacy._integers import bounded_integers, exact_integers
from .._privacy._units import Units
from .._rows.row_sums import nearest
from .._rows.rows import Rows
from .._rows.table import ROWS, Part
from ._query import IntegerPoints, Public, Step
from .balls import squared_distances
from .grids import ACTIVE, projected
from .halves import along, inner_table
from .handles import GridRows
from .whitened import LABELS

__all__ = [
    "CHOSEN", "NODES", "BallLabels", "Cut", "Divided", "LeafLabels", "TakenAway", "View",
    "chosen_points", "labels_of_points", "viewed",
]  # fmt: skip

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
    center: np.ndarray
    square: float
    inside: "Cut | None"  # None: a leaf
    outside: "Cut | None"  # None: a leaf

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


class TakenAway(Step):
    """Points within a square of a center are looked at no more."""

    center: IntegerPoints
    square: float

    def on(self, part: Part) -> Part:
        far = squared_distances(part[ROWS], self.center) > self.square
        return part.having(**{ACTIVE: part[ACTIVE] & far})


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
