"""Public points as a prior: cases computed by hand, and both ends, all noise and none."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dp.federated._prior import (
    blend_moment,
    lift_points,
    posterior_weights,
    shrink_counts,
    shrink_moves,
)

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


# -- centers ---------------------------------------------------------------------------------------


def test_lifted_points_as_computed_by_hand():
    """Two points (0, 0) and (2, 4) of weight 1 next to the center 1 of the first axis.

    Effective number 2, spread along the axis 1: variance 1 / (1 * 1) = 1. Across: mean 2, spread 4,
    variance 4 / 1 = 4, excess 4 - 4 = 0: nothing shows beyond sampling, and the mean stays out.
    """
    lifted = lift_points(
        np.array([[0.0, 0], [2, 4]]),
        np.array([[0.0], [2]]),
        np.ones(2),
        np.array([[1.0]]),
        np.array([[1.0, 0]]),
    )
    assert lifted.inside == pytest.approx([1]) and lifted.weights == pytest.approx([2])
    assert lifted.centers == pytest.approx(np.array([[1, 0]]))
    assert lifted.outside == pytest.approx([0])


def test_counts_shrink_as_computed_by_hand():
    """Counts 30 and 10, s = 6, expected 1 : 1. Prior 20, 20; variance 100 - 36 = 64, gain .64."""
    found = shrink_counts(np.array([30.0, 10]), 6.0, np.array([5.0, 5]))
    assert found == pytest.approx([26.4, 13.6])
    # The least variance is a tenth of the mean count squared: (0.1 * 20)^2 = 4, gain 4 / (4 + 100).
    found = shrink_counts(np.array([40.0, 0]), 10.0, np.array([8.0, 2]))
    assert found == pytest.approx([32 + 8 * 4 / 104, 8 - 8 * 4 / 104])


def test_moves_shrink_as_computed_by_hand():
    """d = 32, noise 1, doubt 1 along each axis: squared movement 4 an axis, excess 4 - 2 = 2.

    Its error sqrt(2 / 32) * 2 = .5; pooled 2 - .5 * .5 = 1.75, own 2 - .5 = 1.5: prior 1 + 1.75,
    gain 2.75 / 3.75.
    """
    moved = np.full((1, 32), 2.0)
    kept, gain = shrink_moves(moved, 32, np.ones(1), np.ones(1), np.ones(1), 1e9)
    assert gain == pytest.approx([2.75 / 3.75])
    assert kept == pytest.approx(gain[:, None] * moved)
