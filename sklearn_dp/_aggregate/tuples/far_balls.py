"""Are the tuples partitioned by far balls? A private test, and what may be done after it [1]_.

k balls are *far* at separation D if any two centers are at least D radii apart, and they partition
a tuple if each of them holds exactly one of its points. The balls about the points of one tuple
are proposed, with radii of 1/D of the distance to the next point; the noisy number of tuples that
they do not partition is tested. The balls stay private. By theorem W (:func:`release_if_private`),
whatever is private for *every* two sets of balls that nearly partition neighbouring databases may
then run on them.

Points are integers on a public grid, so that distances are exact.

References
----------
.. [1] E. Cohen, H. Kaplan, Y. Mansour, U. Stemmer and E. Tsfadia, "Differentially-private
   clustering of easy instances", ICML 2021. PrivateTestCloseTuples, PrivateTestPartition
   (sections 4.1, 4.2) and PrivatekNoisyCenters (4.4), with corrected constants and proofs.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from ..._privacy import _accounting as accounting

__all__ = [
    "LEAST_SEPARATION", "Constants", "answer_budget", "close_tuples", "constants_of",
    "default_separation", "least_tuples", "noisy_centers", "relative_noise", "release_if_private",
    "test_partition", "unpartitioned",
]  # fmt: skip

LEAST_SEPARATION = 6.0
"""Balls must be farther than this, or points could be nearest to another center of a neighbour."""

_SAFE = 1 - 1e-9  # of squared radii: rounding must not make a ball larger
_FINE = 2**20  # steps of a count, and of a logarithm: noise on it is as good as continuous
_PAIR_ENTRIES = 2**22
_NOISE_BITS, _LEAST_STEP = 20, 2.0**-36
_GOAL = 0.15  # noise of a center over its distance to the next one


# -- the predicate ----------------------------------------------------------------------------


def unpartitioned(tuples, proposal, separation):
    """Number of tuples that the balls about the points of `proposal` do not partition.

    Parameters
    ----------
    tuples : ndarray of shape (t, k, d), integer-valued; a tuple with a NaN is never partitioned
    proposal : ndarray of shape (k, d)
    separation : float

    Returns
    -------
    number : int
        t if two points of the proposal coincide: balls of radius 0 about the same center would
        be far from each other by the letter, and yet tell nothing apart.
    """
    radii = _gaps(proposal) * (_SAFE / separation**2)
    if not radii.min() > 0:
        return len(tuples)
    t, k, d = tuples.shape
    good, step = 0, max(1, _PAIR_ENTRIES // k**2)
    for start in range(0, t, step):
        part = tuples[start : start + step]
        square = cdist(part.reshape(-1, d), proposal, "sqeuclidean").reshape(len(part), k, k)
        # Far balls are disjoint, so one point in each of the k balls uses each point once.
        good += np.count_nonzero(((square <= radii).sum(axis=1) == 1).all(axis=1))
    return t - good


def _gaps(points):
    """Squared distance of each point to the next one; NaN or inf for what is no proposal."""
    square = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(square, np.inf)
    return square.min(axis=1)


# -- constants --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """Public constants of the test.

    Attributes
    ----------
    m : int
        Proposals that are tried.
    eps1, eps2 : float
        Privacy of the test for the proposals, and for the tuples that they are tried on.
    most : float
        Number of unpartitioned tuples that a proposal passes with nearly surely only below it.
    passing : float
        Noisy number up to which a proposal passes.
    quorum : float
        Noisy number of passing proposals from which on the test succeeds.
    """

    m: int
    eps1: float
    eps2: float
    most: float
    passing: float
    quorum: float


def constants_of(t, epsilon, delta, beta, *, discrete=True):
    """Constants of :func:`test_partition` for t tuples, or None where they are too few.

    Parameters
    ----------
    t : int
        Public number of tuples.
    epsilon : float
        Of the status of the test.
    delta : float
        Probability with which it may succeed without balls that nearly partition.
    beta : float
        Probability with which it may fail on tuples that are well partitioned.
    discrete : bool, default=True
        Leave room for the rounding of the noise.

    Notes
    -----
    A proposal is a uniform m-subset of the t tuples, without replacement: eps1-DP for it is
    log(1 + (m / t) (exp(eps1) - 1)) = epsilon / 2 for the database, eps2 is the other half.
    """
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


def answer_budget(epsilon, delta):
    """delta of the test, and epsilon and delta of the answer, of an (epsilon, delta)-DP whole."""
    return delta / (2 * (1 + math.exp(epsilon))) * _SAFE, epsilon / 2 * _SAFE, delta / 2 * _SAFE


def _test_constants(t, epsilon, delta, beta):
    """The constants inside theorem W: half of epsilon, and half of beta for the test.

    At least 2 l + 2 tuples, so that two balls which leave out l of them, on databases that differ
    in one tuple, have a tuple in common that both partition.
    """
    found = constants_of(t, epsilon / 2, answer_budget(epsilon, delta)[0], beta / 2)
    return found if found is not None and t >= 2 * found.most + 2 else None


def least_tuples(epsilon, delta, beta=0.05, *, most=2**24):
    """Smallest number of tuples with which an (epsilon, delta)-DP aggregation can run, or None."""
    high = 4
    while high < most and _test_constants(high, epsilon, delta, beta) is None:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = _test_constants(middle, epsilon, delta, beta) is not None
        low, high = (low, middle) if enough else (middle, high)
    return high if _test_constants(high, epsilon, delta, beta) is not None else None


# -- the test ---------------------------------------------------------------------------------


def close_tuples(step, proposals, tuples, separation, constants, own=False):
    """PrivateTestCloseTuples: index of the first passing proposal; None where the test fails.

    Parameters
    ----------
    step : Step
    proposals : ndarray of shape (m, k, d)
    tuples : ndarray of shape (t, k, d)
    separation : float
    constants : Constants
    own : bool, default=False
        The proposals are some of the tuples.

    Returns
    -------
    index : int or None. Only whether it is None may be released.

    Notes
    -----
    That is eps1-DP for the proposals and eps2-DP for the tuples. All proposals are tried, always.
    """
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
    step.given(not success or bad[passed[0]] <= constants.most)
    return int(passed[0]) if success else None


def test_partition(step, tuples, separation, constants):
    """PrivateTestPartition: the points of a tuple whose balls nearly partition all, or None.

    epsilon-DP, as far as None is concerned. Think of the proposals as drawn from a copy of the
    database: each of the two copies costs half.
    """
    chosen = step.sample(len(tuples), constants.m)
    index = close_tuples(step, tuples[chosen], tuples, separation, constants, own=True)
    if index is None:
        return None
    # A degenerate proposal passes within delta only; None is as good as any other answer then.
    centers = tuples[chosen[index]]
    return centers if _gaps(centers).min() > 0 else None


test_partition.__test__ = False  # its name is the paper's, but it is no test of ours


def release_if_private(step, tuples, *, separation, epsilon, delta, beta, answer):
    """Theorem W: test, then answer; (epsilon, delta)-DP for replacing one of the tuples.

    Parameters
    ----------
    step : Step
        Paid for (epsilon, delta).
    tuples : ndarray of shape (t, k, d), integer-valued
        k >= 2; t is public.
    separation : float
        Above 6; public.
    epsilon, delta : float
        Of the whole.
    beta : float
        Chance of None on tuples partitioned by balls of separation 2 `separation` + 2.
    answer : callable
        ``answer(centers, most, epsilon, delta)``: for every two sets of far balls, each of which
        partitions all but `most` of the tuples of its database, (epsilon, delta)-close.

    Returns
    -------
    result : whatever `answer` returns, or None

    Notes
    -----
    Let S be success, E success with balls that leave out at most `most` tuples. Then
    P[S and not E] <= d, unconditionally, for any proposals: if none passes, S needs noise of
    at least the quorum (d / 2); if the first that passes leaves out more, one of m has noise of at
    most passing - most (m d / (2 m)). Failure is the constant None, and its probability is
    (epsilon / 2)-close. For the rest, P[result in Y, E] <= P[E] (e^{epsilon/2} p' + delta / 2), p'
    the probability of Y given E', and P[E] <= e^{epsilon/2} (P[E'] + d). In all
    (epsilon, delta / 2 + (1 + e^epsilon) d), and that is delta.
    """
    if not separation > LEAST_SEPARATION:
        raise ValueError("separation must be greater than 6.")
    if tuples.shape[1] < 2:
        raise ValueError("n_clusters must be at least 2 for this aggregator.")
    constants = _test_constants(len(tuples), epsilon, delta, beta)
    if constants is None:
        raise ValueError("n_tuples is too small for this budget.")
    centers = test_partition(step, tuples, separation, constants)
    if centers is None:
        return None
    _, answer_epsilon, answer_delta = answer_budget(epsilon, delta)
    return answer(centers, constants.most, answer_epsilon, answer_delta)


# -- noisy centers ----------------------------------------------------------------------------


def noisy_centers(session, step, centers, separation, ball, epsilon, delta):
    """PrivatekNoisyCenters, after the test: one tuple with noise of a released scale.

    Parameters
    ----------
    session : PrivacySession
        For the random order of the centers.
    step : Step
    centers : ndarray of shape (k, d), distinct integers
        Any balls of the test.
    separation : float
    ball : float
        Radius of the public ball that the points lie in, in steps.
    epsilon, delta : float

    Returns
    -------
    noisy : ndarray of shape (k, d), in a random order

    Notes
    -----
    Two sets of balls that partition a common tuple can be matched so that
    |c_i - c'_i| <= (M_i + M'_i) / D, M the distance to the next center; hence
    |ln M_i - ln M'_i| <= ln((D + 2) / (D - 2)). The scale is released through its logarithm (the
    published algorithm adds noise to M itself, of a size that depends on M, and is not private)
    and moved up so that it exceeds |c_i - c'_i| but for delta / (4 k); in units of it, the
    stacked centers are within sqrt(k).
    """
    centers = centers[session.random_order(centers)]
    k, d = centers.shape
    reach = np.sqrt(_gaps(centers))
    scale = _noisy_scale(step, reach, separation, epsilon / 2, delta / 2)
    # No two points of the ball are farther apart than 2 ball. (Below it only within delta.)
    scale = np.clip(scale, 2 / separation, 2 * ball)
    unit = np.maximum(2.0 ** (np.floor(np.log2(scale)) - _NOISE_BITS), _LEAST_STEP)[:, None]
    steps = np.rint(centers / unit).astype(np.int64)
    # Rounding moves each of d coordinates of a difference by at most one step.
    within = (scale[:, None] / unit + math.sqrt(d)) * math.sqrt(k) * (1 + 1e-9)
    noisy = step.gaussian(steps, sensitivity=within, epsilon=epsilon / 2, delta=delta / 2)
    return noisy * unit


def _noisy_scale(step, reach, separation, epsilon, delta):
    """Released upper bounds of |c_i - c'_i|, each but for delta / k; epsilon-DP in all."""
    k = len(reach)
    steps = np.floor(np.log(reach) * _FINE)
    # ln M_i moves by at most ln((D + 2) / (D - 2)); two more steps for rounding. k of them.
    within = math.ceil(_log_ratio(separation) * _FINE) + 2
    noisy = step.laplace(steps.astype(np.int64), sensitivity=k * within, epsilon=epsilon)
    # P[noise <= -offset] <= exp(-(offset - 1/2) / b) / 2, with b = k within / epsilon.
    offset = k * within / epsilon * math.log(k / (2 * delta)) + 1
    factor = (2 + 4 / (separation - 2)) / separation
    found = factor * np.exp((noisy + offset + 1) / _FINE) * (1 + 1e-9)
    step.given(bool(np.all(found >= factor * reach)))
    return found


def _log_ratio(separation):
    return math.log1p(4 / (separation - 2))


def relative_noise(separation, k, epsilon, delta):
    """Typical noise of a center, over its distance to the next one: public.

    Parameters
    ----------
    separation : float
    k : int
    epsilon, delta : float
        Of the whole aggregation.
    """
    _, epsilon, delta = answer_budget(epsilon, delta)
    sigma = accounting.gaussian_sigma(epsilon / 2, delta / 2, math.sqrt(k))
    width = 2 * k / epsilon * _log_ratio(separation)
    factor = (2 + 4 / (separation - 2)) / separation
    return sigma * factor * math.exp(min(width * math.log(k / delta), 700.0))


def default_separation(k, epsilon, delta):
    """The separation at which the noise is about a seventh of the distance between centers."""
    low, high = math.log(LEAST_SEPARATION + 1), math.log(1e9)
    return math.exp(
        brentq(
            lambda x: math.log(relative_noise(math.exp(x), k, epsilon, delta) / _GOAL), low, high
        )
    )
