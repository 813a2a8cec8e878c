"""The paper's split of the budget [1]_: ``FederatedDPKMeans(method="paper")``.

Fractions of epsilon for each release, scaled until what they cost adds up to the budget in rho. The
estimator's own shares of rho are in `federated/_parameters.py`.

References
----------
.. [1] J. Scott, C. H. Lampert and D. Saulpic, "Differentially private federated k-means clustering
   with server-side data", ICML 2025, appendix H.1.
"""

import math
from functools import lru_cache

from ..._privacy._accounting import gaussian_mu, laplace_zcdp_rho
from ..._privacy._plan import Mechanism

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
    """The paper's fractions of epsilon, scaled until the whole costs rho.

    `uses` is how often each vector is released; its fraction is divided by that. `delta` is that of
    each Gaussian step: the paper states steps as (epsilon, delta) pairs. Costs grow with the scale,
    so bisection finds the largest one that fits.
    """
    default = PAPER_SPLIT["row"]

    def costs(epsilon: float) -> dict[str, float]:
        found = {}
        for name, times in uses.items():
            fraction = PAPER_SPLIT[unit].get(name, default.get(name, 0.05))
            found[name] = times * step_cost(mechanism[name], epsilon * fraction / times, delta)
        return found

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
    """What a step of (epsilon, delta), or a Laplace step of epsilon, costs in rho."""
    if epsilon <= 0:
        return 0.0
    if mechanism is Mechanism.LAPLACE:
        return laplace_zcdp_rho(epsilon)
    return gaussian_mu(epsilon, delta) ** 2 / 2
