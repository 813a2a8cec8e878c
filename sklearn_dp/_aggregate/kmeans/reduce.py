"""From more centers than asked for to the number asked for."""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans
from .evidence import likely_counts

__all__ = ["reduce_centers"]


def reduce_centers(context, estimate):
    """From more centers to the number asked for: k-means of the centers, weighted by counts."""
    tuning, flat = context.tuning, context.axes.flatten(estimate.centers)
    floor = tuning.reduce_floor * float(np.mean(estimate.count_sd))
    likely, _, seen = likely_counts(context, estimate)
    # A center where neither cells nor counts show a row must not cost two that are close.
    weight = np.maximum(likely, np.where(seen, floor, tuning.reduce_unseen * floor))
    groups = weighted_kmeans(flat, weight, context.n_clusters, context.session.rng("reduce"))
    square = np.einsum("ij,ij->i", groups, groups) - 2 * flat @ groups.T
    member = np.zeros((context.n_clusters, len(flat)))
    member[np.argmin(square, axis=1), np.arange(len(flat))] = 1.0
    share = member * weight
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    empty = ~member.any(axis=1)
    estimate.centers = share @ estimate.centers
    estimate.centers[empty] = context.axes.lift(groups[empty])
    estimate.variance = np.square(share) @ estimate.variance
    old = member @ estimate.old_count, member @ estimate.old_count_variance
    estimate.count = member @ estimate.count
    estimate.count_sd = np.sqrt(member @ estimate.count_sd**2)
    estimate.old_count, estimate.old_count_variance = old[0], np.where(empty, np.inf, old[1])
    estimate.reach = np.ones(context.n_clusters)
    estimate.spread, estimate.spread_variance = (
        np.zeros(context.n_clusters),
        np.full(context.n_clusters, np.inf),
    )
