"""DPOneCluster: what it finds and what it says; its audits are with the search itself."""

import numpy as np
import pytest

from sklearn_dp import DPOneCluster, DPOneClusterKMeans


def planted(n=5000, t=1500, d=2, seed=0, places=1):
    """Balls of t points in all, in uniform noise; the centers and the radius."""
    rng = np.random.default_rng(seed)
    radius = 0.02 if d <= 2 else 0.01 * np.sqrt(d)
    centers = rng.uniform(0.25, 0.75, (places, d))
    while places > 1 and np.linalg.norm(centers[0] - centers[1]) < 10 * radius:
        centers = rng.uniform(0.25, 0.75, (places, d))
    ball = rng.normal(size=(t, d))
    ball *= (radius * rng.random(t) ** (1 / d) / np.linalg.norm(ball, axis=1))[:, None]
    X = np.vstack([rng.random((n - t, d)), centers[np.arange(t) % places] + ball])
    return rng.permutation(X), centers, radius


def found(X, centers, radius, **options):
    model = DPOneCluster(**{"bounds": (0.0, 1.0), "epsilon": 1.0, **options}).fit(X)
    miss = np.linalg.norm(model.center_ - centers, axis=1).min() / radius
    return model, miss, model.radius_ / radius


# -- what it finds ----------------------------------------------------------------------------


def test_a_majority_is_found_by_the_mean():
    """A fraction of at least one half of many features; no number of points, and no smaller one."""

    def boxed(n_points, d):
        plan = DPOneCluster(n_points, bounds=1.0).privacy_plan(d)
        return "box" in {entry.name for entry in plan.entries}

    assert not any(boxed(share, d) for share in (0.5, 0.99) for d in (9, 500, 501))
    assert all(boxed(*pair) for pair in ((0.5, 8), (0.49, 9), (10**6, 9), (1, 501)))
    assert DPOneCluster(0.5, center_method="pca")._search(9).center_method == "pca"
    assert "box" in {
        entry.name.split("/")[-1]
        for entry in DPOneClusterKMeans(2, bounds=1.0).privacy_plan(9).entries
    }


@pytest.mark.slow
def test_one_of_two_minorities():
    """one_cluster:26, with less budget: the mean of the data is in neither."""
    for seed in range(5):
        X, centers, radius = planted(5000, 2000, places=2, seed=seed)
        model, miss, _ = found(X, centers, radius, n_points=0.15, random_state=seed)
        assert miss < 3 and model.predict(X).sum() >= 500
        assert model.n_points_target_ == pytest.approx(750, abs=30)


def test_copies_of_a_point_are_a_ball_of_radius_zero():
    rng = np.random.default_rng(0)
    X = rng.random((1000, 2))
    X[:600] = [0.25, 0.625]  # on the grid
    for seed in range(5):
        model = DPOneCluster(400, epsilon=2.0, bounds=(0.0, 1.0), random_state=seed).fit(X)
        assert model.radius_ == 0 and model.status_ == "ok"
        assert np.abs(model.center_ - [0.25, 0.625]).max() < 1e-6
        assert model.n_points_in_ == pytest.approx(600, abs=100)


def test_ten_features():
    """one_cluster:24: at epsilon = 2 a median ratio of at most 1.6."""
    ratios = []
    for seed in range(5):
        X, centers, radius = planted(5000, 2000, d=10, seed=seed)
        model, miss, ratio = found(
            X, centers, radius, n_points=2000, epsilon=2.0, random_state=seed, sample_size=2500
        )
        ratios.append(ratio)
        assert model.predict(X).sum() >= 1500
    assert np.median(ratios) <= 1.1


# -- what it says -----------------------------------------------------------------------------


def test_points_that_are_all_far_apart_are_no_error():
    """one_cluster:15: the ball is as large as it must be, and is not called a success."""
    X = np.array(np.meshgrid(*[np.linspace(0, 1, 6)] * 2)).reshape(2, -1).T
    for seed in range(5):
        model = DPOneCluster(n_points=500, epsilon=4.0, bounds=(0.0, 1.0), random_state=seed).fit(X)
        assert not model.found_ and model.status_ != "ok"
        assert np.isfinite(model.center_).all() and 0 <= model.radius_ <= 2 * np.sqrt(2)
