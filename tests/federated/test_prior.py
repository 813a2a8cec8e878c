"""Public points as a prior: cases computed by hand, and both ends, all noise and none."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dp.federated._prior import blend_moment, posterior_weights

# -- the subspace ----------------------------------------------------------------------------------


def test_a_moment_blends_as_computed_by_hand():
    """d = 2, points (2, 0) and (0, 0): S = diag(2, 0), |S|^2 = 4, mean |x|^4 = 8.

    M = [[6, 1], [1, 3]], s = 1: a = max(12 / 4, 2 / 2) = 3, M - a S = [[0, 1], [1, 3]] with square
    11. Noise 1 * (3 - 1) = 2; sampling 3 * 9 * (8 - 4) / 2 = 54; seen 11 - 2. V = 54, gain 54 / 56.
    """
    moment, gain = blend_moment(np.array([[6.0, 1], [1, 3]]), 1.0, np.array([[2.0, 0], [0, 0]]))
    gained = 54 / 56
    assert gain == pytest.approx(gained)
    assert moment == pytest.approx(np.array([[6, gained], [gained, 3 * gained]]))


def test_noise_alone_gives_the_subspace_of_the_points_and_none_that_of_the_release():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 30)) * np.repeat([3.0, 0.3], [3, 27])
    truth = np.diag(np.repeat([0.01, 4.0], [27, 3]))  # of clients who are nothing like them
    noise = np.triu(rng.normal(size=(30, 30)) / math.sqrt(2), 1)
    noise += noise.T + np.diag(rng.normal(size=30))
    for sd, axes in ((1e6, slice(0, 3)), (1e-6, slice(27, 30))):
        moment, gain = blend_moment(truth + sd * noise, sd, points)
        top = np.linalg.eigh(moment)[1][:, -3:]
        assert np.square(top[axes]).sum() == pytest.approx(3, abs=0.1)
        assert 0 <= gain <= 1 and (gain > 0.999) == (sd < 1)


# -- weights ---------------------------------------------------------------------------------------


def by_integration(weight, sd, mean):
    """The posterior of the prior that the docstring states, by quadrature."""

    def seen(x):
        return norm.pdf((weight - x) / sd) / sd

    above, top = 2 * mean, max(weight, 0.0) + 12 * sd
    some = quad(lambda x: seen(x) * math.exp(-x / above) / above, 0, top, limit=200)[0]
    moment = quad(lambda x: x * seen(x) * math.exp(-x / above) / above, 0, top, limit=200)[0]
    probability = some / (some + seen(0.0))
    return probability ** (1 + (mean / sd) ** 2) * moment / some


@pytest.mark.parametrize("sd", [0.5, 2.0, 10.0])
def test_weights_are_the_posterior_by_integration(sd):
    weights = np.array([-3.0, 0.0, 1.0, 4.0, 8.0])  # of mean 2
    mean = max(2.0 - sd / math.sqrt(5), 0.1 * sd / math.sqrt(5))
    expected = [by_integration(weight, sd, mean) for weight in weights]
    assert posterior_weights(weights, sd) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("sd", [1e-60, 1e-3, 1.0, 1e60])
def test_weights_are_positive_and_finite(sd):
    for weights in (np.zeros(4), np.array([-1e9, 1e9, 0, 1]), np.full(4, -1e6)):
        used = posterior_weights(weights, sd)
        assert np.isfinite(used).all() and (used > 0).all()
