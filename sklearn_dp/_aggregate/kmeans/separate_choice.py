"""The number of clusters for an algorithm that makes no coreset: a choice with a share of its own.

The aggregation of k-tuples has to know k before it begins, and releases nothing that would tell.
So a coreset is released for the choice alone (and surplus centers, above 5 features), as in
:func:`.engine.fit_engine`, but for a part of the budget that is fixed beforehand: what comes
afterward has all of its own share, whatever the number is.
"""

import math
from dataclasses import replace

from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._session import PrivacySession
from ..shared.grid_table import GridTable
from ..shared.table import Table
from .candidates import Candidates, Choice
from .coreset import build_coreset
from .engine import CELLS, MEANS, axes_of, first_entries, located
from .fit_context import Run
from .gap import gap_choice
from .lloyd import lloyd_entries
from .private_coreset import private_coreset_tuning
from .surplus_lloyd import PREFIX, release_surplus, surplus_choice
from .tuning import TUNING, Tuning

_SAFE = 1 - 2.0**-40  # for the rounding of the parts of these entries


def _tuning(candidates: Candidates, n_features: int) -> Tuning:
    """Shares of the releases up to the coreset: all there is, or what surplus centers leave."""
    return private_coreset_tuning(n_features) if candidates.rule(n_features) == "gap" else TUNING


def separate_entries(
    rho: float, n_features: int, candidates: Candidates, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `choose_separately`: from parameters and public facts alone.

    The sum of all of them stays below `rho`, and so do the releases: none may spend what belongs to
    later ones. Their sensitivities are those of the engine's entries of the same names.
    """
    tuning = _tuning(candidates, n_features)
    first = first_entries(rho, n_features, bounds_known=True, prefix=prefix, tuning=tuning)
    first = tuple(replace(entry, max_rho=None) for entry in first)
    if candidates.rule(n_features) == "gap":
        return first
    rest = sum_down([rho, *(-entry.rho for entry in first)])
    return (*first, *lloyd_entries(rest, rest, prefix + PREFIX))


def choose_separately(
    session: PrivacySession,
    table: Table,
    domain: Domain,
    candidates: Candidates,
    *,
    prefix: str,
    rho: float,
) -> Choice:
    """Choose the number of clusters by a coreset that is released for this alone.

    The session's plan holds `separate_entries`, which were given the same `rho`. The domain is
    public, or released before.
    """
    d = table.n_features
    tuning, rule = _tuning(candidates, d), candidates.rule(d)
    run = Run(
        session=session,
        rows=GridTable.quantize(table, domain),
        n_clusters=candidates.reference,
        prefix=prefix,
        tuning=tuning,
    )
    context = located(run, math.sqrt(2 * rho))
    coreset = build_coreset(context, CELLS, MEANS, axes_of(context), context.left(CELLS))
    if rule == "gap":
        return gap_choice(coreset, candidates, session.rng("references"))
    plan = session.plan.entries
    surplus = [entry.rho for entry in plan if entry.name.startswith(prefix + PREFIX)]
    found = release_surplus(context, coreset, candidates, sum_down(surplus) * _SAFE)
    return surplus_choice(found, candidates, rule)
