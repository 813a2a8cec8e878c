"""Rounded Gaussian noise.

Let the statistic v be a vector of integers with ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for
neighbors, and sigma_i >= s_i / sqrt(2 rho). Then ``v + round(sigma Z) = round(v + sigma Z)``: the
release is post-processing of the ideal Gaussian mechanism, whose means lie at most sqrt(2 rho)
standard deviations apart. So it is rho-zCDP, and exactly sqrt(2 rho)-GDP.

A discrete Gaussian would not do: it is rho-zCDP as well, but no post-processing of the continuous
one, so the exact curve of Gaussian DP does not hold for it, at small sigma least of all.

Sums in int64 are sums modulo 2^64, of statistic and noise alike: were one to leave 63 bits, what is
seen would be a function of the release all the same.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._costs import accounting
from ..._costs.plan import Mechanism
from ..._costs.rounding import round_up
from .._integers import exact_integers
from .._noise import NoiseSource
from ._release import Release, check_cost, positive_sensitivity


def sigma_of(sensitivity: Any, rho: float) -> Any:
    """sensitivity / sqrt(2 rho), rounded up: the noise scale of the Gaussian mechanism."""
    # Two operations, a root and a quotient: no more than two places in all.
    return round_up(sensitivity / math.sqrt(2 * rho))


def release(value: Any, sensitivity: Any, rho: float, unit: Any = 1.0) -> Release:
    """Integers in grid steps, with rounded Gaussian noise; see :meth:`PrivacySession.gaussian`.
    `rho` is the cost of the whole vector, with one sensitivity, or one for each entry. `unit`, the
    length of a step, is for the report."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = sigma_of(sensitivity, check_cost("rho", rho))
    value, draw = _with_noise(value, sigma)
    return Release(
        "gaussian",
        Mechanism.GAUSSIAN,
        value,
        sensitivity,
        sigma,
        rho,
        draw,
        public={"unit": unit},
        unit=unit,
    )


def inner(value: Any, sensitivity: Any, epsilon: float, delta: float) -> Release:
    """A draw of a step that has been paid for, (epsilon, delta)-DP, as the theorem about the step
    asks, by the analytic formula for ideal Gaussian noise."""
    sensitivity = positive_sensitivity(sensitivity)
    # The product is off by half a place: 1e-15 is more than four.
    sigma = accounting.gaussian_sigma(epsilon, delta) * np.asarray(sensitivity)
    sigma = np.nextafter(sigma * (1 + 1e-15), np.inf)
    value, draw = _with_noise(value, sigma)
    return Release(
        "inner_gaussian",
        Mechanism.GAUSSIAN,
        value,
        sensitivity,
        sigma,
        0.0,
        draw,
        cost=epsilon,
        public={"delta": delta},
    )


def _with_noise(value: Any, sigma: Any) -> tuple[np.ndarray, Callable[[NoiseSource], np.ndarray]]:
    """The statistic as integers, and the function that draws its noise once it is paid for."""
    value = exact_integers(value)
    spread = np.broadcast_to(sigma, value.shape) if np.ndim(sigma) else float(sigma)
    return value, lambda noise: value + noise.rounded_gaussian(spread, value.shape)
