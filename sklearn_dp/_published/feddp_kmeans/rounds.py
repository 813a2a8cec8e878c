"""What the server makes of the releases as published [1]_: ``FederatedDPKMeans(method="paper")``.

The start is a clustering of the server's points with weights above their noise (step 2 of the
paper's FedDP-Init), and averages are about the public center. In our benchmarks they have never
been better than the rules of `federated/_learn.py`, which calls these.

References
----------
.. [1] J. Scott, C. H. Lampert and D. Saulpic, "Differentially private federated k-means clustering
   with server-side data", ICML 2025.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._aggregate.shared.weighted_kmeans import weighted_kmeans
from ..._privacy._session import PrivacySession

if TYPE_CHECKING:  # `federated` imports this file, which would be incomplete if it came first
    from ...federated._state import State

_LEAST_WEIGHT = 5.0  # of a server point, in rows: the paper's code


def paper_start(state: State, session: PrivacySession, sd: float) -> np.ndarray:
    """Centers (k, d) of the points with weights above their noise `sd`, in the subspace."""
    weights, points, k = state.weights, state.points, state.n_clusters
    keep = weights >= max(2 * sd, 0.0 if state.setup.per_client else _LEAST_WEIGHT)
    if np.count_nonzero(keep) < k:
        keep = np.argsort(np.argsort(-weights, kind="stable")) < 3 * k
    floor = np.maximum(weights[keep], 1e-3 * max(float(np.abs(weights).max()), 1e-300))
    flat = weighted_kmeans(points[keep], floor, k, session.rng("proxy"))
    return flat if state.basis is None else flat @ state.subspace


def paper_average(state: State, total: np.ndarray, number: np.ndarray, sd: float) -> np.ndarray:
    """Means (k, d) about the public center; a count within its noise leaves its center in place.

    `total` are noisy sums (k, d) about the public center, `number` noisy counts (k,), `sd` is the
    noise of a count.
    """
    sure = number >= max(3 * sd, 0.0 if state.setup.per_client else 1.0)
    mean = total / np.where(sure, number, 1.0)[:, None]
    return np.where(sure[:, None], mean, state.anchors)
