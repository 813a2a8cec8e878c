"""What is done with a released mixture: the same as with scikit-learn's."""

import pickle

import numpy as np
import pytest
from mixture_tools import FORMS, Mixture
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_dp.mixture import DPGaussianMixture


@pytest.mark.parametrize("form", FORMS)
def test_it_behaves_like_scikit_learns(form):
    truth = Mixture(2, 3, 8, 3000)
    model = DPGaussianMixture(2, covariance_type=form, epsilon=3.0, random_state=0).fit(truth.X)
    plain = GaussianMixture(2, covariance_type=form).fit(truth.X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(model, name).shape == getattr(plain, name).shape
    fresh = GaussianMixture(2, covariance_type=form)
    fresh.weights_, fresh.means_ = model.weights_, model.means_
    fresh.precisions_cholesky_ = model.precisions_cholesky_
    assert np.allclose(fresh.score_samples(truth.X), model.score_samples(truth.X))
    full = {
        "full": lambda c: c,
        "tied": lambda c: [c, c],
        "diag": lambda c: map(np.diag, c),
        "spherical": lambda c: [np.eye(3) * v for v in c],
    }[form](model.covariances_)
    law = sum(
        w * multivariate_normal(m, c).pdf(truth.X)
        for w, m, c in zip(model.weights_, model.means_, full, strict=True)
    )
    assert np.allclose(model.score_samples(truth.X), np.log(law), atol=1e-9)
    assert model.score(truth.X) == pytest.approx(np.log(law).mean())
    assert np.allclose(model.predict_proba(truth.X).sum(axis=1), 1)
    assert np.array_equal(model.predict(truth.X), model.predict_proba(truth.X).argmax(axis=1))
    assert model.bic(truth.X) > model.aic(truth.X)
    X, labels = model.sample(20000, random_state=0)
    assert np.allclose(X.mean(axis=0), model.weights_ @ model.means_, atol=0.3)
    assert np.bincount(labels)[0] / 20000 == pytest.approx(model.weights_[0], abs=0.02)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.quick("2.0-*-diag", "None-rare-*")
@pytest.mark.parametrize("form", ["diag", "full"])
@pytest.mark.parametrize("value", [-5.0, 1e6, (1.0, 7.0), "rare"])
@pytest.mark.parametrize("width", [None, 2.0])
def test_a_column_of_one_value_does_not_decide_where_rows_belong(form, value, width):
    """Nor where scikit-learn evaluates the mixture. Squares less squares, of a deviation that is no
    more than noise allows, put all rows into one component."""
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=20_000)
    X = rng.normal(size=(20_000, 2)) + np.array([[0, 0], [10, 0], [0, 10.0]])[truth]
    rare = np.where(rng.random(20_000) < 0.001, 2.0, 1.0)
    last = rare if value == "rare" else np.reshape(value, (-1, 1))
    X = np.column_stack([X, *np.broadcast_to(last, (np.size(value), 20_000))])
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = None if width is None else (low - width, high + width)
    for dtype in (np.float64, np.float32):
        model = DPGaussianMixture(3, covariance_type=form, bounds=bounds, random_state=1)
        model.fit(X.astype(dtype))
        for each in (model, model.to_sklearn()):
            assert adjusted_rand_score(truth, each.predict(X.astype(dtype))) > 0.99


@pytest.mark.parametrize("form", ["diag", "full"])
def test_a_column_that_shows_one_value_in_bounds_is_as_wide_as_they_can_tell(form):
    """Zero was a mean of -1e-12, of which 1e-5 was the deviation: the other rows, 1% of them, had
    log-densities of -1e25."""
    rng = np.random.default_rng(5)
    rare = np.where(rng.random(20_000) < 0.01, rng.exponential(10, 20_000), 0.0)
    X = np.column_stack(
        [rng.normal(size=(20_000, 2)) + 10 * rng.integers(2, size=(20_000, 1)), rare]
    )
    bounds = np.array([-20.0, -20.0, -1.0]), np.array([30.0, 30.0, 3000.0])
    model = DPGaussianMixture(2, covariance_type=form, bounds=bounds, random_state=0).fit(X)
    assert model.column_status_[2] == "constant"
    assert -1e4 < model.score(X) < 0


def test_more_samples_than_memory_holds_are_refused_by_name(monkeypatch):
    def too_many(self, n_samples):
        raise MemoryError("Unable to allocate 44.7 GiB")

    model = DPGaussianMixture(2, random_state=0).fit(Mixture(2, 3, 12, 40).X)
    monkeypatch.setattr(GaussianMixture, "sample", too_many)
    with pytest.raises(ValueError, match="^n_samples: that many rows do not fit into memory"):
        model.sample(2**31)
