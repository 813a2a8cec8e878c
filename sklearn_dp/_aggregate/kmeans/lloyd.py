"""Locally clipped noisy Lloyd iterations with a Kalman update, from any released start."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import sum_down
from ..shared.centering import bins_of, geometric_edges, noise_sd
from ..shared.rows import WEIGHT_BITS, clipped_sums, nearest, square_sums
from ..shared.shrinkage import excess_of_each
from .estimate import Estimate
from .evidence import cluster_scales, likely_counts
from .moves import cheapest_cost, merge_and_split, split_direction
from .reduce import reduce_centers
from .tuning import TUNING, Tuning

__all__ = ["LloydResult", "lloyd", "lloyd_budget", "lloyd_entries"]

_DISTANCES, _ERRORS = "lloyd distances", "lloyd errors"
_COUNTS, _SUMS = "lloyd counts", "lloyd sums"


def lloyd_entries(rho, cap, prefix=""):
    """Plan entries of `lloyd`, worth `rho` in all, that may also spend what others left.

    Parameters
    ----------
    rho : float
    cap : float
        Most that all of them together may come to.
    prefix : str
    """
    words = {
        _DISTANCES: (0.04, "a unit adds 1 to the histogram of distances"),
        _ERRORS: (0.04, "a unit adds 1: squared distance over its cap"),
        _COUNTS: (0.09, "a unit adds 1 to the counts"),
        _SUMS: (0.83, "a unit adds a residual clipped to the released radius"),
    }
    return tuple(
        PlanEntry(
            prefix + name,
            Mechanism.GAUSSIAN,
            math.nextafter(rho * share, 0.0),
            uses=None,
            max_rho=cap,
            sensitivity=text,
        )
        for name, (share, text) in words.items()
    )


def lloyd_budget(session, prefix=""):
    """What `lloyd` would spend if it started now: what earlier releases have left, up to its cap.

    The entries that follow in the plan, on the same path, keep their shares.
    """
    entries = session.plan.entries
    place = [entry.name for entry in entries].index(prefix + _SUMS)
    paths = set(entries[place].paths)
    later = [
        entry.rho
        for entry in entries[place + 1 :]
        if not (paths and entry.paths) or paths & set(entry.paths)
    ]
    free = sum_down([session.remaining(), *(-rho for rho in later)])
    return min(session.remaining(prefix + _SUMS), free)


@dataclass(frozen=True)
class LloydResult:
    """What the iterations release, in grid steps about the origin of the rows.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
    variance : ndarray of shape (k,)
        Of the noise in each coordinate of a center.
    counts, counts_sd : ndarray of shape (k,)
    reach : ndarray of shape (k,)
        Distance from each center that few of its rows are beyond.
    spread, spread_variance : ndarray of shape (k,)
        Mean squared distance in each cluster when last released; of infinite variance when not.
    n_iterations : int
    error : float
    noise_share : float
    """

    centers: np.ndarray
    variance: np.ndarray
    counts: np.ndarray
    counts_sd: np.ndarray
    reach: np.ndarray
    spread: np.ndarray
    spread_variance: np.ndarray
    n_iterations: int
    error: float
    noise_share: float = math.nan


@dataclass
class _LloydContext:
    """What the iterations of one run share."""

    session: object
    prefix: str
    rows: object
    units: object
    size: object
    radius: float
    n_clusters: int
    axes: object = None
    coreset: object = None
    tuning: Tuning = TUNING
    budget: float = field(init=False)
    inside: float = field(init=False)
    reach: object = None  # of each cluster, by the last histogram of distances

    def __post_init__(self):
        self.budget = self.left()
        # Noise of an iteration over the rows, in radii: from next to none to hopeless. Where
        # there is none, a clip is only a bias, and long tails of real data show it.
        noise = math.sqrt(self.rows.n_features) * self.n_clusters * noise_sd(self.budget / 4)
        self.inside = float(
            np.interp(
                math.log(noise / self.size.n), np.log(self.tuning.inside_noise), self.tuning.inside
            )
        )

    def name(self, entry):
        return self.prefix + entry

    def left(self):
        return lloyd_budget(self.session, self.prefix)

    @property
    def most_iterations(self):
        return self.tuning.small_most_iterations if self.size.small else self.tuning.most_iterations

    def asks_for_spread(self, iteration, n_centers):
        """Whether the spread of the clusters is released: two of them have no pair to merge."""
        return (
            iteration <= self.tuning.spread_iterations
            and self.n_clusters > 2
            and n_centers == self.n_clusters
        )

    @property
    def share(self):
        return self.tuning.small_iteration_share if self.size.small else self.tuning.iteration_share


def lloyd(
    session,
    rows,
    units,
    centers,
    size,
    radius,
    *,
    n_clusters,
    axes=None,
    coreset=None,
    prefix="",
    callback=None,
    tuning=TUNING,
):
    """Improve released centers by noisy Lloyd iterations, with all the budget that is left.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `lloyd_entries`.
    rows : Rows
    units : Units
    centers : ndarray of shape (k0, d), in steps about the origin of the rows
        Released; k0 >= n_clusters, reduced to n_clusters after the first iteration.
    size : Size
    radius : float
        Released radius of the data, in steps.
    n_clusters : int
    axes : Axes, optional
        Where centers are compared when they are reduced.
    coreset : Coreset, optional
        Tells in which direction to split a cluster.
    prefix : str
    callback : callable, optional
        Called with the name of each iteration when it is done.
    tuning : Tuning

    Returns
    -------
    result : LloydResult
    """
    context = _LloydContext(
        session, prefix, rows, units, size, radius, n_clusters, axes, coreset, tuning
    )
    estimate, last, converged = Estimate.start(centers), False, 0
    for iteration in range(1, context.most_iterations + 1):
        last = last or iteration == context.most_iterations
        converged = converged + 1 if _iterate(context, estimate, iteration, last) else 0
        if callback is not None:
            callback(f"noisy Lloyd iteration {iteration}")
        if last:
            break
        # What was split needs time to settle.
        last = iteration >= 2 and converged >= (2 if estimate.moved else 1)
    reach = np.full(n_clusters, radius) if context.reach is None else context.reach
    return LloydResult(
        estimate.centers,
        estimate.variance,
        estimate.count,
        estimate.count_sd,
        reach,
        estimate.spread,
        estimate.spread_variance,
        iteration,
        estimate.error,
        estimate.noise_share,
    )


def _iterate(context, estimate, iteration, last):
    """One noisy Lloyd iteration. Returns whether the next one may be the last."""
    tuning = context.tuning
    # Rows are compared with integer centers inside the ball, so that distances are exact.
    estimate.centers = context.rows.inside(estimate.centers)
    labels, squared = nearest(context.rows, estimate.centers)
    budget = context.left() if last else context.share * context.budget
    scales = estimate.reach * cluster_scales(context, estimate.centers)
    radius, gain = _clip_radius(context, labels, squared, scales, tuning.distance_share * budget)
    budget -= tuning.distance_share * budget
    errors = None
    if not last and context.asks_for_spread(iteration, len(estimate.centers)):
        errors = _errors(context, labels, squared, radius, tuning.spread_share * budget)
        budget -= tuning.spread_share * budget
    counts_rho = tuning.count_share * budget
    counts = histogram(
        context.session,
        context.name(_COUNTS),
        labels,
        len(estimate.centers),
        context.units,
        counts_rho,
    )
    estimate.update_counts(counts, noise_sd(counts_rho), tuning.count_memory)
    sums_rho = context.left() if last else budget - counts_rho
    sums = _residual_sums(context, estimate.centers, labels, squared, radius, sums_rho)
    noise = radius * noise_sd(sums_rho)
    drift, displacement = _update(
        estimate,
        sums,
        noise,
        radius,
        gain,
        tuning,
        relax=iteration > 1 and not last,
        low_signal=context.size.small,
    )
    n_moves = 0
    if errors is not None:
        n_moves = _move(context, estimate, *errors, displacement, _evidence(context, iteration))
    if len(estimate.centers) > context.n_clusters:
        reduce_centers(context, estimate)
        return False
    # Two centers that share a cluster are not the end, as long as the spread is still asked for.
    return n_moves == 0 and not drift and not (estimate.idle and errors is not None)


def _evidence(context, iteration):
    """Standard deviations by which a split has to gain."""
    if iteration == 1:
        return context.tuning.first_evidence
    return context.tuning.small_evidence if context.size.small else context.tuning.evidence


def _clip_radius(context, labels, squared, scales, rho):
    """Radius of each cluster that most rows (few, where noise rules) are within, and its effect.

    One relative radius for all, times the released scale of each.
    """
    tuning = context.tuning
    n_bins = tuning.small_clip_bins if context.size.small else tuning.clip_bins
    edges = geometric_edges(tuning.clip_top * context.radius, n_bins, 2 ** (1 / 3))
    # Elementwise: the bin of a row is a function of the row and of released values alone.
    relative = squared * (1 / np.square(scales))[labels]
    counts = histogram(
        context.session,
        context.name(_DISTANCES),
        bins_of(relative, edges),
        n_bins,
        context.units,
        rho,
    )
    sd, n = noise_sd(rho), context.size.n
    radius = None
    if sd * math.sqrt(n_bins) <= tuning.clip_noise * n:
        # A radius too large costs more than one too small: a sum of bins has to exceed more.
        radius = quantile_from_histogram(
            counts, edges, tuning.clip_sd * sd, (1 - context.inside) * n
        )
    radius = tuning.clip_default * context.radius if radius is None else radius
    reach = quantile_from_histogram(counts, edges, tuning.clip_sd * sd, 0.0) or context.radius
    context.reach = np.minimum(tuning.quality_reach * reach * scales, context.radius)
    gain = _gain(counts, edges, radius, context.rows.n_features, tuning.least_gain)
    return radius * scales, gain


def _gain(counts, edges, radius, d, least):
    """How far a clipped mean moves when all the rows move by one."""
    distance = (edges[1:] + edges[:-1]) / 2
    effect = np.where(distance > radius, radius / distance * (1 - 1 / d), 1.0)
    weight = np.maximum(counts, 0.0)
    return float(np.clip(weight @ effect / max(weight.sum(), 1e-300), least, 1.0))


def _errors(context, labels, squared, radius, rho):
    """Noisy sum of squared distances in each cluster, capped; and its noise."""
    cap = (context.tuning.spread_cap * radius) ** 2
    steps, scale = square_sums(labels, squared, cap, context.n_clusters, context.units)
    # A row adds to one cluster between 0 and `scale` steps, and so does a unit.
    noisy = context.session.gaussian(
        context.name(_ERRORS),
        steps,
        sensitivity=scale,
        rho=rho,
        unit=cap / scale * context.rows.unit**2,
    )
    return noisy / context.rows.unit**2, cap * noise_sd(rho)


def _residual_sums(context, centers, labels, squared, radius, rho):
    """Noisy sums of the clipped residuals, in steps."""
    sums = clipped_sums(context.rows, centers, labels, squared, radius, context.units)
    # A row is in one cluster, with a residual of at most the radius of that cluster: a unit moves
    # the stack of sums, each over its radius, by a vector of length at most one (2**bits steps).
    claim = np.nextafter(radius * 2.0**WEIGHT_BITS, np.inf)[:, None]
    noisy = context.session.gaussian(
        context.name(_SUMS),
        sums,
        rho=rho,
        sensitivity=np.broadcast_to(claim, sums.shape),
        unit=2.0**-WEIGHT_BITS * context.rows.unit,
    )
    return noisy / context.rows.unit


def _update(estimate, sums, sums_sd, radius, gain, tuning, *, relax, low_signal=False):
    """Kalman update of the centers. Returns whether they still drift, and their displacement.

    Movement counts as drift above a part of its noise; all of it where the signal is low and
    starts are poor.
    """
    d = sums.shape[1]
    n, sure = estimate.certain_counts(tuning.sure)
    seen = sums / (gain * n)[:, None]
    noise = np.square(sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", seen, seen)
    expected = noise + estimate.variance
    drift, drift_sd = _drift(length, expected, n, radius, d)
    ignored = (0.0 if low_signal else tuning.movement) * math.sqrt(2 / d)
    excess = length / d - expected - ignored * expected
    prior = estimate.variance + excess_of_each(excess, n, min(1.0, d / tuning.own_movement))
    weight = prior / (prior + noise) * np.where(sure, 1.0, tuning.unsure_step)
    far = tuning.overshoot if relax and drift > tuning.drift_sd * drift_sd else 1.0
    estimate.centers = estimate.centers + far * weight[:, None] * seen
    estimate.variance = (1 - weight) * prior
    drifting = drift >= max(tuning.least_drift, tuning.drift_sd * drift_sd)
    creeping = sure & (
        length > np.square(tuning.creep * radius) + noise * (d + tuning.creep_sd * math.sqrt(2 * d))
    )
    estimate.widen(creeping, tuning.most_scale)
    return drifting or creeping.any(), np.square(far * weight) * length


def _drift(length, expected, n, radius, d):
    """Mean squared movement beyond the noise, in squared radii; and its standard deviation."""
    total = float(np.sum(n * np.square(radius)))
    drift = n @ (length - d * expected) / total
    return drift, math.sqrt(2 * d * np.sum(np.square(n * expected))) / total


def _move(context, estimate, errors, errors_sd, displacement, evidence):
    """Merge and split clusters by their spread; returns the number of moves."""
    tuning, d = context.tuning, context.rows.n_features
    n, sure = estimate.certain_counts(tuning.sure)
    estimate.error = float(np.maximum(errors, 0.0).sum())
    estimate.update_spread(
        np.maximum(errors / n - displacement, 0.0), errors_sd / n, tuning.spread_memory
    )
    noise_share = d * n * estimate.variance / np.maximum(errors, errors_sd)
    estimate.noise_share = float(np.median(np.minimum(noise_share, 1.0)))
    likely, likely_sd, seen = likely_counts(context, estimate)
    # Cells tell clusters apart on the axes only: where these leave something out, counts rule.
    whole = context.axes is not None and len(context.axes.spread) == d
    estimate.likely = likely if whole else estimate.count
    estimate.likely_sd = likely_sd if whole else estimate.count_sd
    estimate.unseen = ~seen
    excess = estimate.spread - np.median(estimate.spread)
    gain = np.where(sure, n * excess, 0.0), n * np.sqrt(estimate.spread_variance)
    half = _half_a_cluster(estimate, n, d)
    noisy = estimate.noise_share > tuning.noisy  # then the smallest merger says nothing

    def needed(cost):
        if noisy or cost >= half:
            return evidence
        return max(tuning.least_evidence, evidence * cost / half)

    n_moves = merge_and_split(
        estimate,
        np.maximum(excess, 0.0),
        gain,
        needed,
        _Directions(context, estimate.centers),
        tuning,
        most=max(1, int(tuning.moves * context.n_clusters)),
    )
    estimate.moved = estimate.moved or n_moves > 0
    estimate.idle = not noisy and cheapest_cost(estimate, tuning) < tuning.shared_cluster * half
    return n_moves


def _half_a_cluster(estimate, n, d):
    """About what dividing a typical round cluster in two would save.

    A pair that costs less to merge shares a cluster, so that another one is missed; then a wrong
    split costs next to nothing.
    """
    return float(np.median(n * estimate.spread)) * min(1.0, 2.0 / d) / 2


class _Directions:
    """Directions to split clusters in, from the coreset."""

    def __init__(self, context, centers):
        self._rng = context.session.rng("split")
        self._coreset, self._axes, self._centers = context.coreset, context.axes, centers.copy()

    def __call__(self, j):
        vector = None
        if self._coreset is not None:
            flat = self._axes.flatten(self._centers)
            points, weights = self._coreset.points, self._coreset.weights
            near = np.argmin(np.einsum("ij,ij->i", flat, flat) - 2 * points @ flat.T, axis=1) == j
            vector = split_direction(points[near], weights[near], self._rng)
        if vector is not None:
            return self._axes.lift(vector)
        guess = self._rng.random(self._centers.shape[1]) - 0.5
        return guess / np.linalg.norm(guess)
