"""The start where weights are noise: k-means of the server's points, as they are or lifted."""

import numpy as np
import pytest

from sklearn_dp.federated import _own_start
from sklearn_dp.federated._own_start import is_faint, own_start, subspace_predicts


def test_weights_are_faint_by_their_mean_less_its_deviation():
    """Four weights of mean 1 and noise s: 1 - s / 2 is .12 s at s = 1 / .62."""
    weights = np.array([4.0, 0, 0, 0])
    assert not is_faint(weights, 1 / 0.62 - 1e-9) and is_faint(weights, 1 / 0.62 + 1e-9)
    assert is_faint(-weights, 1e-9)


def test_an_own_start_as_computed_by_hand():
    """Points at (+-1, +-2) about (10, 0) and (-10, 0), weights 1 and 3.

    About each center the mean squares are 1 along the first axis and 4 along the second one, of
    four points: sampling variances 1 / 3 inside the subspace of the first axis and 4 / 3 outside.
    """
    corners = np.array([[1.0, 2], [1, -2], [-1, 2], [-1, -2]])
    points = np.vstack([corners + [10, 0], corners - [10, 0]])
    weights = np.repeat([1.0, 3.0], 4)
    start = own_start(points, weights, 2, np.array([[1.0, 0]]), np.random.default_rng(0))
    order = np.argsort(-start.centers[:, 0])
    assert start.centers[order] == pytest.approx(np.array([[10, 0], [-10, 0]]))
    assert start.weights[order] == pytest.approx([4, 12])
    assert start.inside == pytest.approx([1 / 3] * 2)
    assert start.outside == pytest.approx([4 / 3] * 2)
    whole = own_start(points, weights, 2, None, np.random.default_rng(0))
    assert whole.inside == pytest.approx([5 / 6] * 2) and not whole.outside.any()


def test_weights_do_not_move_it():
    """It is what costs nothing: released weights are in what clusters weigh, and nowhere else."""
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(30, 5)), rng.random(30) + 0.01
    one, other = (
        own_start(points, w, 3, None, np.random.default_rng(1)) for w in (weights, 1 + 0 * weights)
    )
    assert np.array_equal(one.centers, other.centers)
    assert one.weights.sum() == pytest.approx(weights.sum())


def mixture(rng, k, d, each, noise):
    means = rng.uniform(size=(k, d)) - 0.5
    return np.repeat(means, each, axis=0) + noise * rng.normal(size=(k * each, d))


def test_the_subspace_predicts_where_it_takes_out_sampling_errors_only():
    """The paper's 100 features, 20 points a cluster: yes. Far outliers in few features: no."""
    rng = np.random.default_rng(0)
    assert subspace_predicts(mixture(rng, 10, 100, 20, 0.7), 10, np.random.default_rng(1))
    points = np.vstack([mixture(rng, 4, 12, 8, 0.15), rng.uniform(-1, 1, size=(10, 12))])
    assert not subspace_predicts(points, 4, np.random.default_rng(1))


def test_without_a_subspace_or_with_few_points_there_is_nothing_to_predict(monkeypatch):
    monkeypatch.setattr(_own_start, "_cost_of_near", lambda *_: pytest.fail("it was tried"))
    rng = np.random.default_rng(0)
    for shape in ((100, 4), (9, 30), (1, 30)):
        assert not subspace_predicts(rng.normal(size=shape), 4, rng)
