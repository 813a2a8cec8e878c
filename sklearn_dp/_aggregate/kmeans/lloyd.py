"""Locally clipped noisy Lloyd iterations with a Kalman update, from any released start.

An iteration

1. moves the centers to integers inside the ball of the rows, and finds the nearest one of each row:
   unreleased, and exact, so that a row's label is a function of that row alone;
2. releases a histogram of the distances: the clip radius of each cluster (:mod:`.clipped_update`);
3. in the first iterations, releases the capped sum of squared distances in each cluster;
4. releases the count of each cluster, and averages it with earlier ones (:mod:`.lloyd_state`);
5. releases the sum of the clipped residuals of each cluster, and moves the centers by as much of it
   as is no noise (:mod:`.clipped_update`);
6. with the sums of squares, merges and splits clusters (:mod:`.split_merge`); from more centers
   than asked for, comes down to that number (:func:`.split_merge.reduce_centers`).

Each but the last spends the same part of the budget, and the last one all that is left. The
iterations end when the centers have stopped drifting, by released values only.

Who calls: :func:`.engine.fit_engine`, and `DPKTupleKMeans` from the centers of its tuples, without
a coreset.
"""

import math

import numpy as np

from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._session import PrivacySession
from ..._queries.clusters import ClusterSums, Nearest
from ..shared.centering import noise_sd
from .clipped_update import DISTANCES, Observation, clip_radius, distance_edges, update
from .coreset import Coreset
from .fit_context import Context
from .lloyd_state import LloydContext, LloydResult, LloydState, cluster_scales, seen_width
from .split_merge import move_clusters, reduce_centers

ERRORS, _COUNTS, _SUMS = "lloyd errors", "lloyd counts", "lloyd sums"


def lloyd_entries(
    rho: float, cap: float, prefix: str = "", *, moves: bool = True
) -> tuple[PlanEntry, ...]:
    """Plan entries of `lloyd`, worth `rho` in all, that may also spend what others left.

    How the iterations share the budget out follows from releases. Each entry may take up to the
    cap, the most that all of them together may come to, as far as the session has it left. Without
    `moves` the spread of clusters is not asked for.
    """
    words = {
        DISTANCES: (0.04, "a unit adds 1 to the histogram of distances"),
        ERRORS: (0.04, "a unit adds 1: squared distance over its cap"),
        _COUNTS: (0.09, "a unit adds 1 to the counts"),
        _SUMS: (0.83, "a unit adds a residual clipped to the released radius"),
    }
    return tuple(
        PlanEntry.gaussian(
            prefix + name, math.nextafter(rho * share, 0.0), text, uses=None, max_rho=cap
        )
        for name, (share, text) in words.items()
        if moves or name != ERRORS
    )


def lloyd_budget(session: PrivacySession, prefix: str = "") -> float:
    """What `lloyd` would spend if it started now: what earlier releases have left, up to its cap.
    Later entries on the same path keep their shares; other paths are paid for by their own."""
    entries = session.plan.entries
    place = [entry.name for entry in entries].index(prefix + _SUMS)
    paths = set(entries[place].paths)
    later = [
        min(entry.rho, session.remaining(entry.name))
        for entry in entries[place + 1 :]
        if not (paths and entry.paths) or paths & set(entry.paths)
    ]
    free = sum_down([session.remaining(), *(-rho for rho in later)])
    return min(session.remaining(prefix + _SUMS), free)


def _left(context: Context) -> float:
    """What the iterations may still spend: all but what is for later steps."""
    left = lloyd_budget(context.session, context.prefix)
    return sum_down([left, -context.reserve]) if context.reserve else left


def lloyd(
    context: Context,
    centers: np.ndarray,
    variance: np.ndarray | None = None,
    *,
    coreset: Coreset | None = None,
) -> LloydResult:
    """Improve released centers (k0, d) by noisy Lloyd iterations, with all the budget that is left.

    They are in steps about the origin of the rows; k0 >= n_clusters, reduced to n_clusters along
    the axes of the coreset after the first iteration. `variance` (k0,) is that of the noise in each
    coordinate of a center; by default the centers are taken as they are.
    """
    context = lloyd_context(context, coreset)
    state, last, converged = LloydState(centers), False, 0
    if variance is not None:
        state.variance = variance.copy()
    for iteration in range(1, context.most_iterations + 1):
        last = last or iteration == context.most_iterations
        converged = converged + 1 if _iterate(context, state, iteration, last) else 0
        if context.callback is not None:
            context.callback(f"noisy Lloyd iteration {iteration}")
        if last:
            break
        # What was split needs time to settle.
        last = iteration >= 2 and converged >= (2 if state.moved else 1)
    return state.result(iteration)


def lloyd_context(
    context: Context, coreset: Coreset | None, budget: float | None = None
) -> LloydContext:
    """The context with the budget of all iterations, and the part of the rows not to clip."""
    if budget is None:
        budget = _left(context)
    tuning = context.tuning
    # Noise of an iteration over the rows, in radii: from next to none to hopeless. Where there is
    # none, a clip is only a bias, and long tails of real data show it.
    noise = math.sqrt(context.rows.n_features) * context.n_clusters * noise_sd(budget / 4)
    known = np.log(tuning.inside_noise)
    inside = float(np.interp(math.log(noise / context.size.n), known, tuning.inside))
    return LloydContext(**vars(context), coreset=coreset, budget=budget, inside=inside)


def _iterate(context: LloydContext, state: LloydState, iteration: int, last: bool) -> bool:
    """One noisy Lloyd iteration, in place; whether the next one may be the last: no cluster was
    moved, and the centers do not drift."""
    tuning = context.tuning
    # Rows are compared with integer centers inside the ball, so that distances are exact.
    state.centers = context.rows.inside(state.centers)
    budget = _left(context) if last else context.share * context.budget
    asked = state.blocked or context.asks_for_spread(iteration, len(state.centers))
    spread = asked and not last
    moves = state.precise and not last
    seen = observe(context, state.centers, budget, spread=spread, last=last, moves=moves)
    state.farthest, state.counted = seen.clip.reach, state.centers
    state.distances = seen.clip.norms(context.size.n)
    state.update_counts(seen.counts, seen.counts_sd, tuning.memory)
    low, relax = context.coarse, iteration > 1 and not last
    drift, displacement = update(state, seen, tuning, relax=relax, low_signal=low)
    n_moves = 0
    if seen.errors is not None:
        n_moves = move_clusters(context, state, *seen.errors, displacement)
    if len(state.centers) > context.n_clusters:
        reduce_centers(context, state)
        return False
    # A center that is needed elsewhere is not the end, as long as the spread is still asked for.
    needed = state.idle or state.blocked
    return n_moves == 0 and not drift and not (needed and spread)


def observe(
    context: LloydContext,
    centers: np.ndarray,
    budget: float,
    *,
    spread: bool,
    last: bool = False,
    moves: bool = False,
) -> Observation:
    """Release what an iteration needs to know of the rows next to each center.

    The centers (k, d) are released, integer-valued, inside the ball of the rows. `spread`:
    whether the sums of squared distances are released too. `last`: the sums of residuals get all
    that is left. `moves`: look for moves above all, at counts and spreads.
    """
    tuning, rows = context.tuning, context.rows
    scales = cluster_scales(context, centers)
    near = rows.ask(Nearest(centers, scales, distance_edges(context)))
    distances_rho = tuning.distance_share * budget
    width = seen_width(context, centers)
    clip = clip_radius(context, near.distances, scales, distances_rho, width)
    budget -= distances_rho
    cap = (tuning.spread_cap * clip.radius) ** 2
    found = rows.ask(ClusterSums(clip.radius, cap if spread else None))
    errors, share = None, tuning.moves_share if moves else tuning.count_share
    if spread:
        spread_rho = share * budget
        squares = context.released(ERRORS, found.squares, spread_rho) / rows.unit**2
        errors = squares, cap * noise_sd(spread_rho)
        budget -= spread_rho
    counts_rho = share * budget
    counts = context.released(_COUNTS, near.counts, counts_rho)
    # The last iteration spends all that is left, rounding errors of the shares too.
    sums_rho = _left(context) if last else budget - counts_rho
    sums = context.released(_SUMS, found.residuals, sums_rho) / rows.unit
    return Observation(
        clip, errors, counts, noise_sd(counts_rho), sums, clip.radius * noise_sd(sums_rho)
    )
