"""Recursive private partition of a Gaussian mixture (algorithm 3, RPGMP): terrific balls cut it
into components.

A private coreset of one point for each unit is released (:func:`..._queries.halves.unit_points`):
its heavy cells, and its k-means centers, are where balls may be centered. Nodes, sets of points,
are split, the largest first, until there are k leaves or none can be split. :meth:`Recursion.split`
looks for a terrific ball of the whole space, the smallest ones first; and if there is none and
there are more features than components, along the first k principal axes of the node, the largest
ones first: only one that is at least as large as the widest component is sure to cut between
components there. With fewer than k leaves, centers of the coreset take their place.

What are released are the cuts, never which points are where; a row's part is a function of the cuts
and of that row. The points of a node and those of its sibling are disjoint, and their sessions are
parts of the session of their parent. So a level of the tree costs what one node costs, and the tree
costs what the costliest of its chains from the root to a leaf does: at most k - 1 levels, each with
plan entries of its own.

Changed: principal components about the released center, cuts in the empty region around a ball
instead of its loss, at most k parts on all data, and the cuts as the result: the published one is
the sets of rows, which are not private."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._aggregate.kmeans.coreset import CELLS, MEANS, MOMENT, Coreset, build_coreset, principal_axes
from .._aggregate.kmeans.fit_context import Context
from .._aggregate.mixture.parts import MixtureContext, Parts, Settings, in_ball
from .._aggregate.one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from .._aggregate.shared.bounds import Axes, CenterRadius, plain_axes
from .._aggregate.shared.centering import Size
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._session import PrivacySession
from .._queries.grids import GridRows
from .._queries.halves import (
    POINTS,
    Cut,
    Divided,
    Dropped,
    LeafLabels,
    View,
    alone,
    labels_of_points,
    viewed,
)
from .._queries.whitened import NearestLabels
from .terrific import TerrificBall, joint_ball, joint_entries, points_ball, points_entries, top_axes

_CANDIDATES = {  # share of the budget of the coreset, and the sensitivity in words
    MOMENT: (0.25, "squared radius in Frobenius norm"),
    CELLS: (0.55, "a unit adds 1 to the cells of each level"),
    MEANS: (0.2, "a unit adds a residual clipped to the reach of its cell"),
}
_CANDIDATE_SHARE = 0.35  # of the partition, for the coreset; the rest is for the levels
_MOST_CANDIDATES = 60
_ROTATED_FROM = 4  # features: with fewer, principal axes are not worth a second moment
_TREE = "cell tree"
_PLACE, _FULL, _AXES, _PROJECTED = "place/", "ball/", "principal axes", "projected ball/"
_PLACE_SHARE, _AXES_SHARE = 0.15, 0.15  # of a level; the rest is for one ball, or for two
_HELD = 0.95  # of a node's points, in the ball that its radii are taken from
_WIDER = 1.5  # than that ball
_N_RADII, _RADIUS_RATIO = 14, 2**0.4
_SAFE = 1 - 1e-9
_SEARCH = Search(center_method="clip")


def partition_entries(
    rho: float, delta: float, settings: Settings, n_features: int, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `partition_parts`: of the coreset, and of k - 1 levels with equal shares."""
    entries = [
        PlanEntry(
            prefix + name,
            Mechanism.GAUSSIAN,
            _CANDIDATE_SHARE * share * rho * _SAFE,
            uses=None if name == CELLS else 1,
            sensitivity=words,
        )
        for name, (share, words) in _CANDIDATES.items()
        if name != MOMENT or n_features >= _ROTATED_FROM
    ]
    depth = settings.n_components - 1
    each = (1 - _CANDIDATE_SHARE) * rho / depth * _SAFE, delta / depth * _SAFE
    for level in range(depth):
        entries += level_entries(*each, settings, n_features, prefix, level)
    return tuple(entries)


def partition_parts(context: MixtureContext) -> Parts:
    """Cut all rows into components, or by nearest centers of the coreset if leaves are missing."""
    session, place, k = context.session, context.place, context.settings.n_components
    points = context.points()
    coreset, axes = _coreset(session, points, place, k, context.prefix)
    context.progress("coreset")
    candidates = _candidates(session, coreset, axes, context.settings, points)
    target = max(1, round(place.size * context.settings.min_weight / 2))
    root = Node(session, place.size)
    Recursion(points, candidates, target, context.settings, context.prefix).grow(root)
    context.progress("partition")
    leaves = root.leaves()
    if root.children:  # the rest of the fit is about all the rows again
        session.join([leaf.session for leaf in leaves])
    if len(leaves) < k:
        start = weighted_kmeans(coreset.points, coreset.weights, k, session.rng("start"))
        centers, path = in_ball(axes.lift(start), points.ball), "partition, then coreset"
        context.rows.apply(NearestLabels(centers))
    else:
        centers, path = _leaf_centers(root, len(leaves), coreset, axes, points), "partition"
        context.rows.apply(LeafLabels(root.cuts()))
    context.rows.table.apply(Dropped((POINTS,)))
    return Parts(session, context.rows, centers, path)


def _coreset(
    session: PrivacySession, points: GridRows, place: CenterRadius, k: int, prefix: str
) -> tuple[Coreset, Axes]:
    """A noisy cell tree of the points: its points are coordinates along their principal axes."""
    size, d = Size(place.size, math.sqrt(2 * session.remaining())), points.n_features
    context = Context(
        session=session,
        rows=alone(points, _TREE),
        n_clusters=k,
        prefix=prefix,
        size=size,
        radius=place.radius,
    )
    axes = plain_axes(d, place.radius)
    if d >= _ROTATED_FROM:
        axes, _ = principal_axes(context, context.left(MOMENT))
    coreset = build_coreset(context, axes, context.left(CELLS))
    points.table.apply(Dropped((_TREE,)))
    return coreset, axes


def _candidates(
    session: PrivacySession, coreset: Coreset, axes: Axes, settings: Settings, points: GridRows
) -> np.ndarray:
    """Where balls may be centered, as integers (m, d): heavy cells of the coreset, and its centers
    by k-means for 1, 2, ... k clusters, as no cell need be heavy between components."""
    heavy = np.argsort(-coreset.weights[: coreset.n_leaves], kind="stable")[:_MOST_CANDIDATES]
    candidates = [coreset.points[heavy]]
    candidates += [
        weighted_kmeans(coreset.points, coreset.weights, k, session.rng(f"{k} candidates"))
        for k in range(1, settings.n_components + 1)
    ]
    return in_ball(axes.lift(np.concatenate(candidates)), points.ball)


def _leaf_centers(
    root: Node, n_leaves: int, coreset: Coreset, axes: Axes, points: GridRows
) -> np.ndarray:
    """The mean of the coreset in each leaf (n_leaves, d), or of the rows: a start, at no cost."""
    places = in_ball(axes.lift(coreset.points), points.ball)
    labels = labels_of_points(places, points.ball, root.cuts())
    mass = np.bincount(labels, coreset.weights, minlength=n_leaves)
    sums = np.stack(
        [np.bincount(labels, coreset.weights * column, minlength=n_leaves) for column in places.T],
        axis=1,
    )
    return np.rint(sums / np.maximum(mass, 1e-300)[:, None])


# -- the nodes -------------------------------------------------------------------------------------


def _level(prefix: str, number: int) -> str:
    return f"{prefix}level {number}/"


def _projects(settings: Settings, n_features: int) -> bool:
    """True if nodes have principal components of their own: a public fact."""
    return n_features > settings.n_components


def level_entries(
    rho: float, delta: float, settings: Settings, n_features: int, prefix: str, number: int
) -> tuple[PlanEntry, ...]:
    """Plan entries of the nodes of one level, each of which may use all: `rho` and `delta` at the
    most. The second ball costs as much as the first; the root is on level 0."""
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
    """A part of the points, cut in two, or a leaf, without view, ball or children.

    Its releases go through the session; `size` is released, `depth` the number of cuts above it.
    Parts hold the `number` of the node that each of their points is in."""

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
        """Split by a released ball, into disjoint sets of units: see :mod:`.._queries.halves`."""
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
        """Split the largest nodes, by released sizes, until there are k or none can be split: the
        order of splits tells nothing that is not released. On worst-case data both children could
        be split for ever; the count of leaves ends that."""
        k, open_, n_leaves = self.settings.n_components, [root], 1
        while open_ and n_leaves < k:
            node = max(open_, key=lambda each: each.size)
            open_.remove(node)
            if node.depth < k - 1 and self.split(node):
                n_leaves += 1
                open_ += node.children

    def split(self, node: Node) -> bool:
        """Look for a terrific ball, in the whole space, and if there is none, in the projection."""
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
        """A terrific ball of the node in the coordinates of the view, or None: of radii up to its
        limit, down to 2**(-0.4 * 13) of it, a 37th. `largest`: large balls are preferred."""
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
