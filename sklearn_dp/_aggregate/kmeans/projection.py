"""Many clusters in many features: found in a public random projection, then moved in all features.

Each of Lloyd's iterations pays the noise of all features, and the axes of the cell tree are the
widest ones of the rows. Where all clusters are long in the same directions, as those of embeddings
are, these axes tell none of them apart. A random projection onto q features keeps the distances of
clusters up to a factor 1 +- 1 / sqrt(2 q), and pays the noise of q features. So with many features

1. the second moment of the projected rows is released. If its axes are more uneven than random
   centers make them, clusters are taken to be long in the same ones, and the fit goes on here;
   otherwise it goes on without a projection;
2. the axes are drawn toward the same width, so that what all clusters share does not hide what
   differs;
3. the cell tree and noisy Lloyd iterations find the clusters, with a part of the budget;
4. rows keep the labels that they have there, for one of a few iterations in all features, which
   move the centers (:meth:`Projected.lifted`).

The projection is public randomness, the same for neighbors. A projected row is a function of the
row and of released values, and an integer vector of norm at most `limit`: all that is proved of
rows holds of projected ones, with the same entries of the plan. "Projection" in
`doc/development/kmeans_engine.md` tells how good it is.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._queries.clusters import Pinned
from ..._queries.grids import BASIS_BITS, Axes
from ..._queries.handles import GridRows
from ..shared.axes import normal_points, second_moment
from ..shared.centering import noise_sd
from .fit_context import Context, only_last
from .lloyd import lloyd_budget
from .location import MOMENT
from .tuning import Tuning

_TIMES = 4  # as many features as a projection has: from there on it may pay


def many_features(n_features: int, tuning: Tuning) -> bool:
    """Whether there are so many features that a fit may look for its clusters in a projection."""
    return n_features >= _TIMES * tuning.projection_features


def may_project(n_features: int, n_clusters: int, tuning: Tuning) -> bool:
    """The same, and more clusters than the axes of a cell tree could tell apart."""
    return many_features(n_features, tuning) and n_clusters > tuning.most_axes + 1


@dataclass(frozen=True, repr=False)
class Projected:
    """A fit whose clusters are looked for in a projection."""

    whole: Context  # of all features
    context: Context  # of the projected rows
    axes: Axes  # of the cell tree
    back: np.ndarray  # (q, d), from projected centers to nearest points of the whole space

    def searching(self) -> Context:
        """The context of Lloyd's iterations in the projection, which leave a part to the others."""
        context, tuning = self.context, self.context.tuning
        left = lloyd_budget(context.session, context.prefix)
        n = 2 * tuning.most_iterations
        tuning = replace(tuning, most_iterations=n, few_iterations=n)
        return replace(context, tuning=tuning, reserve=left / 2)

    def lifted(self, centers: np.ndarray) -> tuple[Context, np.ndarray]:
        """Pin the rows to their nearest projected centers (k, q), for one iteration, and go back to
        all features: the context of the last iterations, and their start (k, d)."""
        rows = self.context.rows
        centers = rows.inside(centers)
        rows.apply(Pinned(centers))
        rows.unproject()
        return only_last(self.whole), centers @ self.back


def projected(context: Context) -> Projected | None:
    """The fit in a projection, where its released second moment shows that it pays, or None."""
    tuning, size = context.tuning, context.size
    d, q = context.rows.n_features, tuning.projection_features
    if size.small or not may_project(d, context.n_clusters, tuning):
        return None
    basis = np.linalg.qr(normal_points(context.session.rng("projection"), d, np.ones(q)))[0]
    # A row keeps about sqrt(q / d) of its length: few are longer by a third.
    reach = min(context.radius, tuning.projection_reach * context.radius * math.sqrt(q / d))
    rho = tuning.second_moment * context.session.plan[context.name(MOMENT)].rho
    rows = _projected(context.rows, basis)
    moment = second_moment(context.session, context.name(MOMENT), rows, reach, rho) / size.n
    rows.unproject()
    noise = reach**2 * noise_sd(rho) / size.n
    values, vectors = np.linalg.eigh(moment)
    values = np.maximum(values, noise)  # not to divide by less than the noise
    if not _in_common(values, noise, context.n_clusters, tuning):
        return None
    # The widest axis comes first, and the narrowest one stays as it is.
    values, basis = values[::-1], basis @ vectors[:, ::-1]
    drawn = (values[-1] / values) ** (tuning.projection_whitening / 2)
    spread = drawn * np.sqrt(values)
    radius = min(context.radius, tuning.projection_reach * float(np.linalg.norm(spread)))
    inner = replace(context, rows=_projected(context.rows, basis * drawn), radius=radius)
    return Projected(context, inner, _axes(spread, radius, tuning), (basis / drawn).T)


def _projected(rows: GridRows, basis: np.ndarray) -> GridRows:
    return rows.project(np.rint(basis * 2.0**BASIS_BITS))


def _in_common(values: np.ndarray, noise: float, n_clusters: int, tuning: Tuning) -> bool:
    """Whether axes of mean squares (q,) are more uneven, and more so to one side, than the centers
    of clusters make them.

    The logarithm of their mean over their geometric mean is about half of their relative variance.
    That of k - 1 random directions is q / (k - 1) (Marchenko and Pastur 1967), times the square of
    the part that lies between clusters; whatever that part is, their skewness is the root of q /
    (k - 1), up to a few 1 / q. A matrix of `noise`, the standard deviation of its diagonal, adds
    q / 2 times its square to that variance.
    """
    mean, q = float(values.mean()), len(values)
    uneven = math.log(mean) - float(np.log(values).mean()) - q / 4 * (noise / mean) ** 2
    skewness = float(np.mean((values - mean) ** 3)) / float(np.var(values)) ** 1.5
    ratio = q / (n_clusters - 1)
    return uneven > tuning.projection_uneven * ratio and skewness > math.sqrt(ratio) + 3 / q


def _axes(spread: np.ndarray, radius: float, tuning: Tuning) -> Axes:
    """The widest of the projected features, for the cell tree."""
    q = min(tuning.most_axes, len(spread))
    return Axes(
        np.eye(len(spread), q) * 2.0**BASIS_BITS,
        spread[:q],
        np.minimum(radius, tuning.box_reach * spread[:q]),
        radius,
        float(np.square(spread[q:]).sum()),
    )
