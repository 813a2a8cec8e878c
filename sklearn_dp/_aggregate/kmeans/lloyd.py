"""Locally clipped noisy Lloyd steps with a Kalman update, from any released start."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..._privacy._accounting import sum_down
from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..._privacy._session import PlanEntry
from ..shared.centering import bins_of, geometric_edges, noise_sd
from ..shared.rows import WEIGHT_BITS, clipped_sums, nearest, square_sums
from ..shared.weighted_kmeans import weighted_kmeans
from .moves import merge_and_split, split_direction

__all__ = ["LloydResult", "lloyd", "lloyd_budget", "lloyd_entries"]

_DISTANCES, _ERRORS = "lloyd distances", "lloyd errors"
_COUNTS, _SUMS = "lloyd counts", "lloyd sums"
_DISTANCE_SHARE, _ERROR_SHARE, _COUNT_SHARE = 0.04, 0.10, 0.10
_ERROR_CAP = 1.7  # times the clip radius
_ERROR_STEPS = (1, 2, 3, 4, 5)


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
        PlanEntry(prefix + name, "gaussian", math.nextafter(rho * share, 0.0), uses=None,
                  max_rho=cap, sensitivity=text)
        for name, (share, text) in words.items())


def lloyd_budget(session, prefix=""):
    """What `lloyd` would spend if it started now: what earlier releases have left, up to its cap.

    The entries that follow in the plan, on the same path, keep their shares.
    """
    entries = session.plan.entries
    place = [entry.name for entry in entries].index(prefix + _SUMS)
    paths = set(entries[place].paths)
    later = [entry.rho for entry in entries[place + 1:]
             if not (paths and entry.paths) or paths & set(entry.paths)]
    free = sum_down([session.remaining(), *(-rho for rho in later)])
    return min(session.remaining(prefix + _SUMS), free)


@dataclass
class _State:
    """Released centres, and what is known about them."""

    centers: np.ndarray
    variance: np.ndarray  # of each coordinate of a centre, in squared steps
    count: np.ndarray
    count_sd: np.ndarray
    old_count: np.ndarray = None
    old_count_variance: np.ndarray = None
    spread: np.ndarray = None  # mean squared distance to the centre
    spread_variance: np.ndarray = None
    error: float = math.nan
    moved: bool = False  # whether clusters were ever merged and split

    def __post_init__(self):
        k = len(self.centers)
        if self.old_count is None:
            self.old_count, self.spread = np.zeros(k), np.zeros(k)
            self.old_count_variance, self.spread_variance = np.full(k, np.inf), np.full(k, np.inf)

    @classmethod
    def start(cls, centers):
        k = len(centers)
        return cls(centers.copy(), np.zeros(k), np.zeros(k), np.zeros(k))

    def forget(self, which):
        """Drop the history of clusters that a move has changed."""
        self.old_count_variance[which] = np.inf
        self.spread_variance[which] = np.inf

    def see_counts(self, counts, sd):
        """Average a release with the mean of the earlier ones, which may be out of date."""
        old = self.old_count_variance + np.square(0.1 * self.old_count)
        weight = 1 / (1 / sd**2 + 1 / old)
        self.count = weight * (counts / sd**2 + self.old_count / old)
        self.count_sd = np.sqrt(weight)
        variance = 1 / (1 / sd**2 + 1 / self.old_count_variance)
        self.old_count = variance * (counts / sd**2 + self.old_count / self.old_count_variance)
        self.old_count_variance = variance

    def see_spread(self, spread, sd):
        old = self.spread_variance + np.square(0.2 * self.spread)
        weight = 1 / (1 / np.square(sd) + 1 / old)
        self.spread = weight * (spread / np.square(sd) + self.spread / old)
        self.spread_variance = weight


@dataclass(frozen=True)
class LloydResult:
    """Released centres (in grid steps, about the origin of the rows), counts, steps, error."""

    centers: np.ndarray
    counts: np.ndarray
    n_steps: int
    error: float


@dataclass
class _Walk:
    """What the steps of one run share."""

    session: object
    prefix: str
    rows: object
    units: object
    size: object
    radius: float
    n_clusters: int
    axes: object = None
    coreset: object = None
    budget: float = field(init=False)

    def __post_init__(self):
        self.budget = self.left()
        # Noise of a step over the number of units, in radii: from next to none to hopeless. Where
        # there is none, a clip is only a bias, and long tails of real data show it.
        nu = math.sqrt(self.rows.n_features) * self.n_clusters * noise_sd(self.budget / 4)
        self.inside = float(np.interp(math.log(nu / self.size.n), np.log([0.002, 0.02, 0.15]),
                                      [0.999, 0.97, 0.40]))

    def name(self, entry):
        return self.prefix + entry

    def left(self):
        return lloyd_budget(self.session, self.prefix)

    @property
    def most_steps(self):
        return 4 if self.size.small else 8

    @property
    def error_steps(self):
        """Where the spread of clusters is asked for: two of them have no pair to merge."""
        return _ERROR_STEPS if self.n_clusters > 2 else ()

    @property
    def share(self):
        return 0.2 if self.size.small else 0.12


def lloyd(session, rows, units, centers, size, radius, *, n_clusters, axes=None, coreset=None,
          prefix="", callback=None):
    """Improve released centres by noisy Lloyd steps, with all the budget that is left.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `lloyd_entries`.
    rows : Rows
    units : Units
    centers : ndarray of shape (k0, d), in steps about the origin of the rows
        Released; k0 >= n_clusters, reduced to n_clusters after the first step.
    size : Size
    radius : float
        Released radius of the data, in steps.
    n_clusters : int
    axes : Axes, optional
        Where centres are compared when they are reduced.
    coreset : Coreset, optional
        Tells in which direction to split a cluster.
    prefix : str
    callback : callable, optional
        Called with the name of each step when it is done.

    Returns
    -------
    result : LloydResult
    """
    walk = _Walk(session, prefix, rows, units, size, radius, n_clusters, axes, coreset)
    state, last, quiet = _State.start(centers), False, 0
    for step in range(1, walk.most_steps + 1):
        last = last or step == walk.most_steps
        quiet = quiet + 1 if _step(walk, state, step, last) else 0
        if callback is not None:
            callback(f"noisy Lloyd step {step}")
        if last:
            break
        # What was split needs time to settle.
        last = step >= 2 and quiet >= (2 if state.moved else 1)
    return LloydResult(state.centers, state.count, step, state.error)


def _step(walk, state, step, last):
    """One noisy Lloyd step. Returns whether the next one may be the last."""
    # Rows are compared with integer centres inside the ball, so that distances are exact.
    state.centers = _inside(walk.rows, state.centers)
    labels, squared = nearest(walk.rows, state.centers)
    budget = walk.left() if last else walk.share * walk.budget
    radius, gain = _clip_radius(walk, squared, _DISTANCE_SHARE * budget)
    budget -= _DISTANCE_SHARE * budget
    errors = None
    if step in walk.error_steps and len(state.centers) == walk.n_clusters and not last:
        errors = _errors(walk, labels, squared, radius, _ERROR_SHARE * budget)
        budget -= _ERROR_SHARE * budget
    counts_rho = _COUNT_SHARE * budget
    counts = histogram(walk.session, walk.name(_COUNTS), labels, len(state.centers), walk.units,
                       counts_rho)
    state.see_counts(counts, noise_sd(counts_rho))
    sums_rho = walk.left() if last else budget - counts_rho
    sums = _residual_sums(walk, state.centers, labels, squared, radius, sums_rho)
    noise = radius * noise_sd(sums_rho)
    drift, went = _update(state, sums, noise, radius, gain, relax=step > 1 and not last,
                          bold=walk.size.small)
    n_moves = 0
    if errors is not None:
        doubts = 3.0 if step == 1 else 2.5 if walk.size.small else 2.0
        n_moves = _move(walk, state, *errors, went, doubts)
    if len(state.centers) > walk.n_clusters:
        _reduce(walk, state)
        return False
    return n_moves == 0 and not drift


def _inside(rows, centers):
    """Integer centres in the ball that the rows were clipped to, about the first origin."""
    points = centers + rows.origin
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    return np.rint(points * np.minimum(1.0, rows.ball / length)) - rows.origin


def _clip_radius(walk, squared, rho):
    """Radius that most rows (few, where noise rules) are within, and the mean effect of it."""
    n_bins = 12 if walk.size.small else 24
    edges = geometric_edges(1.5 * walk.radius, n_bins, 2 ** (1 / 3))
    counts = histogram(walk.session, walk.name(_DISTANCES), bins_of(squared, edges), n_bins,
                       walk.units, rho)
    sd, n = noise_sd(rho), walk.size.n
    radius = None
    if sd * math.sqrt(n_bins) <= 0.35 * n:
        # A radius too large costs more than one too small: the limit of a sum of bins is doubled.
        radius = quantile_from_histogram(counts, edges, 2 * sd, (1 - walk.inside) * n)
    radius = 0.6 * walk.radius if radius is None else radius
    return radius, _gain(counts, edges, radius, walk.rows.n_features)


def _gain(counts, edges, radius, d):
    """How far a clipped mean moves when all the rows move by one."""
    distance = (edges[1:] + edges[:-1]) / 2
    effect = np.where(distance > radius, radius / distance * (1 - 1 / d), 1.0)
    weight = np.maximum(counts, 0.0)
    return float(np.clip(weight @ effect / max(weight.sum(), 1e-300), 0.5, 1.0))


def _errors(walk, labels, squared, radius, rho):
    """Noisy sum of squared distances in each cluster, capped; and its noise."""
    cap = (_ERROR_CAP * radius) ** 2
    steps, scale = square_sums(labels, squared, cap, walk.n_clusters, walk.units)
    # A row adds to one cluster between 0 and `scale` steps, and so does a unit.
    noisy = walk.session.gaussian(walk.name(_ERRORS), steps, sensitivity=scale, rho=rho,
                                  unit=cap / scale * walk.rows.unit**2)
    return noisy / walk.rows.unit**2, cap * noise_sd(rho)


def _residual_sums(walk, centers, labels, squared, radius, rho):
    """Noisy sums of the clipped residuals, in steps."""
    limits = np.full(len(centers), radius)
    sums = clipped_sums(walk.rows, centers, labels, squared, limits, walk.units)
    # A row is in one cluster with a residual of at most `radius`, hence a unit moves the stacked
    # sums by at most that: radius 2**bits in steps of 2**-bits.
    noisy = walk.session.gaussian(walk.name(_SUMS), sums, rho=rho,
                                  sensitivity=math.nextafter(radius * 2.0**WEIGHT_BITS, math.inf),
                                  unit=2.0**-WEIGHT_BITS * walk.rows.unit)
    return noisy / walk.rows.unit


def _update(state, sums, sums_sd, radius, gain, *, relax, bold=False):
    """Kalman update of the centres. Returns whether they still drift, and how far they went.

    Movement counts as drift above 0.7 of its noise; all of it if `bold`, where the starts are poor.
    """
    d = sums.shape[1]
    n, sure = np.maximum(state.count, 2 * state.count_sd), state.count > 2 * state.count_sd
    seen = sums / (gain * n)[:, None]
    noise = np.square(sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", seen, seen)
    expected = noise + state.variance
    drift, drift_sd = _drift(length, expected, n, radius, d)
    excess = length / d - expected - (0.0 if bold else 0.7) * math.sqrt(2 / d) * expected
    pooled, own = max(0.0, n @ excess / n.sum()), min(1.0, d / 16)
    prior = state.variance + np.maximum(
        0.0, own * excess + (1 - own) * np.maximum(pooled, excess))
    weight = prior / (prior + noise) * np.where(sure, 1.0, 0.5)
    far = 1.3 if relax and drift > 1.5 * drift_sd else 1.0
    state.centers = state.centers + far * weight[:, None] * seen
    state.variance = (1 - weight) * prior
    return drift >= max(0.0005, 1.5 * drift_sd), np.square(far * weight) * length


def _drift(length, expected, n, radius, d):
    """Mean squared movement beyond the noise, in squared radii; and its standard deviation."""
    total = n.sum() * radius**2
    drift = n @ (length - d * expected) / total
    return drift, math.sqrt(2 * d * np.sum(np.square(n * expected))) / total


def _move(walk, state, errors, errors_sd, went, doubts):
    """Merge and split clusters by their spread; returns the number of moves."""
    n, sure = np.maximum(state.count, 2 * state.count_sd), state.count > 2 * state.count_sd
    state.error = float(np.maximum(errors, 0.0).sum())
    state.see_spread(np.maximum(errors / n - went, 0.0), errors_sd / n)
    excess = state.spread - np.median(state.spread)
    gain = np.where(sure, n * (excess - doubts * np.sqrt(state.spread_variance)), 0.0)
    n_moves = merge_and_split(state, np.maximum(excess, 0.0), gain,
                              _Directions(walk, state.centers), most=max(1, walk.n_clusters // 4))
    state.moved = state.moved or n_moves > 0
    return n_moves


class _Directions:
    """Directions to split clusters in, from the coreset."""

    def __init__(self, walk, centers):
        self._rng = walk.session.rng("split")
        self._coreset, self._axes, self._centers = walk.coreset, walk.axes, centers.copy()

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


def _reduce(walk, state):
    """From more centres to the number asked for: k-means of the centres, weighted by counts."""
    floor = 0.3 * float(np.mean(state.count_sd))
    weight = np.maximum(state.count, floor)
    flat = walk.axes.flatten(state.centers)
    groups = weighted_kmeans(flat, weight, walk.n_clusters, walk.session.rng("reduce"))
    square = np.einsum("ij,ij->i", groups, groups) - 2 * flat @ groups.T
    member = np.zeros((walk.n_clusters, len(flat)))
    member[np.argmin(square, axis=1), np.arange(len(flat))] = 1.0
    share = member * weight
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    empty = ~member.any(axis=1)
    state.centers = share @ state.centers
    state.centers[empty] = walk.axes.lift(groups[empty])
    state.variance = np.square(share) @ state.variance
    old = member @ state.old_count, member @ state.old_count_variance
    state.count, state.count_sd = member @ state.count, np.sqrt(member @ state.count_sd**2)
    state.old_count, state.old_count_variance = old[0], np.where(empty, np.inf, old[1])
    state.spread, state.spread_variance = (np.zeros(walk.n_clusters),
                                           np.full(walk.n_clusters, np.inf))
