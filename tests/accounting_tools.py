"""Exact references for the tests of the accountant, in 80-digit arithmetic."""

import math
import random

import mpmath as mp
import numpy as np
import pytest

TIGHT = 1e-9
DELTAS = (1e-300, 1e-100, 1e-20, 1e-8, 1e-6, 1e-2, 0.5)


def log_uniform(seed, low, high, size):
    rng = random.Random(seed)
    return [10 ** rng.uniform(math.log10(low), math.log10(high)) for _ in range(size)]


def exact_delta(mu, epsilon):
    """delta of the Gaussian curve; `mu` and `epsilon` may be mpf."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    with mp.workdps(80 + max(0, -int(mp.log10(mu)))):  # the difference is about mu times its terms
        upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return (mp.erfc(upper / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(lower / mp.sqrt(2))) / 2


def exact_zcdp_epsilon(rho, delta):
    """Minimum over all orders of the conversion of zCDP, by bisection of its slope."""
    rho, log_inverse = mp.mpf(rho), -mp.log(mp.mpf(delta))
    low, high = -mp.mpf(200), mp.log(mp.mpf(2) / delta)
    for _ in range(200):  # in log(order - 1)
        middle = (low + high) / 2
        b = mp.exp(middle)
        if rho * b * b + mp.log1p(b) < log_inverse:
            low = middle
        else:
            high = middle
    a = 1 + mp.exp(low)
    return rho * a + mp.log((a - 1) / a) + (log_inverse - mp.log(a)) / (a - 1)


def pld_of(sigma, *, pessimistic=True, laplace_scales=()):
    from dp_accounting.pld import privacy_loss_distribution as pld

    options = {
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,  # exists for the pessimistic estimate only
        "value_discretization_interval": 1e-4,
    }
    result = pld.from_gaussian_mechanism(sigma, **options)
    for scale in laplace_scales:
        result = result.compose(pld.from_laplace_mechanism(scale, **options))
    return result


def refuses_bad_numbers(name, call):
    """What is no finite number, or negative, is refused by the name of its parameter."""
    for bad in (-1.0, math.nan, math.inf, -math.inf, 10**400):
        with pytest.raises(ValueError, match=name):
            call(bad)
    for bad in (True, np.True_, "1", None, 1j, [1.0], np.array([1.0])):
        with pytest.raises(TypeError, match=name):
            call(bad)
