"""A coreset as the answer, or for a choice of k alone: the first half of the engine.

Where the points are the answer, the public guesses are dropped: no row stands behind them. All
releases are Gaussian, so a fit is exactly mu-Gaussian-DP with mu = sqrt(2 rho).

The aggregation of k-tuples has to know k before it begins. For it :func:`choose_separately`
releases a coreset (and surplus centers, above 5 features) with a fixed part of the budget.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from ..._costs.numbers import sum_down
from ..._costs.plan import CommunicationCost, Pass, PlanEntry, Workload
from ..._privacy._grid import Domain
from ..._privacy._randomness import uniforms
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.grids import BASIS_BITS, GridRows
from ..._status import Status
from ..shared.bounds import known_or_paid, upper_bound_outside
from ..shared.centering import Size
from .coreset import (
    CELLS,
    LINE,
    MOST_BITS_A_LEVEL,
    Coreset,
    axes_of,
    build_coreset,
    column_coreset,
    depths_of_levels,
    release_location,
)
from .engine import BOUND, far_look_pays, first_entries, may_project
from .fit_context import TUNING, Candidates, Choice, Context, Run, SizedFacts, Tuning
from .lloyd import lloyd_entries
from .n_clusters import PREFIX, gap_choice, release_surplus, surplus_choice
from .result import Diagnostics, format_status

_SAFE = 1 - 2.0**-40  # for the rounding of the parts of these entries


def private_coreset_tuning(n_features: int) -> Tuning:
    """The engine's numbers with other shares, of sum one: there is no Lloyd iteration to pay."""
    cells, means = (0.60, 0.30) if n_features <= 3 else (0.47, 0.29)
    shares: dict[str, Any] = {"center_share": 0.05, "radius_share": 0.04, "moment_share": 0.15}
    return replace(TUNING, **shares, cells_share=cells, means_share=means)


def private_coreset_entries(
    rho: float, n_features: int, *, bounds_known: bool
) -> tuple[PlanEntry, ...]:
    """Plan entries of `build_private_coreset`; the last one may spend what the tree has left."""
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
    status: Status  # why the points may be of little use
    # the most units that may lie beyond the domain (95%); None where that is public
    beyond: float | None = None


def build_private_coreset(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    n_clusters: int,
    callback: Callable[[str], object],
) -> PrivateCoreset:
    """Release weighted points that stand for the rows, of a tree for `n_clusters` groups."""
    domain, status, norms = known_or_paid(session, BOUND, table, domain)
    run = Run(
        session=session,
        rows=GridRows.quantize(table, domain),
        n_clusters=n_clusters,
        tuning=private_coreset_tuning(table.n_features),
        callback=callback,
    )
    context, coreset = _first_half(run, session.remaining(), look=True)
    callback("cells")
    noise = math.sqrt(table.n_features) * n_clusters / context.size.signal
    signs = Diagnostics(
        context.size.signal, noise, coreset.n_leaves, False, math.nan, n_clusters=n_clusters
    )
    status = format_status(signs, status, session.budget_for, points=True)
    in_lengths = _in_lengths(context, coreset, domain, status)
    if norms is None:
        return in_lengths
    beyond = upper_bound_outside(norms, domain.radius, context.size.n, context.size.sd)
    return replace(in_lengths, beyond=beyond)


def _first_half(run: Run, rho: float, *, look: bool) -> tuple[Context, Coreset]:
    """The steps up to the coreset, of a fit that spends `rho`. `look`: at far rows, too."""
    context = release_location(run, math.sqrt(2 * rho))
    if context.pays(LINE):
        return context, column_coreset(context, 1.0)
    (axes, _), cells = axes_of(context), context.left(CELLS)
    if run.callback is not None:
        run.callback("axes")
    if not look or not far_look_pays(context, axes, cells):
        return context, build_coreset(context, axes, cells)
    tree = cells / (1 + context.tuning.far_cells) * _SAFE
    return context, build_coreset(context, axes, tree, context.tuning.far_cells * tree)


def _in_lengths(
    facts: SizedFacts, coreset: Coreset, domain: Domain, status: Status
) -> PrivateCoreset:
    """The leaves as points of the domain, the heaviest first; where there is none, the center."""
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
    context, coreset = _first_half(run, rho, look=False)
    if rule == "gap":
        return gap_choice(coreset, candidates, session.rng("references"))
    plan = session.plan.entries
    surplus = [entry.rho for entry in plan if entry.name.startswith(prefix + PREFIX)]
    surplus_state = release_surplus(context, coreset, candidates, sum_down(surplus) * _SAFE)
    return surplus_choice(surplus_state, candidates, rule)


# -- communication cost ----------------------------------------------------------------------------


_WORDS = 400  # bytes of a message beside its arrays: names of functions, shapes, a small one's
_NUMBER = 8
_CELL = 16  # a cell and its count
_GROUP = 16  # an id of a group and its size
_DIGESTS = 24  # the number of a part, and digests of its rows, groups and weights
_NORMS = 402  # bins of norms; see `norm_counts`


def kmeans_communication_cost(
    work: Workload,
    *,
    n_features: int,
    n_clusters: int,
    rho: float,
    bounds_known: bool,
    grouped: bool,
    columns: tuple[float, float],
    started: bool,
) -> CommunicationCost:
    """The cost of the passes of a fit with a budget of `rho`, of parts that are alike, without the
    look at far rows; `columns` are the shares for their units, and to refine centers."""
    d, k = n_features, n_clusters
    q, size = min(d, TUNING.most_axes), Size(float(work.n_rows), math.sqrt(2 * rho))
    may = may_project(d, k, TUNING) and not started and not size.small
    p = TUNING.projection_features if may else 0
    passes = _located(work, d, bounds_known, grouped)
    if may:
        passes.append(_pass("projected moment", d * p, p * p))
    if not started:
        passes += [_pass("moment", d, d * d)] * (d > 3)
        passes += _tree(d * (p + q), q, work, depths_of_levels(q, size, k, TUNING))
    k0 = round(TUNING.start_surplus * k) if q > 3 and not started else k
    if may:
        passes += _lloyd(p, k0, k, work.n_iter, 2 * TUNING.most_iterations, "projected ")
    most = TUNING.few_iterations if size.small else TUNING.most_iterations
    passes += _lloyd(d, k0, k, work.n_iter, most)
    passes.append(_pass("quality", k * (d + 1) + d + 2, 2))
    passes += _columns(d, k, *columns)
    row_bytes = float(work.row_bytes or 4 * d)
    return CommunicationCost(tuple(passes), work.n_parts, work.n_rows, work.n_workers, row_bytes)


def _located(work: Workload, d: int, bounds_known: bool, grouped: bool) -> list[Pass]:
    """Return the passes that open the table and find where its rows are."""
    digests, ids = _DIGESTS * work.n_parts, 0
    passes = [Pass("rows", _WORDS, _WORDS + _DIGESTS, _WORDS + digests)]
    if grouped:
        ids = _GROUP * (work.n_rows if work.n_groups is None else work.n_groups)
        up = _WORDS + min(_GROUP * _rows_of_a_part(work), ids)
        passes.append(Pass("groups", _WORDS, up, ids))
    if not bounds_known:
        passes.append(_pass("bound", 2 * d, _NORMS))
    passes.append(_pass("totals", 2 * d, d + 1))
    passes.append(_pass("lengths", d + TUNING.radius_bins + 1, TUNING.radius_bins))
    # Digests of all parts travel with the pass after the first, and the sizes of all groups with
    # the pass after that which has counted them.
    passes[1] = replace(passes[1], down=passes[1].down + digests)
    if grouped:
        passes[2] = replace(passes[2], down=passes[2].down + ids)
    return passes


def _rows_of_a_part(work: Workload) -> int:
    return -(-work.n_rows // work.n_parts)


def _columns(d: int, k: int, scales: float, refined: float) -> list[Pass]:
    """Units of columns, and centers that are refined in them."""
    passes = []
    if scales:  # the second one, of columns far from zero, is repeated where they are very far
        passes += [_pass("octaves", 404 * d, 401 * d), _pass("column bins", 66 * d, 64 * d)]
    if refined:
        up = k * (d + 1) + 2 * d
        for name in ("columns", "columns again")[: 1 + (k > 1)]:
            passes.append(_pass(name, 3 * k * d + 4 * d, up))
    return passes


def _tree(axes: int, q: int, work: Workload, depths: list[int]) -> list[Pass]:
    """The levels of the cell tree, and the sums of its leaves: a cell is a leaf at the most."""
    most = min(work.n_rows, 2 ** min(MOST_BITS_A_LEVEL, depths[-1]))
    cells = most if work.n_cells is None else min(work.n_cells, most)
    passes, nodes = [], 2
    for number in range(len(depths)):
        down = nodes + (axes + 3 * q if number == 0 else 2 * cells)  # slots; axes, or new nodes
        up, total = _CELL * min(_rows_of_a_part(work), cells), _CELL * cells
        name = f"level {number + 1}"
        passes.append(Pass(name, 3 * _WORDS + _NUMBER * down, _WORDS + up, _WORDS + total))
        nodes += cells
    return [*passes, _pass("leaves", 2 * cells + nodes + (q + 1) * cells, q * cells)]


def _lloyd(d: int, k0: int, k: int, n_iter: int | None, most: int, where: str = "") -> list[Pass]:
    """Two passes for each iteration, the first of them from surplus centers."""
    n_iter = most if n_iter is None else min(n_iter, most)
    passes = []
    for step, centers, times in (("start", k0, 1), ("iteration", k, n_iter - 1)):
        name = where + step
        down, bins = centers * (d + 1), TUNING.clip_bins
        passes += [
            _pass(f"{name} a", down + bins + 1, bins + centers, times),
            _pass(f"{name} b", down + centers, centers * (d + 1), times),
        ]
    return [one for one in passes if one.times]


def _pass(name: str, down: int, up: int, times: int = 1) -> Pass:
    """A pass of so many numbers, whose totals are as long as the sums of a part."""
    sums = _WORDS // 2 + _NUMBER * up
    return Pass(name, _WORDS + _NUMBER * down, sums, sums, times)


# -- block kmeans ----------------------------------------------------------------------------------


_TRIALS = 24  # candidates for each next center: 12 miss a cluster of 20 in one block of five
_ITERATIONS, _TOLERANCE = 100, 1e-4  # as KMeans


class BlockKMeans(ClusterMixin, BaseEstimator):
    """Lloyd's iterations from a greedy k-means++ start; `random_state` is below 2**31."""

    def __init__(self, n_clusters: int = 8, random_state: int = 0) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: None = None) -> Self:
        """Fit to finite rows of doubles, at least one."""
        middle = X.mean(axis=0)  # the squares below lose digits far from the origin
        rows = X - middle
        centers = _start(rows, self.n_clusters, self.random_state)
        self.cluster_centers_ = _iterate(rows, centers) + middle
        return self


def _start(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007): the best candidate for each center."""
    n = len(rows)
    squares, ones = np.einsum("ij,ij->i", rows, rows), np.ones(n)
    # |c - x|^2 = -2 c.x + |x|^2 + |c|^2 as one product.
    left, right = np.column_stack([-2 * rows, ones, squares]), np.vstack([rows.T, squares, ones])
    draws, chosen = uniforms(seed, (k, _TRIALS)), np.empty(k, dtype=np.intp)
    chosen[0] = draws[0, 0] * n
    closest = left[chosen[0]] @ right
    for step in range(1, k):
        mass = np.maximum(closest, 0.0).cumsum()
        trial = np.minimum(mass.searchsorted(draws[step] * mass[-1], side="right"), n - 1)
        after = np.minimum(left[trial] @ right, closest)
        best = after.sum(axis=1).argmin()
        chosen[step], closest = trial[best], after[best]
    return rows[chosen]


def _iterate(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Lloyd's iterations; a center without rows stays where it is."""
    clusters = np.arange(len(centers))
    limit, labels = _TOLERANCE * rows.var(axis=0).mean(), None
    for _ in range(_ITERATIONS):
        before = labels
        scores = rows @ (-2 * centers.T)
        scores += np.einsum("ij,ij->i", centers, centers)
        labels = scores.argmin(axis=1)
        if before is not None and (labels == before).all():
            break
        member = (labels[:, None] == clusters).astype(np.float64)
        mass = member.sum(axis=0)[:, None]
        moved = np.where(mass > 0, member.T @ rows / np.maximum(mass, 1.0), centers)
        shift, centers = np.square(moved - centers).sum(), moved
        if shift <= limit:
            break
    return centers
