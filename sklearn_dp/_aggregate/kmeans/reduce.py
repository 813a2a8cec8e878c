"""From more centers than asked for to the number asked for: once, after the first iteration.

The start has up to 1.5 k centers, because noise hides some clusters from the coreset. The counts of
the first Lloyd iteration tell which centers hold rows. Weighted k-means of the centers themselves
then makes k groups; each group becomes one center. All of it is post-processing.
"""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans
from .estimate import Estimate
from .evidence import likely_counts
from .lloyd_context import LloydContext

__all__ = ["reduce_centers"]


def reduce_centers(context: LloydContext, estimate: Estimate) -> None:
    """K-means of the centers, weighted by counts.

    There is a coreset: they are compared along its axes, where noise is smallest. The estimate is
    changed in place: k0 > k centers before, k afterwards. The mean of a group, by weights w that
    sum to one, has the variance sum w^2 P of its members' P. Spreads and clip factors start again.
    """
    assert context.coreset is not None
    tuning, axes = context.tuning, context.coreset.axes
    flat = axes.flatten(estimate.centers)
    floor = tuning.reduce_floor * float(np.mean(estimate.count_sd))
    likely, _, seen = likely_counts(context, estimate)
    # A center where neither cells nor counts show a row must not cost two that are close.
    weight = np.maximum(likely, np.where(seen, floor, tuning.reduce_unseen * floor))
    # A floor keeps a cluster whose count happens to be negative in the game.
    groups = weighted_kmeans(flat, weight, context.n_clusters, context.session.rng("reduce"))
    square = np.einsum("ij,ij->i", groups, groups) - 2 * flat @ groups.T
    member = np.zeros((context.n_clusters, len(flat)))
    member[np.argmin(square, axis=1), np.arange(len(flat))] = 1.0
    share = member * weight
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    empty = ~member.any(axis=1)
    estimate.centers = share @ estimate.centers
    estimate.centers[empty] = axes.lift(groups[empty])
    estimate.variance = np.square(share) @ estimate.variance
    old = member @ estimate.old_count, member @ estimate.old_count_variance
    estimate.count = member @ estimate.count
    estimate.count_sd = np.sqrt(member @ estimate.count_sd**2)
    estimate.old_count, estimate.old_count_variance = old[0], np.where(empty, np.inf, old[1])
    estimate.reach = np.ones(context.n_clusters)
    estimate.settling = np.zeros(context.n_clusters, dtype=int)
    estimate.spread, estimate.spread_variance = (
        np.zeros(context.n_clusters),
        np.full(context.n_clusters, np.inf),
    )
