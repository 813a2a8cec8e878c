"""The budget of a federated fit: what each release gets.

The plan follows from the kinds of the rounds, which are public: every vector that clients send is
one release, and a vector that is sent in several rounds is one entry with as many uses. Nothing
but Gaussian noise is released by default, so that the whole fit is accounted as one Gaussian
mechanism with mu^2 = 2 rho, exactly.

Two ways to split: shares of rho (ours), and the paper's fractions of epsilon, which are scaled
until what they cost adds up to the same rho.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .._privacy._accounting import laplace_zcdp_rho
from .._privacy._budget import PrivacyBudget
from .._privacy._plan import Mechanism, PlanEntry
from .._privacy.mechanisms.shares import SHARES_DELTA
from .._published.feddp_kmeans.split import paper_costs
from .._queries.client_rounds import ANSWERS, is_count

SHARES = {
    "bound": 0.05,
    "center sum": 0.04,
    "center count": 0.01,
    "second moment": 0.30,
    "weights": 0.10,
    "lift sums": 0.50,
    "lift counts": 0.05,
    "client means": 0.35,
    "client presence": 0.05,
    "lloyd sums": 0.35,
    "lloyd counts": 0.05,
}
"""Shares of rho, over their sum. The server's points make half of what the moment had before
superfluous; the lift is what the error is made of. Tuned on four data sets of the paper's kind."""

WITHOUT_SERVER = {
    **SHARES,
    "center sum": 0.08,
    "center count": 0.02,
    "second moment": 0.50,
    "lift sums": 0.35,
    "moment reach": 0.015,
    "lift reach": 0.015,
}
"""Nothing but the moment then tells where to look for clusters; where it does not, the mean is
all that is left."""

_WORDS = {
    "bound": "1: a row is in one bin of the norms",
    "center sum": "radius",
    "center count": "1",
    "second moment": "squared radius, in Frobenius norm",
    "weights": "1: a row has one nearest server point",
    "lift sums": "length that residuals are clipped to",
    "lift counts": "1",
    "lloyd sums": "length that residuals are clipped to",
    "lloyd counts": "1",
    "moment reach": "1",
    "lift reach": "1",
    "client means": "norm that local means are clipped to",
    "client presence": "norm that presence bits are clipped to",
}


def entries_of(
    rounds: tuple[str, ...],
    target: PrivacyBudget,
    unit: str,
    *,
    paper: bool = False,
    laplace: bool = False,
    shared: bool = False,
) -> tuple[PlanEntry, ...]:
    """Plan entries of rounds of these kinds, in order.

    All together cost no more than the target. The unit is "group" for clients. `paper`: the paper's
    split of epsilon, instead of the shares of rho. `laplace`: Laplace noise for counts, as in the
    paper; the plan is then accounted as zCDP. `shared`: noise in shares; every release has a delta
    of its own.

    >>> entries = entries_of(("weights", "lift", "lloyd", "lloyd"), PrivacyBudget(rho=0.5), "row")
    >>> [(entry.name, entry.uses, round(entry.rho, 3)) for entry in entries]  # doctest: +ELLIPSIS
    [('weights', 1, 0.034), ..., ('lloyd sums', 2, 0.241), ('lloyd counts', 2, 0.034)]
    """
    uses: dict[str, int] = {}
    for kind in rounds:
        for name in ANSWERS[kind]:
            uses[name] = uses.get(name, 0) + 1
    mechanism = {
        name: Mechanism.LAPLACE if laplace and is_count(name) else Mechanism.GAUSSIAN
        for name in uses
    }
    gaussian = Mechanism.LAPLACE not in mechanism.values()
    delta = {name: SHARES_DELTA * number if shared else 0.0 for name, number in uses.items()}
    rho = target.to_rho(gaussian=gaussian, delta_failure=math.fsum(delta.values()))
    costs = (
        paper_costs(uses, mechanism, rho, target.delta, unit) if paper else _shared_costs(uses, rho)
    )
    words = dict.fromkeys(uses, "norm that the whole vector of a client is clipped to")
    if unit == "row":
        words = _WORDS
    return tuple(
        PlanEntry(name, mechanism[name], costs[name], delta[name], uses=n, sensitivity=words[name])
        for name, n in uses.items()
    )


def _shared_costs(uses: dict[str, int], rho: float) -> dict[str, float]:
    """Shares of rho; every use of an entry has its own."""
    shares = WITHOUT_SERVER if "center sum" in uses else SHARES
    whole = math.fsum(shares[name] * uses[name] for name in uses)
    # Rounded down twice: shares of sum at most one then cost at most rho.
    return {name: rho * (shares[name] * uses[name] / whole) * (1 - 2.0**-48) for name in uses}


@lru_cache(maxsize=256)
def laplace_epsilon(rho: float) -> float:
    """The largest epsilon (up to rounding) of a Laplace release that costs at most rho.

    >>> laplace_zcdp_rho(laplace_epsilon(0.125)) <= 0.125 < laplace_zcdp_rho(0.55)
    True
    """
    low, high = 0.0, 1.0
    while laplace_zcdp_rho(high) <= rho:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        fits = middle > 0 and laplace_zcdp_rho(middle) <= rho
        low, high = (middle, high) if fits else (low, middle)
    return low
