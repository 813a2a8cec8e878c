"""Public points as a prior: cases computed by hand, and both ends, all noise and none."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dp.federated._prior import (
    blend_moment,
    lift_points,
    nearest_of,
    posterior_weights,
    shrink_counts,
    shrink_moves,
    spikes,
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


def test_what_is_seen_counts_where_it_is_more_than_sampling_explains():
    """As above with s = 1 and M = [[6, 9], [9, 3]]: square 171; noise 2 with a deviation of 2:
    seen 169, which is beyond four of them, gain 169 / 171.
    """
    _, gain = blend_moment(np.array([[6.0, 9], [9, 3]]), 1.0, np.array([[2.0, 0], [0, 0]]))
    assert gain == pytest.approx(169 / 171)


@pytest.mark.parametrize(("square", "gain"), [(6, 0), (8, 3 / 5), (10, 8 / 10), (18, 16 / 18)])
def test_what_is_seen_counts_in_full_from_four_deviations(square, gain):
    """One point: sampling explains nothing. Noise 2 with a deviation of 2; seen beyond it 4, 6, 8
    and 16: nothing at two deviations, half at three, all at four and more.
    """
    moment = np.diag([4.0, math.sqrt(square)])
    assert blend_moment(moment, 1.0, np.array([[2.0, 0]]))[1] == pytest.approx(gain)


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


def test_one_feature_has_one_axis():
    moment, gain = blend_moment(np.array([[6.0]]), 0.5, np.array([[2.0], [1.0]]))
    assert moment == pytest.approx(6.0) and 0 <= gain <= 1


def test_chance_does_not_turn_the_axes_of_the_points():
    """12 dimensions, noise alone: its square varies by a sixth, as a gain would."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 12)) * np.repeat([3.0, 0.3], [4, 8])
    gains = []
    for _ in range(40):
        noise = rng.normal(size=(12, 12))
        gains.append(blend_moment(1e6 * (noise + noise.T) / 2, 1e6, points)[1])
    assert np.mean(np.array(gains) > 0.1) <= 0.1 and max(gains) < 0.3


def test_points_at_the_center_have_no_say():
    moment = np.diag([1.0, 2.0])
    blended, gain = blend_moment(moment, 1e300, np.zeros((3, 2)))
    assert gain == 1 and np.array_equal(blended, moment)


def test_spikes_are_what_noise_has_added_to():
    """l is seen at l + s^2 d / (2 l), with the edge at s sqrt(2 d): d = 2, s = 1, edge 2.

    The eigenvalue 4 is seen at 4.25; a value of 2.5 comes from (2.5 + 1.5) / 2 = 2; 2 is noise.
    """
    assert spikes(np.array([-9.0, 2.0]), 1.0) == pytest.approx([0, 0])
    assert spikes(np.array([2.5, 4.25]), 1.0) == pytest.approx([2, 4])


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


def test_weights_are_alike_where_noise_rules_and_a_threshold_where_there_is_none():
    noise = np.random.default_rng(0).normal(size=200)
    alike = posterior_weights(1 + 1e4 * noise, 1e4)
    assert alike.max() < 4 * np.median(alike)
    released = np.array([0.01, -0.01, 50.0, 100.0])
    exact = posterior_weights(released, 1e-2)
    assert exact[2:] == pytest.approx([50, 100], rel=1e-3) and (exact[:2] <= 1e-6).all()


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


def test_what_lies_across_a_wrong_subspace_is_kept_and_noise_across_a_right_one_goes():
    rng = np.random.default_rng(1)
    means = np.zeros((2, 40))
    means[0, :20], means[1, 20:] = 3.0, -3.0
    near = np.repeat([0, 1], 20)
    points = means[near] + 0.5 * rng.normal(size=(40, 40))
    right = np.stack([means[0], means[1]]) / np.linalg.norm(means[0])
    wrong = np.linalg.qr(rng.normal(size=(40, 2)))[0].T
    for subspace, far in ((right, 0.4), (wrong, 0.9)):
        flat = np.stack([(points[near == j] @ subspace.T).mean(axis=0) for j in (0, 1)])
        lifted = lift_points(points, points @ subspace.T, np.ones(40), flat, subspace)
        assert np.linalg.norm(lifted.centers - means, axis=1).max() < far
    alone = lift_points(points, points, np.ones(40), means, None)
    assert np.array_equal(alone.centers, means) and not alone.outside.any()
    assert alone.inside == pytest.approx([0.25 / 19] * 2, rel=0.3)


def test_the_nearest_center():
    centers = np.array([[0.0, 0], [4, 0], [0, 4]])
    points = np.array([[1.0, 0], [3, 1], [0, 3], [2, 0]])  # the last one by the order
    assert nearest_of(points, centers).tolist() == [0, 1, 2, 0]


def test_counts_shrink_as_computed_by_hand():
    """Counts 30 and 10, s = 6, expected 1 : 1. Prior 20, 20; variance 100 - 36 = 64, gain .64."""
    found = shrink_counts(np.array([30.0, 10]), 6.0, np.array([5.0, 5]))
    assert found == pytest.approx([26.4, 13.6])
    # The least variance is a tenth of the mean count squared: (0.1 * 20)^2 = 4, gain 4 / (4 + 100).
    found = shrink_counts(np.array([40.0, 0]), 10.0, np.array([8.0, 2]))
    assert found == pytest.approx([32 + 8 * 4 / 104, 8 - 8 * 4 / 104])


def test_counts_of_noise_are_those_expected_and_exact_ones_stay():
    assert shrink_counts(np.array([5.0, 1]), 100.0, np.array([7.0, 3])).tolist() == [7, 3]
    exact = np.array([1000.0, 10, 1])
    assert shrink_counts(exact, 1e-6, np.ones(3)) == pytest.approx(exact)
    nothing = shrink_counts(np.array([9.0, 3]), 1.0, np.zeros(2))  # weights that sum to nothing
    assert np.isfinite(nothing).all() and nothing.sum() == pytest.approx(12)


def test_two_totals_of_noise_are_one_as_far_as_it_is_seen():
    """Counts of sum 60 with variance 4 * 30^2 = 60^2, expected 6 : 2 of sum 120 with variance 60^2.

    Together 90, with a deviation of 60 / sqrt(2) = 42.4: (90 - 42.4) / 84.9 of it is believed.
    """
    counts, expected = np.array([60.0, 0, 0, 0]), np.array([60.0, 20, 20, 20])
    error = 60 / math.sqrt(2)
    sure = 90 * (90 - error) / (2 * error)
    found = shrink_counts(counts, 30.0, expected, 60.0)
    assert found == pytest.approx(sure * expected / 120)
    none = shrink_counts(counts - 50, 30.0, expected / 10, 60.0)  # a sum of noise below zero
    assert not none.any()
    # Nothing is known of the sum beforehand: that of the counts alone, 60 with a deviation of 60.
    assert not shrink_counts(counts, 30.0, expected, math.inf).any()


def test_a_movement_of_which_nothing_can_be_seen_is_none():
    moved, gain = shrink_moves(
        np.full((2, 3), 5.0), 3, np.ones(2), np.ones(2), np.ones(2), np.array([0.0, 1e9])
    )
    assert not moved[0].any() and gain[0] == 0 and gain[1] > 0.5 and np.isfinite(moved).all()


def test_moves_shrink_as_computed_by_hand():
    """d = 32, noise 1, doubt 1 along each axis: squared movement 4 an axis, excess 4 - 2 = 2.

    Its error sqrt(2 / 32) * 2 = .5; pooled 2 - .5 * .5 = 1.75, own 2 - .5 = 1.5: prior 1 + 1.75,
    gain 2.75 / 3.75.
    """
    moved = np.full((1, 32), 2.0)
    kept, gain = shrink_moves(moved, 32, np.ones(1), np.ones(1), np.ones(1), 1e9)
    assert gain == pytest.approx([2.75 / 3.75])
    assert kept == pytest.approx(gain[:, None] * moved)


def test_moves_within_their_noise_are_the_doubts_alone():
    """What is known beforehand to be uncertain gives a Kalman gain, doubt / (doubt + noise)."""
    rng = np.random.default_rng(0)
    moved = 2 * rng.normal(size=(4, 400))  # noise 3, doubt 1
    kept, gain = shrink_moves(moved, 400, np.full(4, math.sqrt(3)), np.ones(4), np.ones(4), 1e9)
    assert gain == pytest.approx([0.25] * 4, abs=0.03)
    none, gain = shrink_moves(moved, 400, np.full(4, 2.0), np.ones(4), np.zeros(4), 1e9)
    assert (gain < 0.08).all() and np.abs(none).max() < 0.08 * np.abs(moved).max() + 1e-12


def test_no_move_is_longer_than_a_row_can_be_and_without_noise_all_is_believed():
    moved = np.array([[3.0, 4.0], [0.3, 0.4]])
    kept, _ = shrink_moves(1e6 * moved, 2, np.full(2, 1e9), np.ones(2), np.full(2, 1e30), 1.0)
    assert (np.linalg.norm(kept, axis=1) <= 1 + 1e-12).all()
    kept, gain = shrink_moves(moved, 2, np.full(2, 1e-9), np.ones(2), np.zeros(2), 10.0)
    assert kept == pytest.approx(moved) and gain == pytest.approx(1)
