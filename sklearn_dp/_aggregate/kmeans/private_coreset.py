"""A coreset as the answer, or for a choice of k alone: the first half of the engine.

The steps are those of :func:`.engine.fit_engine` up to the coreset, with all of the budget
(:func:`private_coreset_tuning`): bound, center and size, radius, axes, cells, means. Where the
points are the answer, the public guesses are dropped: they help k-means where no cell is seen, but
here they would be points that no row stands behind. All releases are Gaussian, so a fit is exactly
mu-Gaussian-DP with mu = sqrt(2 rho). What is solved on the points afterward is post-processing.

The aggregation of k-tuples has to know k before it begins, and releases nothing that would tell.
For it :func:`choose_separately` releases a coreset (and surplus centers, above 5 features) for the
choice alone, with a part of the budget that is fixed beforehand: what comes afterward has all of
its own share, whatever the number is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows, TableRows
from ..shared.axes import BASIS_BITS, Axes
from ..shared.bounds import known_or_paid, upper_bound_outside
from .candidates import Candidates, Choice
from .cell_tree import CELLS
from .coreset import Coreset, build_coreset
from .engine import BOUND, far_look_pays, first_entries
from .fit_context import Context, Run, SizedFacts
from .gap import gap_choice
from .line import LINE, column_coreset
from .lloyd import lloyd_entries
from .location import axes_of, located
from .n_clusters import PREFIX, release_surplus, surplus_choice
from .status import Signs, coreset_in_words
from .tuning import TUNING, Tuning

_SAFE = 1 - 2.0**-40  # for the rounding of the parts of these entries


def private_coreset_tuning(n_features: int) -> Tuning:
    """The engine's numbers with other shares, of sum one: there is no Lloyd iteration to pay."""
    cells, means = (0.60, 0.30) if n_features <= 3 else (0.47, 0.29)
    shares: dict[str, Any] = {"center_share": 0.05, "radius_share": 0.04, "moment_share": 0.15}
    return replace(TUNING, **shares, cells_share=cells, means_share=means)


def private_coreset_entries(
    rho: float, n_features: int, *, bounds_known: bool
) -> tuple[PlanEntry, ...]:
    """Plan entries of `build_private_coreset`: from parameters and public facts alone. The last
    one, for the means, may also spend what levels of the tree that were not needed have left."""
    tuning = private_coreset_tuning(n_features)
    *first, means = first_entries(rho, n_features, tuning, bounds_known=bounds_known)
    return (*(replace(entry, max_rho=None) for entry in first), replace(means, max_rho=rho))


@dataclass(frozen=True)
class PrivateCoreset:
    """Released weighted points, in lengths, by decreasing weight."""

    points: np.ndarray  # (m, d), in the domain; at least one
    weights: np.ndarray  # (m,), noisy numbers of units, positive
    widths: np.ndarray  # (m, q), of the cells, along the axes
    basis: np.ndarray | None  # (q, d), the axes, orthonormal up to 2**-20; None: the coordinates
    # released mean squared length of the rows off the axes, for each direction off them
    residual: float
    size: float  # released number of units ...
    size_sd: float  # ... and the standard deviation of its noise
    domain: Domain  # public or released: what the rows were clipped to
    status: str  # "ok", or why the points may be of little use
    # the most units that may lie beyond the domain (95%); None where that is public
    beyond: float | None = None


def build_private_coreset(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    n_clusters: int,
    callback: Callable[[str], object],
) -> PrivateCoreset:
    """Release weighted points that stand for the rows of a table that may have none. The tree is as
    deep as about `n_clusters` groups need."""
    domain, status, norms = known_or_paid(session, BOUND, table, domain)
    run = Run(
        session=session,
        rows=GridRows.quantize(table, domain),
        n_clusters=n_clusters,
        tuning=private_coreset_tuning(table.n_features),
    )
    context = located(run, math.sqrt(2 * session.remaining()))
    coreset: Coreset
    if context.pays(LINE):
        coreset = column_coreset(context, 1.0)
    else:
        axes = axes_of(context)
        callback("axes")
        coreset = build_coreset(context, axes, *_cell_shares(context, axes))
    callback("cells")
    noise = math.sqrt(table.n_features) * n_clusters / context.size.signal
    signs = Signs(
        context.size.signal, noise, coreset.n_leaves, False, math.nan, n_clusters=n_clusters
    )
    status = coreset_in_words(signs, status, n_clusters, context.tuning, session.budget_for)
    found = _in_lengths(context, coreset, domain, status)
    if norms is None:
        return found
    beyond = upper_bound_outside(norms, domain.radius, context.size.n, context.size.sd)
    return replace(found, beyond=beyond)


def _cell_shares(context: Context, axes: Axes) -> tuple[float, float]:
    """For the cell tree, and for a last look at far rows: at most the share of cells together. No
    Lloyd iteration follows that could pay for the look."""
    rho = context.left(CELLS)
    if not far_look_pays(context, axes, rho):
        return rho, 0.0
    tree = rho / (1 + context.tuning.far_cells) * (1 - 2.0**-40)
    return tree, context.tuning.far_cells * tree


def _in_lengths(facts: SizedFacts, coreset: Coreset, domain: Domain, status: str) -> PrivateCoreset:
    """The leaves as points of the domain, the heaviest first; where there is none, the released
    center, whose cell is as wide as a uniform law of the released spread."""
    rows, axes = facts.rows, coreset.axes
    points, weights = coreset.leaves
    widths = coreset.widths
    if not len(points):
        points, weights = np.zeros((1, len(axes.spread))), np.array([facts.size.n])
        widths = math.sqrt(12) * axes.spread[None]
    order = np.argsort(-weights, kind="stable")
    lifted = (axes.lift(points[order]) + rows.origin) * rows.unit + domain.center
    basis = axes.basis
    return PrivateCoreset(
        domain.clip_points(lifted),
        weights[order],
        widths[order] * rows.unit,
        None if basis is None else basis.T * 2.0**-BASIS_BITS,
        axes.rest * rows.unit**2 / max(rows.n_features - len(axes.spread), 1),
        facts.size.n,
        facts.size.sd,
        domain,
        status,
    )


def _tuning(candidates: Candidates, n_features: int) -> Tuning:
    """Shares of the releases up to the coreset: all there is, or what surplus centers leave."""
    return private_coreset_tuning(n_features) if candidates.rule(n_features) == "gap" else TUNING


def separate_entries(
    rho: float, n_features: int, candidates: Candidates, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `choose_separately`: none may spend what belongs to later ones."""
    tuning = _tuning(candidates, n_features)
    first = first_entries(rho, n_features, tuning, bounds_known=True, prefix=prefix)
    first = tuple(replace(entry, max_rho=None) for entry in first)
    if candidates.rule(n_features) == "gap":
        return first
    rest = sum_down([rho, *(-entry.rho for entry in first)])
    return (*first, *lloyd_entries(rest, rest, prefix + PREFIX))


def choose_separately(
    session: PrivacySession,
    table: TableRows,
    domain: Domain,
    candidates: Candidates,
    *,
    prefix: str,
    rho: float,
) -> Choice:
    """Choose the number of clusters by a coreset that is released for this alone, for `rho`."""
    d = table.n_features
    tuning, rule = _tuning(candidates, d), candidates.rule(d)
    run = Run(
        session=session,
        rows=GridRows.quantize(table, domain),
        n_clusters=candidates.reference,
        prefix=prefix,
        tuning=tuning,
    )
    context = located(run, math.sqrt(2 * rho))
    coreset: Coreset
    if context.pays(LINE):
        coreset = column_coreset(context, 1.0)
    else:
        coreset = build_coreset(context, axes_of(context), context.left(CELLS))
    if rule == "gap":
        return gap_choice(coreset, candidates, session.rng("references"))
    plan = session.plan.entries
    surplus = [entry.rho for entry in plan if entry.name.startswith(prefix + PREFIX)]
    found = release_surplus(context, coreset, candidates, sum_down(surplus) * _SAFE)
    return surplus_choice(found, candidates, rule)
