"""Are the tuples partitioned by far balls? A private test, and what may be done after it (Cohen et
al., ICML 2021, sections 4.1 and 4.2, with corrected constants and proofs).

k balls are *far* at separation D if any two centers are at least D radii apart, and they partition
a tuple if each of them holds exactly one of its points.

1. Draw m of the t tuples. Each is a *proposal*: the balls about its points, with radii of 1/D of
   the distance to the next point.
2. Count the tuples that the balls of each proposal do not partition, add noise, and let those
   proposals pass whose number is small (:func:`close_tuples`).
3. Succeed if the noisy number of proposals that passed is near m.
4. After a success, answer from the balls of the first one that passed: by :func:`noisy_centers` or
   :func:`.tuples.k_averages`.

Released: the answer, and whether there is one. The balls stay unreleased, and neighbors may have
quite different ones. By theorem W (:func:`release_if_private`), whatever is private for *every* two
sets of balls that nearly partition neighboring databases may run on them.

A neighbor replaces one tuple: it changes each of the m counts by one at most, and is among the
proposals with probability m / t. All is charged as one (epsilon, delta)-DP step, because the
guarantee of the parts is conditional. Points are integers on a public grid, so that distances are
exact.

*Noisy centers*: one tuple with noise, after the test; section 4.4 of the paper with a scale that is
private itself. How far each of its points is from the next one is released, through its logarithm,
and noise is in proportion to that. A neighbor may have found the balls of another tuple. Both
partition a common tuple, so their centers are near each other in proportion to these distances:
that is the sensitivity.

Neither has been seen to win over friendly cores (``doc/benchmarks/tuples.md``, section "rivals"),
which find an answer for clusters that are a few times farther apart than tuples differ, and far
balls for hundreds of times: the logarithm of a distance has noise of about 16 k log(k / delta) /
(epsilon D), which is a factor of the noise of the center.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._grid import Grid
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import CompositeMechanism, open_step
from .._privacy.mechanisms.stability import random_order
from ._query import TableRows
from .blocks import exact_tuples
from .tuples import MOST_CELLS, k_averages

LEAST_SEPARATION = 6.0
"""Balls must be farther than this, or points could be nearest to another center of a neighbor."""

_SAFE = 1 - 1e-9  # of squared radii: rounding must not make a ball larger
_FINE = 2**20  # steps of a count, and of a logarithm: noise on it is as good as continuous
_PAIR_ENTRIES = 2**22


# -- the predicate ----------------------------------------------------------------------------


def unpartitioned(tuples: np.ndarray, proposal: np.ndarray, separation: float) -> int:
    """Number of tuples (t, k, d), integer-valued, that the balls about the points (k, d) of
    `proposal` do not partition; one with a NaN is never partitioned. t if two points of the
    proposal coincide: balls of radius 0 about one center would be far from each other by the
    letter."""
    radii = gaps(proposal) * (_SAFE / separation**2)
    if not radii.min() > 0:
        return len(tuples)
    t, k, d = tuples.shape
    good, step = 0, max(1, _PAIR_ENTRIES // k**2)
    for start in range(0, t, step):
        part = tuples[start : start + step]
        square = cdist(part.reshape(-1, d), proposal, "sqeuclidean").reshape(len(part), k, k)
        # Far balls are disjoint, so one point in each of the k balls uses each point once.
        good += int(np.count_nonzero(((square <= radii).sum(axis=1) == 1).all(axis=1)))
    return t - good


def gaps(points: np.ndarray) -> np.ndarray:
    """Squared distance (k,) of each point (k, d) to the next one.

    NaN where a point is not finite, inf for a single point: no proposals either way."""
    square = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(square, np.inf)
    return square.min(axis=1)


# -- constants --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """Public constants of the test."""

    m: int  # proposals that are tried
    eps1: float  # privacy of the test for the proposals ...
    eps2: float  # ... and for the tuples that they are tried on
    # number of unpartitioned tuples that a proposal passes with nearly surely only below it
    most: float
    passing: float  # noisy number up to which a proposal passes
    quorum: float  # noisy number of passing proposals from which on the test succeeds


def constants_of(
    t: int, epsilon: float, delta: float, beta: float, *, discrete: bool = True
) -> Constants | None:
    """Constants of :func:`test_partition` for t tuples, or None where they are too few.

    t is public, and epsilon that of the status of the test. `delta` is the probability with which
    it may succeed without balls that nearly partition, `beta` that with which it may fail on tuples
    that are well partitioned. `discrete`: leave room for the rounding of the noise.

    A proposal is a uniform m-subset of the t tuples, without replacement: eps1-DP for it is
    log(1 + (m / t) (exp(eps1) - 1)) = epsilon / 2 for the database, eps2 is the other half.

    The counts of the m proposals move together by m in the l1 norm, so their Laplace noise has the
    scale 2 m / epsilon. It exceeds `passing` for some of m proposals that leave out no tuple with
    probability beta at most. Some proposal that leaves out more than `most` tuples passes with
    probability delta / 2 at most. The quorum is reached although none passed with probability
    delta / 2 at most, if m eps1 >= log(1 / beta) + log(2 / delta): the loop takes the smallest m
    for which that holds."""
    spare = 2.0 if discrete else 1.0
    wanted = -math.log(beta) - math.log(delta / spare)
    for m in range(1, t):
        eps1 = math.log1p(t / m * math.expm1(epsilon / 2))
        if m * eps1 >= wanted:
            scale = 2 * m / epsilon
            passing = scale * math.log(m / beta)
            return Constants(
                m,
                eps1,
                epsilon / 2,
                passing + scale * math.log(spare * m / delta),
                passing,
                m + math.log(beta) / eps1,
            )
    return None


def answer_budget(epsilon: float, delta: float) -> tuple[float, float, float]:
    """The failure probability d of the test and the budget of the answer, of an (epsilon, delta)-DP
    whole, rounded down: half of epsilon and delta each; (1 + exp(epsilon)) d is half of delta."""
    return delta / (2 * (1 + math.exp(epsilon))) * _SAFE, epsilon / 2 * _SAFE, delta / 2 * _SAFE


def inner_constants(t: int, epsilon: float, delta: float, beta: float) -> Constants | None:
    """The constants inside theorem W: half of epsilon, and half of beta for the test. At least 2 l
    + 2 tuples, so that two sets of balls which leave out l of them each, on databases that differ
    in one tuple, have a tuple in common that both partition."""
    constants = constants_of(t, epsilon / 2, answer_budget(epsilon, delta)[0], beta / 2)
    return constants if constants is not None and t >= 2 * constants.most + 2 else None


# -- the test ---------------------------------------------------------------------------------


def close_tuples(
    step: CompositeMechanism,
    proposals: np.ndarray,
    tuples: np.ndarray,
    separation: float,
    constants: Constants,
    own: bool = False,
) -> int | None:
    """PrivateTestCloseTuples: index of the first proposal that passes; None where the test fails.

    Only whether it is None may be released. That is eps1-DP for the proposals (m, k, d) and eps2-DP
    for the tuples (t, k, d). All proposals are tried, always. `own`, for audits: the proposals are
    some of the tuples, and a replaced one moves its own count by more than one, which eps1 pays
    for."""
    bad = np.array([unpartitioned(tuples, each, separation) for each in proposals])
    # Replacing a tuple changes, for each proposal but itself, whether it is partitioned: the
    # l1 distance is at most m. (What it does as a proposal costs eps1, below.)
    noisy = step.laplace(
        bad * _FINE, sensitivity=constants.m * _FINE, epsilon=constants.eps2, own=own
    )
    passed = np.flatnonzero(noisy <= constants.passing * _FINE)
    # A proposal decides about itself only.
    total = step.laplace(len(passed) * _FINE, sensitivity=_FINE, epsilon=constants.eps1)
    success = total >= constants.quorum * _FINE and len(passed)
    # The premise of the answer. It holds but for the probability that theorem W charges; audits
    # leave out outcomes where it does not.
    step.assume(not success or bad[passed[0]] <= constants.most)
    return int(passed[0]) if success else None


def test_partition(
    step: CompositeMechanism, tuples: np.ndarray, separation: float, constants: Constants
) -> np.ndarray | None:
    """PrivateTestPartition: the points of a tuple whose balls nearly partition all, or None.

    epsilon-DP, as far as None is concerned. Think of the proposals as drawn from a copy of the
    database: each of the two copies costs half. The centers (k, d) are no release."""
    chosen = step.sample(len(tuples), constants.m)
    index = close_tuples(step, tuples[chosen], tuples, separation, constants, own=True)
    if index is None:
        return None
    # A degenerate proposal passes within delta only; None is as good as any other answer then.
    centers = tuples[chosen[index]]
    return centers if gaps(centers).min() > 0 else None


# Its name is the paper's, but it is no test of ours.
test_partition.__test__ = False  # type: ignore[attr-defined]


def release_if_private(
    step: CompositeMechanism,
    tuples: np.ndarray,
    *,
    separation: float,
    epsilon: float,
    delta: float,
    beta: float,
    answer: Callable[[np.ndarray, float, float, float], np.ndarray],
) -> np.ndarray | None:
    """Theorem W: test, then answer; (epsilon, delta)-DP for replacing one of the tuples.

    The step is paid for (epsilon, delta), those of the whole. The tuples (t, k, d) are
    integer-valued; k >= 2, and t is public; so is the separation, above 6. `beta` is the chance of
    None on tuples partitioned by balls of separation 2 `separation` + 2.

    ``answer(centers, most, epsilon, delta)``: for every two sets of far balls, each of which
    partitions all but `most` of the tuples of its database, (epsilon, delta)-close.

    Let S be success, E success with balls that leave out at most `most` tuples. Then
    P[S and not E] <= d, unconditionally, for any proposals: if none passes, S needs noise of
    at least the quorum (d / 2); if the first that passes leaves out more, one of m has noise of at
    most passing - most (m d / (2 m)). Failure is the constant None, and its probability is
    (epsilon / 2)-close. For the rest, P[result in Y, E] <= P[E] (e^{epsilon/2} p' + delta / 2), p'
    the probability of Y given E', and P[E] <= e^{epsilon/2} (P[E'] + d). In all
    (epsilon, delta / 2 + (1 + e^epsilon) d), and that is delta."""
    if not separation > LEAST_SEPARATION:
        raise ValueError("separation must be greater than 6.")
    if tuples.shape[1] < 2:
        raise ValueError("n_clusters must be at least 2 for this aggregator.")
    constants = inner_constants(len(tuples), epsilon, delta, beta)
    if constants is None:
        raise ValueError("n_tuples is too small for this budget.")
    centers = test_partition(step, tuples, separation, constants)
    if centers is None:
        return None
    _, answer_epsilon, answer_delta = answer_budget(epsilon, delta)
    return answer(centers, constants.most, answer_epsilon, answer_delta)


_FINE_CENTERS = 2**20  # steps of a logarithm: noise on it is as good as continuous
_NOISE_BITS, _LEAST_STEP = 20, 2.0**-36


def noisy_centers(
    session: PrivacySession,
    step: CompositeMechanism,
    centers: np.ndarray,
    separation: float,
    ball: float,
    epsilon: float,
    delta: float,
) -> np.ndarray:
    """One tuple (k, d), in a random order, with noise of a released scale.

    The centers (k, d), of any balls of the test, are distinct integers. The session is for their
    random order. `ball` is the radius of the public ball that the points lie in, in steps. Half of
    epsilon and of delta is for the scales, half for the centers.

    Two sets of balls that partition a common tuple can be matched so that
    |c_i - c'_i| <= (M_i + M'_i) / D, M the distance to the next center; hence
    |ln M_i - ln M'_i| <= ln((D + 2) / (D - 2)). The scale is released through its logarithm (the
    published algorithm adds noise to M itself, of a size that depends on M, and is not private)
    and moved up so that it exceeds |c_i - c'_i| but for delta / (4 k); in units of it, the
    stacked centers are within sqrt(k)."""
    centers = centers[random_order(session, centers)]
    k, d = centers.shape
    reach = np.sqrt(gaps(centers))
    scale = _noisy_scale(step, reach, separation, epsilon / 2, delta / 2)
    # No two points of the ball are farther apart than 2 ball. (Below it only within delta.)
    scale = np.clip(scale, 2 / separation, 2 * ball)
    unit = np.maximum(2.0 ** (np.floor(np.log2(scale)) - _NOISE_BITS), _LEAST_STEP)[:, None]
    steps = bounded_integers(np.rint(centers / unit), np.int64)
    # Rounding moves each of d coordinates of a difference by at most one step.
    within = (scale[:, None] / unit + math.sqrt(d)) * math.sqrt(k) * (1 + 1e-9)
    noisy = step.gaussian(steps, sensitivity=within, epsilon=epsilon / 2, delta=delta / 2)
    return noisy * unit


def _noisy_scale(
    step: CompositeMechanism, reach: np.ndarray, separation: float, epsilon: float, delta: float
) -> np.ndarray:
    """Released upper bounds (k,) of |c_i - c'_i|, each but for delta / k; epsilon-DP in all.

    `reach` (k,) is M, the distance of each center to the next one.
    From |c - c'| <= (M + M') / D and M' <= M (D + 2) / (D - 2):
    |c - c'| <= M (1 + (D + 2) / (D - 2)) / D = M (2 + 4 / (D - 2)) / D, which is `factor` M."""
    k = len(reach)
    steps = np.floor(np.log(reach) * _FINE_CENTERS)
    # ln M_i moves by at most ln((D + 2) / (D - 2)); two more steps for rounding. k of them.
    within = math.ceil(log_ratio(separation) * _FINE_CENTERS) + 2
    noisy = step.laplace(exact_integers(steps), sensitivity=k * within, epsilon=epsilon)
    # P[noise <= -offset] <= exp(-(offset - 1/2) / b) / 2, with b = k within / epsilon.
    offset = k * within / epsilon * math.log(k / (2 * delta)) + 1
    factor = (2 + 4 / (separation - 2)) / separation
    scale = factor * np.exp((noisy + offset + 1) / _FINE_CENTERS) * (1 + 1e-9)
    step.assume(bool(np.all(scale >= factor * reach)))
    return scale


def log_ratio(separation: float) -> float:
    """ln((D + 2) / (D - 2)): how far ln M may move between neighbors."""
    return math.log1p(4 / (separation - 2))


def far_centers(
    session: PrivacySession,
    entry: str,
    rows: TableRows,
    center: np.ndarray,
    radius: float,
    *,
    cost: tuple[float, float],
    inner: tuple[float, float],
    separation: float,
    averages: bool,
    resolution: float,
    beta: float,
) -> np.ndarray | None:
    """k points (k, d) less a center, of the tuples of a handle; or None.

    The points of all tuples are within the released `radius` of the center. The step costs epsilon
    and delta; the test and its answer have those of `inner` for replacing a tuple, which the caller
    proves to be the same. `averages`: :func:`.tuples.k_averages`, with boxes of that
    `resolution` in radii, and else noisy centers. Each point is put on the integer grid on its
    own."""
    tuples = exact_tuples(rows, len(center)) - center
    grid = Grid.for_radius(radius)
    ball, steps = math.ceil(radius / grid.unit), np.trunc(tuples / grid.unit)
    step = open_step(session, entry, epsilon=cost[0], delta=cost[1])

    def answer(centers: np.ndarray, most: float, epsilon: float, delta: float) -> np.ndarray:
        if not averages:
            return noisy_centers(session, step, centers, separation, ball + 1, epsilon, delta)
        cell = math.ceil(max(resolution * ball, 2 * ball / MOST_CELLS, 1.0))
        return k_averages(
            session,
            step,
            steps,
            centers,
            ball,
            most,
            cell,
            epsilon=epsilon,
            delta=delta,
            beta=beta / 2,
        )

    epsilon, delta = inner
    released = release_if_private(
        step, steps, separation=separation, epsilon=epsilon, delta=delta, beta=beta, answer=answer
    )
    return None if released is None else released * grid.unit
