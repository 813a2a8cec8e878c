"""How many clusters there are: chosen from what a fit has released.

A private fit that tried each number of clusters on the rows would have to pay for each. It need not
try any of them on the rows: the coreset is released, and what it says is post-processing.

1. Up to 5 features the leaves of the coreset show the clusters (:mod:`.gap`). This is free.
2. Above, the coreset lives in few axes and cannot tell many clusters apart. Noisy Lloyd
   iterations in the whole space can (:mod:`.surplus_lloyd`); they have their own entries in the
   plan.

Which of them it is, what comes before the choice, and what all of it may spend follow from public
numbers: the features, the candidates, the criterion. What comes after it is made for the chosen
number, which is released; its shares do not depend on that number.
"""

from dataclasses import replace

from ..._privacy._plan import PlanEntry
from .candidates import Candidates, Choice
from .coreset import Coreset
from .fit_context import Context
from .gap import gap_choice
from .surplus_lloyd import release_surplus, surplus_choice, surplus_entries
from .tuning import TUNING, Tuning


def reference_number(n_clusters: int | Candidates) -> int:
    """The number of clusters that releases before the choice are made for."""
    return n_clusters.reference if isinstance(n_clusters, Candidates) else n_clusters


def choice_entries(
    n_clusters: int | Candidates,
    n_features: int,
    rho: float,
    cap: float,
    prefix: str = "",
    tuning: Tuning = TUNING,
) -> tuple[PlanEntry, ...]:
    """Plan entries of the choice, which come before those of Lloyd's iterations.

    A given number has nothing to choose. The choice and Lloyd's iterations are worth `rho`
    together, and may come to `cap` at the most.
    """
    if not isinstance(n_clusters, Candidates) or n_clusters.rule(n_features) == "gap":
        return ()
    return surplus_entries(rho, cap, prefix, tuning)


def choose(context: Context, coreset: Coreset, n_clusters: int | Candidates) -> Choice | None:
    """The number of clusters, from the coreset or from a few iterations about surplus centers,
    released now.

    The session's plan holds `choice_entries`. None where the number is given.
    """
    if not isinstance(n_clusters, Candidates):
        return None
    rule = n_clusters.rule(context.rows.n_features)
    if rule == "gap":
        return gap_choice(coreset, n_clusters, context.session.rng("references"), context.tuning)
    surplus = release_surplus(context, coreset, n_clusters)
    choice = surplus_choice(surplus, n_clusters, rule, context.tuning)
    # One iteration in small data says less about where clusters are than the coreset does.
    return replace(choice, start=None) if context.size.small else choice
