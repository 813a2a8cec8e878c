"""The nodes of a recursive partition: each looks for a terrific ball, and is cut by it in two.

A node is a set of points. :meth:`Recursion.split` makes these releases about it:

1. Where its points are: a ball that holds nearly all of them.
2. A terrific ball of the whole space, the smallest ones first (see :mod:`.terrific`).
3. If there is none and there are more features than components: the first k principal axes of the
   node about its released center, and a terrific ball along them, the largest ones first. In the
   whole space every terrific ball cuts between components; along the axes only one that is at
   least as large as the widest component is sure to, and the largest ones are.

A ball splits the node into what is inside of it and what is outside. What is released are the
cuts, never which points are where; a row's part is a function of the cuts and of that row.

The points of a node and those of its sibling are disjoint, and their sessions are parts of the
session of their parent. So a level of the tree costs what one node costs, and the tree costs what
the costliest of its chains from the root to a leaf does: at most k - 1 levels, each with plan
entries of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._aggregate.mixture.parts import Settings
from ..._aggregate.one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows
from ..._queries.nodes import Cut, Divided, View, viewed
from .spherical import top_axes
from .terrific import TerrificBall, joint_ball, joint_entries
from .terrific_points import points_ball, points_entries

_PLACE, _FULL, _AXES, _PROJECTED = "place/", "ball/", "principal axes", "projected ball/"
_PLACE_SHARE, _AXES_SHARE = 0.15, 0.15  # of a level; the rest is for one ball, or for two
_HELD = 0.95  # of a node's points, in the ball that its radii are taken from
_WIDER = 1.5  # than that ball
_N_RADII, _RADIUS_RATIO = 14, 2**0.4
_SAFE = 1 - 1e-9
_SEARCH = Search(center_method="clip")


def _level(prefix: str, number: int) -> str:
    return f"{prefix}level {number}/"


def _projects(settings: Settings, n_features: int) -> bool:
    """True if nodes have principal components of their own: a public fact."""
    return n_features > settings.n_components


def level_entries(
    rho: float, delta: float, settings: Settings, n_features: int, prefix: str, number: int
) -> tuple[PlanEntry, ...]:
    """Plan entries of the nodes of one level, each of which may use all of them.

    A node costs `rho` and `delta` at the most. The second ball costs as much as the first, whether
    there is one or not. `prefix` is that of the partition; the root is on level 0.
    """
    prefix = _level(prefix, number)
    place = one_cluster_entries(_PLACE_SHARE * rho, 0.0, _SEARCH, prefix + _PLACE)
    rest, balls = (1 - _PLACE_SHARE) * rho, [_FULL]
    axes: tuple[PlanEntry, ...] = ()
    if _projects(settings, n_features):
        words = "squared radius of the node in Frobenius norm"
        cost = _AXES_SHARE * rho
        axes = (PlanEntry(prefix + _AXES, Mechanism.GAUSSIAN, cost, sensitivity=words),)
        rest, balls = rest - cost, [_FULL, _PROJECTED]
    rest, delta = rest / len(balls) * _SAFE, delta / len(balls)
    entries = [
        joint_entries(rest, prefix + ball)
        if settings.options.balls == "joint"
        else points_entries(rest, delta, prefix + ball)
        for ball in balls
    ]
    return (*place, *entries[0], *axes, *(entry for part in entries[1:] for entry in part))


class Node:
    """A part of the points; cut in two, or a leaf.

    The releases about its points go through the session; `size` is their released number, `depth`
    the number of cuts above it. `number` is that of the node: parts hold the number of the node
    that each of their points is in; the root makes the iterator of them. A leaf has no view, ball
    or children; the children of others are inside and outside.
    """

    def __init__(
        self,
        session: PrivacySession,
        size: float,
        depth: int = 0,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.session, self.size, self.depth = session, size, depth
        self._numbers = itertools.count() if numbers is None else numbers
        self.number = next(self._numbers)
        self.view: View | None = None
        self.ball: TerrificBall | None = None
        self.children: tuple[Node, ...] = ()

    def cut(self, points: GridRows, view: View, ball: TerrificBall) -> None:
        """Split by a released ball.

        The two parts of the session are about disjoint sets of units: see :mod:`..._queries.nodes`.
        """
        self.view, self.ball = view, ball
        self.children = tuple(
            Node(self.session.part(label), size, self.depth + 1, self._numbers)
            for label, size in (("inside", ball.inside), ("outside", ball.outside))
        )
        children = tuple(child.number for child in self.children)
        cut = Cut(view, ball.center, ball.square, None, None)
        points.apply(Divided(self.number, cut, children))

    def leaves(self) -> list[Node]:
        """The leaves below, from the inside out."""
        if not self.children:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]

    def cuts(self) -> Cut | None:
        """The releases of the node and those below; None for a leaf."""
        if self.view is None or self.ball is None:
            return None
        below = (child.cuts() for child in self.children)
        return Cut(self.view, self.ball.center, self.ball.square, *below)


@dataclass(frozen=True)
class Recursion:
    """The settings that all nodes have in common."""

    points: GridRows  # one for each unit
    candidates: np.ndarray  # (m, d), integers; released: where balls may be centered
    target: int  # t, how many points either side of a cut should have; from the released size
    settings: Settings
    prefix: str

    def grow(self, root: Node) -> None:
        """Split the largest nodes first, until there are k of them or none can be split.

        Largest by released sizes: the order of splits tells nothing that is not released. A node
        at depth k - 1 has no plan entries left. On worst-case data both children could be split
        for ever; the count of leaves ends that.
        """
        k, open_, n_leaves = self.settings.n_components, [root], 1
        while open_ and n_leaves < k:
            node = max(open_, key=lambda each: each.size)
            open_.remove(node)
            if node.depth < k - 1 and self.split(node):
                n_leaves += 1
                open_ += node.children

    def split(self, node: Node) -> bool:
        """Look for a terrific ball, in the whole space and in the projection; whether there is one.

        Which releases are made depends on earlier ones: the projection is paid for if no ball of
        the whole space has been released.
        """
        prefix = _level(self.prefix, node.depth)
        whole = View(np.zeros(self.points.n_features), self.points.limit)
        points = viewed(self.points, node.number, whole)
        place = fit_one_cluster(node.session, points, _HELD, _SEARCH, prefix=prefix + _PLACE)
        reach = max(min(_WIDER * math.sqrt(place.square), 2 * self.points.limit), 1.0)
        view = View(place.center, reach)
        ball = self.find(node, view, prefix + _FULL, largest=False)
        if ball is None and _projects(self.settings, self.points.n_features):
            basis = top_axes(
                node.session,
                prefix + _AXES,
                viewed(self.points, node.number, whole),
                view.limit,
                self.settings.n_components,
                view.origin,
            )
            view = View(view.origin, view.limit, basis)
            ball = self.find(node, view, prefix + _PROJECTED, largest=True)
        if ball is None:
            return False
        node.cut(self.points, view, ball)
        return True

    def find(self, node: Node, view: View, prefix: str, *, largest: bool) -> TerrificBall | None:
        """A terrific ball of the node in some coordinates, those of the view, or None.

        The limit of the view is the largest radius; the smallest is 2**(-0.4 * 13) of it, a 37th.
        `largest`: large balls are preferred.
        """
        options = self.settings.options
        rows = viewed(self.points, node.number, view)
        common = (node.session, prefix, rows, self.target)
        if options.balls == "joint":
            radii = view.limit * _RADIUS_RATIO ** -np.arange(_N_RADII - 1, -1, -1.0)
            return joint_ball(
                *common,
                options.separation,
                view.of_points(self.candidates),
                largest=largest,
                radii=np.maximum(radii, 1.0),
            )
        return points_ball(
            *common,
            options.separation,
            largest=largest,
            least=max(view.limit * _RADIUS_RATIO ** (1 - _N_RADII), 1.0),
            most=view.limit,
            size=node.size,
        )
