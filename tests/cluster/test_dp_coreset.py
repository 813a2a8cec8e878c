"""DPCoreset: released points that anything may be run on."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

from sklearn_dp import DPCoreset
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


@pytest.mark.parametrize("d", [2, 12])
def test_where_no_cell_is_seen_one_point_stands_for_all(d):
    X = np.random.default_rng(0).uniform(-1, 1, size=(12, d))
    with pytest.warns(UtilityWarning, match="one point for all rows"):
        coreset = DPCoreset(epsilon=0.1, bounds=2.0, random_state=1).fit(X)
    assert coreset.points_.shape == (1, d) and coreset.weights_ == [coreset.size_]
    sample = coreset.sample(100, random_state=0)
    assert sample.shape == (100, d) and np.linalg.norm(sample, axis=1).max() <= 2.0 + 1e-12
    assert (coreset.predict(X) == 0).all()


# -- its methods -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("n", [0, -1, 1.5, "many", 10**12])
def test_bad_numbers_of_samples(flat, n):
    with pytest.raises((ValueError, TypeError), match="n_samples"):
        flat[1].sample(n)


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
