"""Methods and attributes that ported code asks for, beside those of each estimator's own tests."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from sklearn_dp import FriendlyCovariance, SampleAndAggregate

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
X = np.vstack([np.random.default_rng(0).normal(size=(900, 2)) + shift for shift in (0, 9)])


@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
@pytest.mark.parametrize("scaling", [True, False])
@pytest.mark.parametrize("squared", [True, False])
def test_error_norms_are_those_of_scikit_learn(norm, scaling, squared):
    model = FriendlyCovariance(epsilon=1.0, random_state=0).fit(X)
    other = np.cov(X.T)
    options = {"norm": norm, "scaling": scaling, "squared": squared}
    expected = model.to_sklearn().error_norm(other, **options)
    assert model.error_norm(other, **options) == pytest.approx(expected)
    assert model.error_norm(model.covariance_, **options) == 0


def aggregated(estimator, *output):
    return SampleAndAggregate(
        estimator, output=output, output_bounds=20.0, n_blocks=8, epsilon=50.0, random_state=0
    ).fit(X)


def test_a_released_estimator_says_what_a_method_needs():
    inner = aggregated(PCA(1), "components_").estimator_
    with pytest.raises(AttributeError, match="PCA.transform needs [a-z_]+_, .* `output`") as told:
        inner.transform(X)
    # Before 1.9, scikit-learn reads the variances first, also where it does not use them.
    assert told.value.name in ("mean_", "explained_variance_")
    with pytest.raises(AttributeError, match="score_samples needs"):
        inner.score(X)
    whole = aggregated(PCA(1), "components_", "mean_", "explained_variance_").estimator_
    assert whole.transform(X).shape == (len(X), 1)
