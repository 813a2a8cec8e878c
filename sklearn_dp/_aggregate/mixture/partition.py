"""Recursive private partition of a Gaussian mixture [1]_: terrific balls cut it into components.

A node is a set of points. Where they are is released first. Then a terrific ball is looked for in
the whole space, the smallest ones first; if there is none, one in the space of the node's first
principal components, the largest ones first. A ball splits the node in two: inside, and outside.
If there is none either, the node is a component. What is released are the cuts, never which
points are where; a row's part is a function of the cuts and of that row.

The points of a node and those of its sibling are disjoint, so that a level of the tree costs
what a node costs. A chain of nodes has at most k - 1 levels, each with its own plan entries.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; algorithm 3 (RPGMP), with principal
   components about the released center, with cuts in the empty region around a ball instead of
   its loss, and with at most k parts on all data.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import clip_integer_rows
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._units import Units
from ..kmeans.context import Context
from ..kmeans.coreset import build_coreset
from ..kmeans.principal_axes import principal_axes
from ..one_cluster.balls import squared_distances
from ..one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from ..shared.axes import plain_axes, second_moment
from ..shared.centering import Size
from ..shared.rows import Rows, nearest
from ..shared.weighted_kmeans import weighted_kmeans
from .parts import Parts, representatives
from .terrific import joint_ball, joint_entries, points_ball, points_entries

__all__ = ["partition_entries", "partition_parts"]

_MOMENT, _CELLS, _MEANS, _AXES = "second moment", "cells", "cell means", "principal axes"
_PLACE, _FULL, _PROJECTED = "place/", "ball/", "projected ball/"
_CANDIDATES = {_MOMENT: 0.25, _CELLS: 0.55, _MEANS: 0.2}
_CANDIDATE_SHARE = 0.35
_PLACE_SHARE, _AXES_SHARE = 0.15, 0.15
_MOST_CANDIDATES = 60
_HELD = 0.95  # of a node's points, in the ball that its radii are taken from
_WIDER = 1.5  # than that ball
_N_RADII, _RADIUS_RATIO = 14, 2**0.4
_BASIS_STEPS = 2.0**20
_SAFE = 1 - 1e-9
_SEARCH = Search(center_method="clip")
_WORDS = {
    _MOMENT: "squared radius in Frobenius norm",
    _CELLS: "a unit adds 1 to the cells of each level",
    _MEANS: "a unit adds a residual clipped to the reach of its cell",
    _AXES: "squared radius of the node in Frobenius norm",
}


# -- plan ---------------------------------------------------------------------------------------


def partition_entries(rho, delta, settings, n_features, prefix):
    """Plan entries of `partition_parts`, at most `rho` and `delta` on a chain of nodes."""
    entries = [
        PlanEntry(
            prefix + name,
            Mechanism.GAUSSIAN,
            _CANDIDATE_SHARE * share * rho * _SAFE,
            uses=None if name == _CELLS else 1,
            sensitivity=_WORDS[name],
        )
        for name, share in _CANDIDATES.items()
        if name != _MOMENT or n_features > 3
    ]
    depth = settings.n_components - 1
    for level in range(depth):
        entries += _level_entries(
            (1 - _CANDIDATE_SHARE) * rho / depth * _SAFE,
            delta / depth * _SAFE,
            settings,
            n_features,
            _level(prefix, level),
        )
    return tuple(entries)


def _level(prefix, number):
    return f"{prefix}level {number}/"


def _projects(settings, n_features):
    """Whether nodes have principal components of their own."""
    return n_features > settings.n_components


def _level_entries(rho, delta, settings, n_features, prefix):
    place = one_cluster_entries(_PLACE_SHARE * rho, 0.0, _SEARCH, prefix + _PLACE)
    rest, balls = (1 - _PLACE_SHARE) * rho, [_FULL]
    axes = ()
    if _projects(settings, n_features):
        axes = (
            PlanEntry(
                prefix + _AXES, Mechanism.GAUSSIAN, _AXES_SHARE * rho, sensitivity=_WORDS[_AXES]
            ),
        )
        rest, balls = rest - _AXES_SHARE * rho, [_FULL, _PROJECTED]
    rest, delta = rest / len(balls) * _SAFE, delta / len(balls)
    found = [
        joint_entries(rest, prefix + ball)
        if settings.options.balls == "joint"
        else points_entries(rest, delta, prefix + ball)
        for ball in balls
    ]
    return (*place, *found[0], *axes, *(entry for part in found[1:] for entry in part))


# -- the tree -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """Integer coordinates of a node: of the whole space, or along its principal axes."""

    origin: np.ndarray
    limit: float
    basis: np.ndarray | None = None

    def of(self, rows):
        """Rows of coordinates, each a function of its row: products are exact."""
        if self.basis is None:
            return rows
        return rows.map(lambda x, _: self._project(x), self.basis.shape[1])

    def of_points(self, points):
        """Released integer points."""
        return points if self.basis is None else self._project(points)

    def _project(self, x):
        clipped = clip_integer_rows(x - self.origin, self.limit)
        # Integers of at most 2**26 and 2**20, their sums below 2**53: exact.
        return np.floor(clipped @ self.basis * (1 / _BASIS_STEPS))


class _Node:
    """A part of the points; cut in two, or a leaf.

    Attributes
    ----------
    session : PrivacySession
        Of the releases about its points.
    active : ndarray of bool of shape (n,)
    size : float
        Released number of points.
    depth : int
    view, ball : _View and TerrificBall, or None for a leaf
    children : tuple of _Node
        Inside and outside.
    """

    def __init__(self, session, active, size, depth=0):
        self.session, self.active, self.size, self.depth = session, active, size, depth
        self.view = self.ball = None
        self.children = ()

    def cut(self, points, view, ball):
        """Split by a released ball."""
        self.view, self.ball = view, ball
        inside = self.inside(points)
        self.children = tuple(
            _Node(self.session.part(label), self.active & side, size, self.depth + 1)
            for label, side, size in (
                ("inside", inside, ball.inside),
                ("outside", ~inside, ball.outside),
            )
        )

    def inside(self, rows):
        """Whether each row is inside the ball."""
        return squared_distances(self.view.of(rows), self.ball.center) <= self.ball.square

    def leaves(self):
        """The leaves below, from the inside out."""
        return (
            [self]
            if not self.children
            else [leaf for child in self.children for leaf in child.leaves()]
        )

    def labels(self, rows):
        """Index of the leaf that each row is in."""
        if not self.children:
            return np.zeros(rows.n_rows, dtype=np.int64)
        inside, (first, second) = self.inside(rows), self.children
        return np.where(inside, first.labels(rows), len(first.leaves()) + second.labels(rows))


@dataclass(frozen=True)
class _Recursion:
    """What the nodes have in common."""

    points: object  # Rows: one for each unit
    candidates: np.ndarray
    target: int  # t
    settings: object
    prefix: str

    def grow(self, root):
        """Split the largest nodes first, until there are k of them or none can be split."""
        k, open_, n_leaves = self.settings.n_components, [root], 1
        while open_ and n_leaves < k:
            node = max(open_, key=lambda each: each.size)
            open_.remove(node)
            if node.depth < k - 1 and self.split(node):
                n_leaves += 1
                open_ += node.children

    def split(self, node):
        """Look for a terrific ball, in the whole space and in the projection."""
        prefix = _level(self.prefix, node.depth)
        place = fit_one_cluster(
            node.session, self.points, _HELD, _SEARCH, prefix=prefix + _PLACE, active=node.active
        )
        reach = max(min(_WIDER * math.sqrt(place.square), 2 * self.points.limit), 1.0)
        view = _View(place.center, reach)
        ball = self.find(node, view, prefix + _FULL, largest=False)
        if ball is None and _projects(self.settings, self.points.n_features):
            view = self.principal(node, view, prefix + _AXES)
            ball = self.find(node, view, prefix + _PROJECTED, largest=True)
        if ball is None:
            return False
        node.cut(self.points, view, ball)
        return True

    def principal(self, node, view, entry):
        """The first k principal components of the node, about its released center."""
        points = np.concatenate(
            [
                np.empty((0, self.points.n_features)),
                *(x[node.active[part]] for part, x in self.points.chunks()),
            ]
        )
        moved = Rows.of(points - view.origin, self.points.limit + np.linalg.norm(view.origin))
        moment = second_moment(
            node.session,
            entry,
            moved,
            view.limit,
            Units(len(points)),
            node.session.remaining(entry),
        )
        # Largest signed eigenvalues: of a large negative one there is noise only.
        vectors = np.linalg.eigh(moment)[1][:, ::-1][:, : self.settings.n_components]
        return _View(view.origin, view.limit, np.rint(vectors * _BASIS_STEPS))

    def find(self, node, view, prefix, *, largest):
        """A terrific ball of the node in some coordinates, or None."""
        options, rows = self.settings.options, view.of(self.points)
        if options.balls == "joint":
            radii = np.maximum(
                view.limit * _RADIUS_RATIO ** -np.arange(_N_RADII - 1, -1, -1.0), 1.0
            )
            return joint_ball(
                node.session,
                prefix,
                rows,
                node.active,
                self.target,
                options.separation,
                view.of_points(self.candidates),
                largest=largest,
                radii=radii,
            )
        least = max(view.limit * _RADIUS_RATIO ** (1 - _N_RADII), 1.0)
        return points_ball(
            node.session,
            prefix,
            rows,
            node.active,
            self.target,
            options.separation,
            largest=largest,
            least=least,
            most=view.limit,
            size=node.size,
        )


# -- fit ----------------------------------------------------------------------------------------


def partition_parts(session, X, units, place, settings, prefix, progress):
    """Cut the rows into components.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `partition_entries`.
    X : ndarray of shape (n, d)
    units : Units
    place : Located
    settings : Settings
    prefix : str
    progress : callable

    Returns
    -------
    parts : Parts
        Where the tree has fewer than k leaves, nearest centers of the released coreset take its
        place.
    """
    X, alone = representatives(session, X, units)
    points = place.rows if alone is units else Rows.quantise(X, place.domain)
    coreset, axes = _coreset(session, points, alone, place, settings.n_components, prefix)
    progress("coreset")
    target = max(1, round(place.size * settings.min_weight / 2))
    recursion = _Recursion(
        points, _candidates(session, coreset, axes, settings, points), target, settings, prefix
    )
    root = _Node(session, np.ones(points.n_rows, dtype=bool), place.size)
    recursion.grow(root)
    progress("partition")
    leaves = root.leaves()
    if root.children:
        session.join([leaf.session for leaf in leaves])
    k = settings.n_components
    if len(leaves) < k:
        start = weighted_kmeans(coreset.points, coreset.weights, k, session.rng("start"))
        centers = _integers(axes.lift(start), points)
        return Parts(
            session,
            place.rows,
            units,
            centers,
            nearest(place.rows, centers)[0],
            "partition, then coreset",
        )
    centers = _leaf_centers(root, len(leaves), coreset, axes, points)
    return Parts(session, place.rows, units, centers, root.labels(place.rows), "partition")


def _coreset(session, points, units, place, k, prefix):
    """A noisy cell tree of the points, along their principal axes."""
    size, d = Size(place.size, math.sqrt(2 * session.remaining())), points.n_features
    context = Context(session, points, units, k, prefix, size=size, radius=place.radius)
    axes = plain_axes(d, place.radius)
    if d > 3:
        axes = principal_axes(context, _MOMENT, context.left(_MOMENT))
    coreset = build_coreset(context, _CELLS, _MEANS, axes, context.left(_CELLS))
    return coreset, axes


def _candidates(session, coreset, axes, settings, points):
    """Where balls may be centered: heavy cells of the coreset, and its k-means centers."""
    heavy = np.argsort(-coreset.weights[: coreset.n_leaves], kind="stable")[:_MOST_CANDIDATES]
    found = [coreset.points[heavy]]
    found += [
        weighted_kmeans(coreset.points, coreset.weights, k, session.rng(f"{k} candidates"))
        for k in range(1, settings.n_components + 1)
    ]
    return _integers(axes.lift(np.concatenate(found)), points)


def _integers(centers, points):
    """Released points as integers in the ball of the rows."""
    length = np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
    return np.rint(centers * np.minimum(1.0, points.ball / length))


def _leaf_centers(root, n_leaves, coreset, axes, points):
    """The mean of the coreset in each leaf, all of it released; without any, that of the rows."""
    places = _integers(axes.lift(coreset.points), points)
    labels = root.labels(Rows.of(places, points.ball))
    mass = np.bincount(labels, coreset.weights, minlength=n_leaves)
    sums = np.stack(
        [np.bincount(labels, coreset.weights * column, minlength=n_leaves) for column in places.T],
        axis=1,
    )
    return np.rint(sums / np.maximum(mass, 1e-300)[:, None])
