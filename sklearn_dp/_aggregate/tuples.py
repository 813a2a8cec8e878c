"""The tuple stage of sample-and-aggregate: which aggregator, at what cost, by public rules.

What the stage may cost becomes the guarantee that an aggregator must have for replacing one tuple
(:attr:`TupleStage.inner`): a smaller one where a row has several copies (:func:`amplified`). Tuples
come from blocks of rows, of which a neighbor changes exactly one (or, with copies, a Poisson
number), or from clients, of which one comes or goes."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from .._costs import accounting
from .._costs.budget import PrivacyBudget
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._session import PrivacySession
from .._privacy._units import Sealed, entry_of
from .._privacy.mechanisms.pure import nested
from .._queries._query import TableRows
from .._queries.averages import Average
from .._queries.separated_balls import (
    LEAST_SEPARATION,
    Constants,
    answer_budget,
    far_centers,
    inner_constants,
    log_ratio,
)
from .._queries.tuples import MATCH_LIMIT, TuplePairs, average_of_core, extremes

AGGREGATORS = ("friendly_core", "k_averages", "noisy_centers")
COPY_RATE = 0.5
"""Expected copies of a unit where blocks are sampled with replacement."""

_BETA = 0.05  # chance of no answer on tuples that are good enough; in no guarantee
_MOST_CORE = 1000  # tuples by default: beyond it the core costs more than blocks can give back
_MOST_TUPLES = 2**22
_RESERVE = 1.05  # times the least number of tuples
_AVERAGES_SEPARATION = 7.0  # a little more than the least that far balls allow
_RESOLUTION = 1e-4  # of the radius: ends of the boxes of k averages
_GOAL = 0.15  # noise of a center over its distance to the next one
_MOST_EPSILON = 50.0  # more would change nothing but the size of the exponents
_ENTRY = "tuples"


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return the cost of an (epsilon, delta)-DP aggregation if a unit has Poisson(`rate`) copies.

    From epsilon and delta for replacing one tuple to those for adding or removing a unit; rounded
    up.

    N copies change at most N tuples: by group privacy P[M(T)] and P[M(T')] are
    (N epsilon, delta (e^{N epsilon} - 1) / (e^epsilon - 1))-close, given N, which is independent of
    all else. Averaging over N, with E e^{N epsilon} = exp(rate (e^epsilon - 1)) =: e^a, bounds the
    side with the unit by (a, delta (e^a - 1) / (e^epsilon - 1)). The other way round, weights
    p_N e^{-N epsilon} / E e^{-N epsilon} give a' = rate (1 - e^{-epsilon}) <= a, and the same
    delta with a'."""
    # 1e-9: for the twelve or so roundings of this formula and of its inverse.
    cost = rate * math.expm1(epsilon) * (1 + 1e-9)
    return cost, delta * math.expm1(cost) / math.expm1(epsilon) * (1 + 1e-9)


def before_sampling(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Inverse of :func:`amplified`, rounded down."""
    inner = math.log1p(epsilon / rate) * (1 - 1e-8)
    return inner, delta * math.expm1(inner) / math.expm1(epsilon) * (1 - 1e-8)


def least_tuples(
    epsilon: float, delta: float, beta: float = 0.05, *, most: int = 2**24
) -> int | None:
    """Smallest number of tuples with which an (epsilon, delta)-DP aggregation can run, or None.

    Epsilon and delta are those of the test and the answer together, for replacing a tuple; `beta`
    is the chance of no answer on good tuples. Numbers beyond `most` are not tried."""
    high = 4
    while high < most and inner_constants(high, epsilon, delta, beta) is None:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = inner_constants(middle, epsilon, delta, beta) is not None
        low, high = (low, middle) if enough else (middle, high)
    return high if inner_constants(high, epsilon, delta, beta) is not None else None


def relative_noise(separation: float, k: int, epsilon: float, delta: float) -> float:
    """Typical noise of a center, over its distance to the next one: public.

    The sigma of the Gaussian mechanism in units of the scale, times the scale in units of M, moved
    up as far as noisy centers do. Epsilon and delta are those of the whole aggregation."""
    _, epsilon, delta = answer_budget(epsilon, delta)
    sigma = accounting.gaussian_sigma(epsilon / 2, delta / 2, math.sqrt(k))
    width = 2 * k / epsilon * log_ratio(separation)
    factor = (2 + 4 / (separation - 2)) / separation
    return sigma * factor * math.exp(min(width * math.log(k / delta), 700.0))


def default_separation(k: int, epsilon: float, delta: float) -> float:
    """The separation at which the noise is about a seventh of the distance between centers.

    >>> [round(default_separation(k, 1.0, 1e-6)) for k in (2, 3, 8)]
    [658, 891, 1907]
    """
    low, high = math.log(LEAST_SEPARATION + 1), math.log(1e9)
    return math.exp(
        brentq(
            lambda x: math.log(relative_noise(math.exp(x), k, epsilon, delta) / _GOAL), low, high
        )
    )


@dataclass(frozen=True)
class TupleStage:
    """Public facts about an aggregation of k-tuples."""

    rho: float  # what it may cost in rho ...
    delta: float  # ... and in delta
    n_clusters: int
    n_features: int
    aggregator: str = "auto"  # "auto", "friendly_core", "k_averages" or "noisy_centers"
    n_tuples: int | str = "auto"  # a number, or "auto"
    sampling: str = "disjoint"  # "disjoint" or "with_replacement"
    separation: float | None = None  # None: by a public rule
    gamma: float = 0.2
    # "replace" or "add or remove": what happens to the database when a unit comes or goes; the
    # latter for tuples that are units themselves, with friendly cores only
    relation: str = "replace"
    # what may be spent on a single (epsilon, delta)-DP step, if it is the whole plan
    epsilon: float | None = None

    # -- budget ---------------------------------------------------------------------------------

    @property
    def whole(self) -> bool:
        """True if the plan shows one (epsilon, delta)-DP step, and not each release."""
        return self.kind != "friendly_core" or self.sampling != "disjoint"

    @cached_property
    def cost(self) -> tuple[float, float]:
        """The largest epsilon of the step whose cost in zCDP is at most rho, and delta."""
        if self.epsilon is not None:
            return min(self.epsilon * (1 - 1e-12), _MOST_EPSILON), self.delta
        return min(accounting.pure_dp_epsilon(self.rho), _MOST_EPSILON), self.delta

    @cached_property
    def inner(self) -> tuple[float, float]:
        """epsilon and delta that the aggregator has for replacing one tuple."""
        if self.sampling == "disjoint":
            return self.cost
        return before_sampling(*self.cost, COPY_RATE)

    @cached_property
    def core_budget(self) -> tuple[float, float]:
        """rho and delta of a friendly core for replacing one tuple; copies are accounted in
        (epsilon, delta)-DP: half of delta converts rho, half pays for failures."""
        if self.sampling == "disjoint":
            return self.rho, self.delta
        epsilon, delta = self.inner
        half = math.nextafter(delta / 2, 0.0)
        return accounting.zcdp_rho(epsilon, half) * (1 - 1e-9), half

    # -- public rules ---------------------------------------------------------------------------

    @cached_property
    def kind(self) -> str:
        """The aggregator. "auto": a friendly core needs the fewest tuples and the smallest
        separation by far; beyond a few thousand tuples, averages or else noisy centers."""
        if self.aggregator != "auto":
            return self.aggregator
        t = self.n_tuples
        if isinstance(t, str) or t <= TUPLE_LIMIT or self.n_clusters < 2:
            return "friendly_core"
        if self._enough_for_averages(t):
            return "k_averages"
        return "noisy_centers" if self._constants(t) is not None else "friendly_core"

    @cached_property
    def size(self) -> int:
        """The number of tuples; 0 where this budget buys no answer. "auto": the least number that
        will do, since more tuples have fewer rows each."""
        if not isinstance(self.n_tuples, str):
            return int(self.n_tuples)
        if self.kind == "friendly_core":
            return tuples_needed(*self.core_budget, most=_MOST_CORE) or 0
        least = least_tuples(*self.inner, _BETA, most=_MOST_TUPLES)
        if least is None:
            return 0
        least = math.ceil(_RESERVE * least)
        if self.kind == "noisy_centers":
            return least
        doubles = (least << i for i in range(22) if least << i <= _MOST_TUPLES)
        return next((t for t in doubles if self._enough_for_averages(t)), 0)

    def _constants(self, t: int) -> Constants | None:
        """Return the constants of the test for far balls on t tuples, or None."""
        return inner_constants(t, *self.inner, _BETA)

    def _enough_for_averages(self, t: int) -> bool:
        """True if the test has constants for t tuples, and the boxes of the averages fit."""
        constants = self._constants(t)
        if constants is None:
            return False
        # The smallest and the largest of t values must be disjoint. Half of epsilon is for 2 k d
        # ends of boxes.
        changes, width = 2 * (math.floor(constants.most) + 1), self.n_clusters * self.n_features
        epsilon, beta = answer_budget(*self.inner)[1] / (4 * width), _BETA / 2 / width
        ends = extremes(_RESOLUTION, 1.0, changes=changes, epsilon=epsilon, beta=beta)
        return 2 * ends <= t

    @property
    def far(self) -> float:
        """The separation of the balls, in radii; the noise of noisy centers shrinks with it."""
        if self.separation is not None:
            return self.separation
        if self.kind == "k_averages":
            return _AVERAGES_SEPARATION
        return default_separation(self.n_clusters, *self.inner)

    def check(self) -> None:
        """Refuse what can never work, by a `ValueError`, from public values alone."""
        if self.kind == "friendly_core":
            return
        if self.n_clusters < 2:
            raise ValueError(f"n_clusters must be at least 2 for aggregator={self.kind!r}.")
        if self.size and self._constants(self.size) is None:
            least = least_tuples(*self.inner, _BETA, most=_MOST_TUPLES)
            raise ValueError(
                f"n_tuples must be at least {least} for aggregator={self.kind!r} at this budget."
            )

    # -- plan and run ---------------------------------------------------------------------------

    def entries(self) -> tuple[PlanEntry, ...]:
        """Plan entries: each release of a friendly core; or, for a `whole` step, one, since its
        parts have no zCDP of their own: far balls hold as a whole only (theorem W), and copies for
        all of a unit together."""
        if not self.whole:
            return tuple_entries(self.rho, self.delta, relation=self.relation)
        epsilon, delta = self.cost
        where = "one tuple" if self.sampling == "disjoint" else "the copies of a unit"
        words = f"{where}: ({epsilon:.3g}, {delta:.2g})-DP as a whole"
        rho, delta = accounting.approx_dp_zcdp(epsilon, delta)
        return (PlanEntry(_ENTRY, Mechanism.APPROXIMATE, rho, delta, sensitivity=words),)

    def run(
        self, session: PrivacySession, rows: TableRows, center: np.ndarray, radius: float
    ) -> np.ndarray | None:
        """Aggregate tuples, the rows of a handle, to (k, d), less a center; or None. Their points
        are within `radius` of the center, both public or released. A tuple with a NaN counts as one
        that agrees with nobody."""
        if self.kind != "friendly_core":
            return far_centers(
                session,
                _ENTRY,
                rows,
                center,
                radius,
                cost=self.cost,
                inner=self.inner,
                separation=self.far,
                averages=self.kind == "k_averages",
                resolution=_RESOLUTION,
                beta=_BETA,
            )
        if self.whole:
            # A core whose cost is that of one step: it spends from a session of its own.
            entries = tuple_entries(*self.core_budget)
            rho, delta = self.core_budget
            plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries)
            epsilon, delta = self.cost
            session = nested(session, _ENTRY, plan, epsilon=epsilon, delta=delta)
        n_tuples = self.size if self.relation == "replace" else None
        average = tuple_average(session, rows, center, radius, n_tuples, gamma=self.gamma)
        return None if average is None else average.mean.reshape(-1, self.n_features)


# -- a friendly core of tuples ---------------------------------------------------------------------
# The tuples are centers that non-private k-means finds on random blocks of the rows. Their number
# is public, and adding or removing a unit replaces one tuple. Or they are units themselves, one
# tuple of each client: then their number is private, and one is added or removed.
#
# 1. Compare all pairs (:class:`sklearn_dp._queries.tuples.TuplePairs`).
# 2. Release a radius: the smallest of a public grid at which at most a quarter of the pairs are no
#    friends, by a noisy binary search.
# 3. Keep the tuples that are within this radius of more than half of the others, align them, and
#    release their average (:func:`sklearn_dp._queries.tuples.average_of_core`). The shares are
#    choices, not proofs: any that add up to one keep the guarantee.


RATIO = 1.5
"""Of neighboring radii."""

_LEAST_RADIUS = 1e-4  # of the public radius
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9
TUPLE_LIMIT = 5000
"""Number of tuples up to which comparing all pairs is a matter of seconds."""


# Of the rho of the stage for the search for a radius: the counts that it compares are of order t^2
# with a noise of order t, so little is enough.
_RADIUS_SHARE = 0.06
# For the filter. It gets nearly all, because it decides how many tuples are needed
# (:func:`tuples_needed`): scores of order t have a noise of order sqrt(t / rho).
CORE_SHARE = 0.82
# For the number of tuples of the core, and for their average. Its noise is of order radius / t, and
# Lloyd steps on all rows refine what it finds.
_SIZE_SHARE, _AVERAGE_SHARE = 0.03, 0.09
CORE_DELTA = 0.9  # of delta, for the filter; the rest is for the size of the core


def radii(radius: float) -> np.ndarray:
    """The public grid of friendship radii: 1e-4 to 2 times the public radius, by factors of 1.5."""
    steps = math.ceil(math.log(2.0 / _LEAST_RADIUS, RATIO))
    return radius * _LEAST_RADIUS * RATIO ** np.arange(steps + 1)


def search_steps(n_radii: int) -> int:
    """Most tests that a binary search over the radii makes; the plan allows for as many."""
    return max(1, (n_radii - 1).bit_length())


def tuple_entries(rho: float, delta: float, *, relation: str = "replace") -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`tuple_average`; with "add or remove" a tenth for their number."""
    core, number = CORE_SHARE * rho, []
    if relation == "add or remove":
        number = [PlanEntry.gaussian("tuples/number", _NUMBER_SHARE * core * _SAFE, "one tuple")]
        core *= 1 - _NUMBER_SHARE
    steps, pairs = search_steps(len(radii(1.0))), "one tuple: 2 (t - 1) pairs"
    words = "one friend more or less", "one tuple", "2 R / released size"
    filtering, averaging = Mechanism.FRIENDLY_CORE, Mechanism.FRIENDLY_AVERAGE
    size, average = _SIZE_SHARE * rho, _AVERAGE_SHARE * rho
    failing = (1 - CORE_DELTA) * delta * _SAFE
    return (
        *number,
        PlanEntry.gaussian("tuples/radius", _RADIUS_SHARE * rho, pairs, uses=steps),
        PlanEntry("tuples/core", filtering, core, CORE_DELTA * delta, sensitivity=words[0]),
        PlanEntry("tuples/size", averaging, size, failing, sensitivity=words[1]),
        PlanEntry("tuples/average", averaging, average, 0.0, sensitivity=words[2]),
    )


def tuples_needed(
    rho: float, delta: float, *, friends: float = 0.95, kept: float = 0.9, most: int = 2**20
) -> int | None:
    """Smallest even number of tuples, up to `most`, of which the core keeps most, or None.

    A typical tuple matches the share `friends` of the tuples, and must survive with probability
    `kept`. In half counts, one with f t friends among t has a score 2 f t - t; noise has a standard
    deviation of 2 sigma there, sigma = sqrt((t - 1) / (2 rho)), and the threshold is the quantile
    of delta / t (see :func:`sklearn_dp._queries.averages.core_fixed_size`; here in whole counts).
    """
    core_rho, core_delta = CORE_SHARE * rho, CORE_DELTA * delta

    def enough(t: int) -> bool:
        sigma = math.sqrt((t - 1) / (2 * core_rho))
        threshold = -sigma * float(ndtri(core_delta / t))
        return ndtr((friends * t - t / 2 - threshold) / sigma) >= kept

    high = 4
    while high <= most and not enough(high):
        high *= 2
    low = high // 2
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if high <= most else None


def _find_radius(
    session: PrivacySession, entry: str, scores: Sealed, grid: np.ndarray
) -> float | None:
    """Smallest radius at which most pairs are friends, or None: a noisy binary search, one step of
    the public grid above its result, so that noise in the last test does not cut a core in two."""
    low, high = 0, len(grid) - 1
    rho = session.remaining(entry) / search_steps(len(grid)) * (1 - 1e-12)
    while low < high:
        middle = (low + high) // 2
        noisy = session.release(entry, entry_of(scores, middle), rho=rho)
        low, high = (low, middle) if noisy <= 0 else (middle + 1, high)
    return None if high == len(grid) - 1 else float(grid[high]) * RATIO


def tuple_average(
    session: PrivacySession,
    rows: TableRows,
    center: np.ndarray,
    radius: float,
    n_tuples: int | None,
    *,
    gamma: float = MATCH_LIMIT,
) -> Average | None:
    """Average (k d,) of the tuples that match most others, with its noise, or None.

    The rows of the handle are tuples of points less a `center` (d,), within `radius`. `n_tuples`:
    the public number of tuples, of which one is replaced; None: one comes or goes."""
    grid = radii(radius)
    pairs = TuplePairs(center, gamma, grid, n_tuples)
    answer = rows.ask(pairs)
    reach = _find_radius(session, "tuples/radius", answer.scores, grid)
    return None if reach is None else average_of_core(session, pairs, answer, reach)
