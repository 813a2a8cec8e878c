"""Recursive private partition of a Gaussian mixture [1]_: terrific balls cut it into components.

1. One row stands for each unit (:func:`..._queries.halves.unit_points`).
2. A private coreset of these points is released: noisy counts of cells along principal axes, and
   means of cells. Its heavy cells, and its k-means centers, are where balls may be centered.
3. Nodes are split, the largest first, by balls that are found as :mod:`.tree` tells, until there
   are k leaves or none can be split.
4. k leaves are the parts, and the mean of the coreset in a leaf is its center. With fewer leaves,
   centers of the coreset by k-means take their place, which costs nothing more.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; algorithm 3 (RPGMP), with principal
   components about the released center, with cuts in the empty region around a ball instead of
   its loss, with at most k parts on all data, and with the cuts as its result: the published one
   is the sets of rows, which are not private.
"""

import math

import numpy as np

from ..._aggregate.kmeans.coreset import (
    CELLS,
    MEANS,
    MOMENT,
    Coreset,
    build_coreset,
    principal_axes,
)
from ..._aggregate.kmeans.fit_context import Context
from ..._aggregate.mixture.parts import (
    MixtureContext,
    Parts,
    Settings,
    in_ball,
)
from ..._aggregate.shared.adaptive_center import CenterRadius
from ..._aggregate.shared.axes import Axes, plain_axes
from ..._aggregate.shared.centering import Size
from ..._aggregate.shared.weighted_kmeans import weighted_kmeans
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.halves import POINTS
from ..._queries.handles import GridRows
from ..._queries.inner import Dropped, alone
from ..._queries.labels import NearestLabels
from ..._queries.nodes import LeafLabels, labels_of_points
from .tree import Node, Recursion, level_entries

_CANDIDATES = {  # share of the budget of the coreset, and the sensitivity in words
    MOMENT: (0.25, "squared radius in Frobenius norm"),
    CELLS: (0.55, "a unit adds 1 to the cells of each level"),
    MEANS: (0.2, "a unit adds a residual clipped to the reach of its cell"),
}
_CANDIDATE_SHARE = 0.35  # of the partition, for the coreset; the rest is for the levels
_MOST_CANDIDATES = 60
_ROTATED_FROM = 4  # features: with fewer, principal axes are not worth a second moment
_SAFE = 1 - 1e-9
_TREE = "cell tree"


def partition_entries(
    rho: float, delta: float, settings: Settings, n_features: int, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `partition_parts`, at most `rho` and `delta` on a chain of nodes.

    Of the coreset, and of k - 1 levels with equal shares.
    """
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
    """Cut all rows into components; the plan holds `partition_entries`.

    Where the tree has fewer than k leaves, nearest centers of the released coreset take its place.
    """
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
    """Where balls may be centered: heavy cells of the coreset, and its k-means centers.

    Integers (m, d) in the ball of the points. Centers of k-means for 1, 2, ... k clusters are among
    them: a ball about several components at once has its center between them, where no cell need be
    heavy. The session gives the randomness of the k-means starts; nothing is released here.
    """
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
    """The mean of the coreset in each leaf, all of it released; without any, that of the rows.

    Integers (n_leaves, d), only a start of the components, which are estimated about it: no budget
    is spent on it.
    """
    places = in_ball(axes.lift(coreset.points), points.ball)
    labels = labels_of_points(places, points.ball, root.cuts())
    mass = np.bincount(labels, coreset.weights, minlength=n_leaves)
    sums = np.stack(
        [np.bincount(labels, coreset.weights * column, minlength=n_leaves) for column in places.T],
        axis=1,
    )
    return np.rint(sums / np.maximum(mass, 1e-300)[:, None])
