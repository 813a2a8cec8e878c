"""DPCoreset: released points that anything may be run on."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min

from sklearn_dp import DPCoreset
from sklearn_dp._aggregate.kmeans import private_coreset as _private_coreset
from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp.audit import replay_audit
from sklearn_dp.exceptions import UtilityWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def mixture(n, d, k=8, seed=0):
    """Round clusters, six standard deviations apart or more."""
    rng = np.random.default_rng(seed)
    centers = 12.0 * rng.permutation(np.indices((2,) * max(d, 4)).reshape(max(d, 4), -1).T)[:k, :d]
    centers += rng.uniform(-3, 3, centers.shape)
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def flat():
    X = mixture(10_000, 2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X, DPCoreset(epsilon=1.0, bounds=(-6.0, 20.0), random_state=0).fit(X)


@pytest.fixture(scope="module")
def wide():
    X = mixture(10_000, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X, DPCoreset(epsilon=1.0, bounds=80.0, random_state=0).fit(X)


# -- what may be run on it -------------------------------------------------------------------------


def test_kmeans_on_the_points_is_nearly_kmeans_on_the_rows(flat):
    X, coreset = flat
    for k, most in ((2, 1.03), (4, 1.03), (8, 1.05), (20, 1.10)):
        public = KMeans(k, n_init=5, random_state=0).fit(X)
        ours = KMeans(k, n_init=5, random_state=0).fit(
            coreset.points_, sample_weight=coreset.weights_
        )
        cost = np.square(pairwise_distances_argmin_min(X, ours.cluster_centers_)[1]).sum()
        assert cost <= most * public.inertia_, k


def test_dbscan_finds_the_moons():
    """The recipe of the user guide, in at least 9 of 10 seeds."""
    found = 0
    for seed in range(10):
        X, labels = make_moons(5000, noise=0.05, random_state=seed)
        coreset = DPCoreset(epsilon=1.0, random_state=seed).fit(X)
        total = coreset.weights_.sum()
        model = DBSCAN(eps=2 * coreset.resolution_, min_samples=int(0.0025 * total) + 1)
        model.fit(coreset.points_, sample_weight=coreset.weights_)
        found += adjusted_rand_score(labels, model.labels_[coreset.predict(X)]) >= 0.97
    assert found >= 9


# -- what it shows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 10, 12])
@pytest.mark.parametrize("n", [1, 2000])
def test_the_attributes_fit_together(n, d):
    X = mixture(n, d, 2)
    coreset = DPCoreset(5, bounds=(-5.0, 12.0), random_state=0).fit(X)
    m, q = coreset.widths_.shape
    assert coreset.points_.shape == (m, d) and coreset.weights_.shape == (m,)
    assert m >= 1 and (coreset.weights_ > 0).all() and (np.diff(coreset.weights_) <= 0).all()
    assert (coreset.points_ >= -5.0).all() and (coreset.points_ <= 12.0).all()
    assert coreset.resolution_ == np.median(coreset.widths_.max(axis=1)) > 0
    assert coreset.size_ > 0 and isinstance(coreset.status_, str)
    if d <= 3:
        assert coreset.basis_ is None and q == d
    else:
        assert coreset.basis_.shape == (q, d)
        assert np.allclose(coreset.basis_ @ coreset.basis_.T, np.eye(q), atol=1e-4)
    if q == d:
        assert coreset.residual_variance_ == 0


def test_points_are_leaves_and_no_guesses(flat, monkeypatch):
    """Guesses would be points that no row stands behind."""
    X, coreset = flat
    seen = []
    build = _private_coreset.build_coreset
    monkeypatch.setattr(
        _private_coreset, "build_coreset", lambda *args: seen.append(build(*args)) or seen[-1]
    )
    again = DPCoreset(epsilon=1.0, bounds=(-6.0, 20.0), random_state=0).fit(X)
    assert np.array_equal(again.points_, coreset.points_)
    assert len(again.points_) == seen[0].n_leaves < len(seen[0].points)
    assert again.weights_.sum() == pytest.approx(len(X), rel=0.1)
    assert again.size_ == pytest.approx(len(X), rel=0.02)


def test_the_released_variance_off_the_axes_is_that_of_the_rows(wide):
    X, coreset = wide
    assert len(coreset.basis_) < 12
    away = X - coreset.points_.mean(axis=0)
    away = away - away @ coreset.basis_.T @ coreset.basis_
    expected = np.square(away).sum() / len(X) / (12 - len(coreset.basis_))
    assert coreset.residual_variance_ == pytest.approx(expected, rel=0.4)


@pytest.mark.parametrize("d", [2, 12])
def test_where_no_cell_is_seen_one_point_stands_for_all(d):
    X = np.random.default_rng(0).uniform(-1, 1, size=(12, d))
    with pytest.warns(UtilityWarning, match="one point for all rows"):
        coreset = DPCoreset(epsilon=0.1, bounds=2.0, random_state=1).fit(X)
    assert coreset.points_.shape == (1, d) and coreset.weights_ == [coreset.size_]
    sample = coreset.sample(100, random_state=0)
    assert sample.shape == (100, d) and np.linalg.norm(sample, axis=1).max() <= 2.0 + 1e-12
    assert (coreset.predict(X) == 0).all()


def test_fewer_points_than_clusters_is_told():
    X = np.repeat([[-1.0, 0.0], [1.0, 0.5]], 5000, axis=0)
    coreset = DPCoreset(50, epsilon=1.0, bounds=3.0, random_state=0).fit(X)
    assert 2 <= len(coreset.points_) < 50
    assert coreset.status_.startswith(f"fewer points than n_clusters: {len(coreset.points_)}")


# -- its methods -----------------------------------------------------------------------------------


def test_samples_are_like_the_rows(flat, wide):
    for X, coreset in (flat, wide):
        sample = coreset.sample(20_000, random_state=0)
        assert sample.shape == (20_000, X.shape[1])
        spread = X.std(axis=0)
        assert (np.abs(sample.mean(axis=0) - X.mean(axis=0)) < 0.15 * spread).all()
        assert (np.abs(sample.std(axis=0) / spread - 1) < 0.3).all()


def test_many_rows_take_little_more_memory_than_they_are(wide):
    coreset = wide[1]
    tracemalloc.start()
    many = coreset.sample(300_000, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert many.nbytes > 2e7 and peak < 2.5 * many.nbytes


def test_the_seed_of_a_sample_is_no_noise():
    """No warning, no other report; None is another sample each time."""
    coreset = DPCoreset(epsilon=1.0, bounds=20.0).fit(mixture(3000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (coreset.sample(5, random_state=3) for _ in range(2))
        assert np.array_equal(first, second)
        assert not np.array_equal(coreset.sample(5), coreset.sample(5))
        for state in (np.random.RandomState(0), np.random.default_rng(0)):
            assert coreset.sample(random_state=state).shape == (1, 2)
    assert "seed" not in str(coreset.privacy_report_).lower()


def test_points_carry_labels_to_rows(flat):
    X, coreset = flat
    distances = np.linalg.norm(X[:200, None] - coreset.points_, axis=2)
    assert np.array_equal(coreset.predict(X[:200]), distances.argmin(axis=1))
    assert np.array_equal(pickle.loads(pickle.dumps(coreset)).predict(X), coreset.predict(X))


def test_a_table_of_points():
    X = pd.DataFrame(mixture(3000, 2), columns=["age", "income"])
    coreset = DPCoreset(bounds=20.0).fit(X)
    frame = coreset.to_frame()
    assert list(frame.columns) == ["age", "income", "weight"]
    assert np.array_equal(frame[["age", "income"]], coreset.points_)
    assert list(DPCoreset(bounds=20.0).fit(X.to_numpy()).to_frame())[:2] == ["x0", "x1"]


@pytest.mark.parametrize("n", [0, -1, 1.5, "many", 10**12])
def test_bad_numbers_of_samples(flat, n):
    with pytest.raises((ValueError, TypeError), match="n_samples"):
        flat[1].sample(n)


@pytest.mark.parametrize("k", [0, 2.5, None])
def test_bad_numbers_of_clusters(k):
    with pytest.raises((ValueError, TypeError), match="n_clusters"):
        DPCoreset(k).privacy_plan(2)


# -- privacy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "bounds"), [(2, None), (5, 4.0), (12, 4.0)])
def test_replay(d, bounds):
    """Rows and groups, with little noise so that there are many cells."""
    X = mixture(90, d, 3) / 10
    estimator = DPCoreset(4, epsilon=60.0, bounds=bounds)
    result = replay_audit(estimator, X)
    result += replay_audit(estimator, X, groups=np.arange(90) // 3, strangers=False)
    assert result.violations == []
    assert {"sum and count", "radius", "cells", "cell means"} <= set(result.ratios)


def test_weights_without_noise_are_caught(monkeypatch):
    """Weights counted anew from the rows, at the points that were released."""
    fit = DPCoreset._fit

    def mutant(self, X, *others):
        fit(self, X, *others)
        self.weights_ = np.bincount(self.predict(X), minlength=len(self.points_)) + 0.5

    monkeypatch.setattr(DPCoreset, "_fit", mutant)
    monkeypatch.setattr(DPCoreset, "__sklearn_is_fitted__", lambda self: hasattr(self, "status_"))
    estimator = DPCoreset(4, epsilon=60.0, bounds=4.0)
    assert replay_audit(estimator, mixture(120, 2, 3) / 10, stop_at_first=True).violations


def test_inner_follows_from_the_widths():
    core = Coreset(np.zeros((1, 2)), np.ones(1), 1, np.array([[2.0, 4.0]]), 1.0, None)
    assert core.inner == pytest.approx([20 / 24])
