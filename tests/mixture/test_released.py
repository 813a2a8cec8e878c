"""What is done with a released mixture: the same as with scikit-learn's."""

import pickle

import numpy as np
import pytest
from mixture_tools import FORMS, Mixture
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from sklearn_dp.mixture import (
    DPGaussianMixture,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


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


@pytest.mark.parametrize("seed", [np.timedelta64(3, "s"), "1", -1, 2**63])
def test_a_bad_seed_of_a_sample_is_named(seed):
    model = DPGaussianMixture(2, random_state=0).fit(Mixture(2, 3, 12, 40).X)
    with pytest.raises((TypeError, ValueError), match="random_state"):
        model.sample(random_state=seed)


def test_more_samples_than_memory_holds_are_refused_by_name(monkeypatch):
    def too_many(self, n_samples):
        raise MemoryError("Unable to allocate 44.7 GiB")

    model = DPGaussianMixture(2, random_state=0).fit(Mixture(2, 3, 12, 40).X)
    monkeypatch.setattr(GaussianMixture, "sample", too_many)
    with pytest.raises(ValueError, match="^n_samples: that many rows do not fit into memory"):
        model.sample(2**31)
