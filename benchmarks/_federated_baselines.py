"""Baselines of federated clustering that see rows: not private, and called by no estimator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans

from sklearn_dp._aggregate.shared.weighted_kmeans import best_start


def k_fed(
    clients: Sequence[np.ndarray],
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_local: int | None = None,
) -> np.ndarray:
    """k-FED, repaired. NOT private: a baseline for experiments.

    Clients are arrays (n_j, d), each with `n_local` clusters, `n_clusters` by default.

    Each client clusters its rows in the span of its `n_local` leading singular vectors, with
    several starts, and re-averages them in the whole space; the server takes the centers of a
    client, adds the farthest ones of the others until there are k, and makes one pass over all.
    A client sends its own rows only where it has no more than `n_local` *distinct* ones: the
    released code compares with the number of duplicates, so every client sent its first rows.
    """
    n_local = n_local or n_clusters
    local = [
        _local_centers(np.asarray(rows, dtype=np.float64), n_local, rng)
        for rows in clients
        if len(rows)
    ]
    everything = np.concatenate(local)
    chosen = local[int(rng.integers(len(local)))][:n_clusters]
    while len(chosen) < n_clusters:
        gaps = np.linalg.norm(everything[:, None] - chosen, axis=2).min(axis=1)
        chosen = np.vstack([chosen, everything[np.argmax(gaps)]])
    near = np.linalg.norm(everything[:, None] - chosen, axis=2).argmin(axis=1)
    return np.array(
        [
            everything[near == j].mean(axis=0) if (near == j).any() else chosen[j]
            for j in range(n_clusters)
        ]
    )


def _local_centers(rows: np.ndarray, n_local: int, rng: np.random.Generator) -> np.ndarray:
    """What a client of k-FED sends: its own cluster means, or its distinct rows where few."""
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= n_local:
        return distinct
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    flat = (rows - rows.mean(axis=0)) @ axes[:n_local].T
    centers = best_start(flat, n_local, rng, 8)
    labels = KMeans(n_local, init=centers, n_init=1).fit_predict(flat)
    start = np.array([rows[labels == j].mean(axis=0) for j in np.unique(labels)])
    return KMeans(len(start), init=start, n_init=1, max_iter=100).fit(rows).cluster_centers_


def optimal_centers(
    X: np.ndarray,
    n_clusters: int,
    *,
    start: np.ndarray | None = None,
    n_init: int = 10,
    random_state: int = 0,
) -> np.ndarray:
    """The reference: k-means on the pooled rows. NOT private.

    `start` are the true means, where they are known.
    """
    init, n_init = ("k-means++", n_init) if start is None else (start, 1)
    fitted = KMeans(n_clusters, init=init, n_init=n_init, random_state=random_state).fit(X)
    return fitted.cluster_centers_
