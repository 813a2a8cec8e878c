"""The model of released components, whitening, and as many as explain a part of the variance."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from sklearn_dp.decomposition import DPPCA

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
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


def test_a_part_of_the_variance_is_that_of_the_released_spectrum():
    whole = DPPCA(epsilon=1.0, random_state=2).fit(X)
    ratios = np.cumsum(whole.explained_variance_) / whole.explained_variance_.sum()
    for part in (0.01, 0.5, 0.9, 0.97, ratios[1], 1 - 1e-12):
        model = DPPCA(float(part), epsilon=1.0, random_state=2).fit(X)
        k = model.n_components_
        assert np.array_equal(model.components_, whole.components_[:k])
        assert ratios[k - 1] > part or k == 5
        assert k == 1 or ratios[k - 2] <= part
        assert model.transform(X).shape == (len(X), k) == (len(X), model._n_features_out)


def test_whitened_coordinates_have_the_released_variances_taken_out():
    plain = DPPCA(3, epsilon=1.0, random_state=3).fit(X)
    model = DPPCA(3, whiten=True, epsilon=1.0, random_state=3).fit(X)
    scales = np.sqrt(np.maximum(plain.explained_variance_, plain.noise_level_))
    np.testing.assert_allclose(model.transform(X) * scales, plain.transform(X))
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)), plain.inverse_transform(plain.transform(X))
    )
    assert model.transform(X).var(axis=0)[:2] == pytest.approx(np.ones(2), abs=0.2)
    before = model.transform(X)
    model.set_params(whiten=False)  # answers are those of the fit
    assert np.array_equal(model.transform(X), before)
