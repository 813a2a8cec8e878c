"""What is done with a released covariance: distances, scores, errors."""

import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sklearn_dp.covariance import FriendlyCovariance


def test_methods_of_scikit_learns_covariances():
    X = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 1.0, 0.3] + 9.0
    model = FriendlyCovariance(epsilon=2.0, random_state=0).fit(X)
    law = multivariate_normal(model.location_, model.covariance_)
    assert model.score(X) == pytest.approx(law.logpdf(X).mean())
    weights = np.arange(len(X))
    expected = np.average(law.logpdf(X), weights=weights)
    assert model.score(X, sample_weight=weights) == pytest.approx(expected)
    assert np.allclose(model.get_precision() @ model.covariance_, np.eye(3), atol=1e-9)
    assert 2.8 < model.mahalanobis(X).mean() < 3.2
    assert np.array_equal(model.covariance_, model.covariance_.T)
    assert model.size_ == pytest.approx(5000, rel=0.05)
    assert model.error_norm(model.covariance_) == 0
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.mahalanobis(X), model.mahalanobis(X))
