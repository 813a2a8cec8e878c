"""The model of released components, whitening, and as many as explain a part of the variance."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from sklearn_dp.decomposition import DPPCA

GENEROUS = {"rho": 1e6, "delta": 0.1, "random_state": 0, "bounds": 100.0}
X = np.random.default_rng(0).normal(size=(4000, 5)) * [9.0, 4.0, 1.0, 1.0, 1.0] + 3


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_without_noise_it_is_the_model_of_pca(k):
    model, plain = DPPCA(k, **GENEROUS).fit(X), PCA(k).fit(X)
    for name in ("singular_values_", "noise_variance_", "explained_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(plain, name), rtol=0.01)
    for name in ("get_covariance", "get_precision"):
        found, expected = getattr(model, name)(), getattr(plain, name)()
        np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01 * np.abs(expected).max())
    assert model.score(X) == pytest.approx(plain.score(X), rel=0.001)
    assert model.size_ == pytest.approx(len(X), abs=1)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_the_model_is_a_normal_law_whatever_the_noise(k, epsilon):
    """At an epsilon of 0.01 most variances are hidden, and none counts as less than the noise."""
    model = DPPCA(k, epsilon=epsilon, random_state=1).fit(X)
    covariance, precision = model.get_covariance(), model.get_precision()
    np.testing.assert_allclose(covariance @ precision, np.eye(5), atol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() >= model.noise_level_ * (1 - 1e-9)
    law = multivariate_normal(model.mean_, covariance)
    np.testing.assert_allclose(model.score_samples(X), law.logpdf(X), rtol=1e-9)
    assert model.score(X) == pytest.approx(law.logpdf(X).mean())
