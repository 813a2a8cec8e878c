"""The rounds of the server as published [1]_: ``FederatedDPKMeans(method="paper")``.

In our benchmarks they have never been better than the rules of `federated/_learn.py`, which calls
these.

References
----------
.. [1] J. Scott, C. H. Lampert and D. Saulpic, "Differentially private federated k-means clustering
   with server-side data", ICML 2025.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._costs.accounting import gaussian_mu, laplace_zcdp_rho
from .._costs.plan import Mechanism
from .._privacy._session import PrivacySession

if TYPE_CHECKING:  # `federated` imports this file, which would be incomplete if it came first
    from ..federated._state import State

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
    """Means (k, d) about the public center; a count within its noise `sd` moves no center."""
    sure = number >= max(3 * sd, 0.0 if state.setup.per_client else 1.0)
    mean = total / np.where(sure, number, 1.0)[:, None]
    return np.where(sure[:, None], mean, state.anchors)


# -- the split of the budget -----------------------------------------------------------------------
# Fractions of epsilon for each release (appendix H.1), scaled until their costs add up to the
# budget in rho. The estimator's own shares of rho are in `federated/_parameters.py`.


PAPER_SPLIT = {
    "row": {
        "second moment": 0.20,
        "weights": 0.20,
        "lift sums": 0.45,
        "lift counts": 0.15,
        "lloyd sums": 0.50,
        "lloyd counts": 0.50,
    },
    "group": {
        "second moment": 0.35,
        "weights": 0.10,
        "client means": 0.45,
        "client presence": 0.10,
        "lloyd sums": 0.50,
        "lloyd counts": 0.50,
    },
}
"""Shares of epsilon that the paper recommends (appendix H.1), for rows and for clients."""


def paper_costs(
    uses: dict[str, int], mechanism: dict[str, Mechanism], rho: float, delta: float, unit: str
) -> dict[str, float]:
    """The paper's fractions of epsilon, scaled until the whole costs rho. `uses` is how often each
    vector is released; `delta` is that of each Gaussian step."""
    default = PAPER_SPLIT["row"]

    def costs(epsilon: float) -> dict[str, float]:
        charges = {}
        for name, times in uses.items():
            fraction = PAPER_SPLIT[unit].get(name, default.get(name, 0.05))
            charges[name] = times * step_cost(mechanism[name], epsilon * fraction / times, delta)
        return charges

    low, high = 0.0, 1.0
    while math.fsum(costs(high).values()) <= rho:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(costs(middle).values()) <= rho else (low, middle)
    if low == 0:  # steps of this delta cost more than rho at any epsilon
        return paper_costs(uses, mechanism, rho, delta / 2, unit)
    return {name: cost * (1 - 2.0**-48) for name, cost in costs(low).items()}


@lru_cache(maxsize=4096)  # a split asks for some hundreds, and the next fit for the same
def step_cost(mechanism: Mechanism, epsilon: float, delta: float) -> float:
    """Return the rho of a step of (epsilon, delta), or of a Laplace step of epsilon."""
    if epsilon <= 0:
        return 0.0
    if mechanism is Mechanism.LAPLACE:
        return laplace_zcdp_rho(epsilon)
    return gaussian_mu(epsilon, delta) ** 2 / 2
