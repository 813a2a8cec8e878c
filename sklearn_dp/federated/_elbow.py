"""Choose the number of clusters from the noisy weights of the server's points, at no cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .._base import MOST_CLUSTERS, check_integer, check_sklearn_seed
from ._federated_dp_kmeans import FederatedDPKMeans


def elbow(
    model: FederatedDPKMeans, *, most: int = 15, n_init: int = 10, random_state: Any = 0
) -> tuple[int, np.ndarray]:
    """Find the number of clusters at the elbow of the weighted cost of the server's points.

    Post-processing of a fit: fit once with a generous `n_clusters` (20, say), read off the number,
    and fit again with it.

    Parameters
    ----------
    model : FederatedDPKMeans
        Fitted with `X_server`.
    most : int, default=15
        Largest number to try.
    n_init : int, default=10
        Number of starts of each clustering.
    random_state : int, RandomState instance or None, default=0
        Seed of the starts; nothing here needs to be secret.

    Returns
    -------
    n_clusters : int
        The number at which the logarithm of the cost is farthest below the line between its ends.
    costs : ndarray of shape (most,)
        Weighted costs of 1, ..., `most` clusters, relative to the first.

    Raises
    ------
    ValueError, TypeError
        For invalid arguments, or if no server point of the model has any weight.

    Notes
    -----
    Appendix H.3 of the paper. Server points far from all clients can form a cluster of their own,
    so the elbow may be one too high.
    """
    most = check_integer(most, "most", low=3, high=MOST_CLUSTERS)
    n_init = check_integer(n_init, "n_init", low=1, high=100)
    random_state = check_sklearn_seed(random_state)
    points, weights = (getattr(model, f"server_{name}_", None) for name in ("points", "weights"))
    if points is None or weights is None:
        raise ValueError("model must be fitted with X_server, and not from a public start.")
    if model.subspace_ is not None:
        points = points @ model.subspace_.T
    keep = weights > 0
    points, weights = points[keep], weights[keep]
    most = min(most, len(points))
    if most < 3:
        raise ValueError("model: too few server points have any weight for an elbow.")
    costs = np.array(
        [
            KMeans(k, n_init=n_init, random_state=random_state)
            .fit(points, sample_weight=weights)
            .inertia_
            for k in range(1, most + 1)
        ]
    )
    costs = np.maximum(costs, 1e-12 * costs[0] + 1e-300)
    # Farthest below the chord: the largest second difference is often where k-means had bad luck.
    falls = np.log(costs)
    below = np.linspace(falls[0], falls[-1], most) - falls
    return int(np.argmax(below)) + 1, costs / costs[0]
