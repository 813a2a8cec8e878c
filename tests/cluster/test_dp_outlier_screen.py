"""The ball as a transformer, and clusters as balls."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPKMeans, DPOneClusterKMeans, DPOutlierScreen
from sklearn_dp.audit import replay_audit


def with_outliers(seed, n=3000, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 5
    X[::20] = 400 * rng.random((len(X[::20]), d))
    return X


def test_outliers_are_flagged_and_the_rest_is_kept():
    X = with_outliers(0)
    screen = DPOutlierScreen(epsilon=1.0, bounds=1000.0, random_state=0).fit(X)
    inside = screen.predict(X)
    good = np.arange(len(X)) % 20 != 0
    assert inside[good].mean() > 0.9 and inside[~good].mean() < 0.05
    assert screen.radius_ < 8
    assert screen.predict(X).mean() == screen.score(X)


def test_a_center_that_may_be_anywhere_needs_more_rows_than_noise_has():
    """One row: a small ball far from it seemed to hold 65 and more in 3 of 150 fits, and was ok."""
    one = DPOutlierScreen(bounds=10.0, random_state=17).fit([[3.0, 4.0]])
    assert one.n_points_in_ > 2 * one.n_points_in_std_error_ and one.radius_ < 2
    assert str(one.messages_).startswith("few points in the ball: noise could explain their number")
    X = 3 + 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    assert all(DPOutlierScreen(bounds=10.0, random_state=s).fit(X).found_ for s in range(5))


@pytest.mark.slow
def test_a_screen_makes_the_next_step_more_accurate():
    """one_cluster:30, 32 pairs: means found with and without the paid bounds, at equal budgets.

    Were one as good as the other, all pairs would agree with probability 2^-32.
    """
    wins, misses = 0, []
    for seed in range(32):
        X = with_outliers(seed, n=1500)
        screen = DPOutlierScreen(epsilon=0.5, bounds=1000.0, random_state=seed)
        model = make_pipeline(screen, DPKMeans(1, epsilon=0.5, bounds=1.0, random_state=seed))
        model.fit(X)
        screened = screen.inverse_transform(model[-1].cluster_centers_)[0]
        plain = DPKMeans(1, epsilon=1.0, bounds=1000.0, random_state=seed).fit(X)
        misses.append(
            [np.linalg.norm(found - 5) for found in (screened, plain.cluster_centers_[0])]
        )
        wins += misses[-1][0] < misses[-1][1]
    assert wins == 32
    ours, without = np.median(misses, axis=0)
    assert ours < 0.2 * without


PLACES = np.array([[0.2, 0.2], [0.8, 0.3], [0.4, 0.8]])


def balls(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    return PLACES[labels] + 0.02 * rng.normal(size=(n, 2)), labels


@pytest.mark.slow
def test_parallel_composition_would_be_caught():
    """Points of the first ball are read in the second round, too: an audit counts both."""
    X, _ = balls(60)
    audit = replay_audit(DPOneClusterKMeans(2, n_points=15, epsilon=100.0, bounds=2.0), X)
    assert audit.violations == []
    assert {"0/count", "1/count"} <= set(audit.ratios)
