"""One tuple with noise, after the test for far balls: PrivatekNoisyCenters [1]_.

1. :mod:`.separated_balls` finds a tuple whose balls partition nearly all tuples; this one is
   released.
2. Bring its points into a random order.
3. Release how far each point is from the next one, through its logarithm.
4. Add Gaussian noise to the points, for each in proportion to its released distance.

A neighbor may have found the balls of another tuple. Both partition a common tuple, so their
centers are near each other in proportion to these distances: that is the sensitivity.

It is the fastest of the aggregators, and has not been seen to win. The logarithm of a distance has
noise of about 16 k log(k / delta) / (epsilon D), which is a factor of the noise of the center; so
the separation D has to be in the hundreds (:func:`default_separation`), and clusters as many times
farther apart than the tuples differ. Measured on 5000 tuples of three centers that are 1.39 apart
(``doc/benchmarks/tuples.md``, section "rivals"): where points are off by 0.001, noisy centers have
no answer at epsilon = 1 and an error of 0.28 at epsilon = 4; a friendly core has errors of 0.00013
and 0.00005. Where they are off by 0.00001, 0.32 against 0.000002 at epsilon = 1.

References
----------
.. [1] E. Cohen, H. Kaplan, Y. Mansour, U. Stemmer and E. Tsfadia, "Differentially-private
   clustering of easy instances", ICML 2021, section 4.4, with a scale that is private itself.
"""

import math

import numpy as np
from scipy.optimize import brentq

from .._costs import accounting
from .._privacy._composite_mechanism import CompositeMechanism
from .._privacy._integers import bounded_integers, exact_integers
from .._privacy._session import PrivacySession
from .._privacy._unit_draws import random_order
from .separated_balls import LEAST_SEPARATION, answer_budget, gaps

_FINE = 2**20  # steps of a logarithm: noise on it is as good as continuous
_NOISE_BITS, _LEAST_STEP = 20, 2.0**-36
_GOAL = 0.15  # noise of a center over its distance to the next one


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
    stacked centers are within sqrt(k).
    """
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
    |c - c'| <= M (1 + (D + 2) / (D - 2)) / D = M (2 + 4 / (D - 2)) / D, which is `factor` M.
    """
    k = len(reach)
    steps = np.floor(np.log(reach) * _FINE)
    # ln M_i moves by at most ln((D + 2) / (D - 2)); two more steps for rounding. k of them.
    within = math.ceil(_log_ratio(separation) * _FINE) + 2
    noisy = step.laplace(exact_integers(steps), sensitivity=k * within, epsilon=epsilon)
    # P[noise <= -offset] <= exp(-(offset - 1/2) / b) / 2, with b = k within / epsilon.
    offset = k * within / epsilon * math.log(k / (2 * delta)) + 1
    factor = (2 + 4 / (separation - 2)) / separation
    scale = factor * np.exp((noisy + offset + 1) / _FINE) * (1 + 1e-9)
    step.assume(bool(np.all(scale >= factor * reach)))
    return scale


def _log_ratio(separation: float) -> float:
    """ln((D + 2) / (D - 2)): how far ln M may move between neighbors."""
    return math.log1p(4 / (separation - 2))


def relative_noise(separation: float, k: int, epsilon: float, delta: float) -> float:
    """Typical noise of a center, over its distance to the next one: public.

    The sigma of the Gaussian mechanism in units of the scale, times the scale in units of M, moved
    up as far as :func:`_noisy_scale` does. Epsilon and delta are those of the whole aggregation.
    """
    _, epsilon, delta = answer_budget(epsilon, delta)
    sigma = accounting.gaussian_sigma(epsilon / 2, delta / 2, math.sqrt(k))
    width = 2 * k / epsilon * _log_ratio(separation)
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
