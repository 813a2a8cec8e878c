"""Methods and attributes that ported code asks for, beside those of each estimator's own tests."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from sklearn_dp import (
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    FriendlyCovariance,
    SampleAndAggregate,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
X = np.vstack([np.random.default_rng(0).normal(size=(900, 2)) + shift for shift in (0, 9)])


@pytest.mark.parametrize("model", [DPKMeans(2), DPKTupleKMeans(2, n_tuples=4)], ids=str)
def test_kmeans_counts_its_iterations_by_what_they_released(model):
    model.set_params(epsilon=5.0, random_state=0).fit(X)
    sums = [line["release"].split("/")[-1] for line in model.privacy_report_.releases]
    assert model.n_iter_ == sums.count("lloyd sums") > 0
    assert model.fit_transform(X).shape == (len(X), 2)
    prefix = type(model).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{prefix}0", f"{prefix}1"]


def test_a_mixture_counts_its_rounds_and_says_whether_it_was_found():
    model = DPGaussianMixture(2, epsilon=5.0, random_state=0)
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.predict(X)) and set(labels) == {0, 1}
    moments = [line["release"] for line in model.privacy_report_.releases]
    assert model.n_iter_ == moments.count("component moments") > 1
    assert model.converged_ is True and model.status_.startswith("ok")
    groups = np.arange(len(X)) // 2
    assert model.fit_predict(X, groups=groups).shape == labels.shape
    assert model.privacy_report_.unit == "group"
    hidden = DPGaussianMixture(2, epsilon=0.01, random_state=0).fit(X[:50])
    assert hidden.converged_ is False and hidden.status_ != "ok"


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
