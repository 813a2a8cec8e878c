"""Methods of the released estimator: there if the inner one has them, and its answers."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import RobustScaler

from sklearn_dp import SampleAndAggregate

METHODS = ("predict", "predict_proba", "transform", "fit_transform", "score")


@pytest.mark.parametrize(
    "inner, there",
    [
        (Ridge(), {"predict", "score"}),
        (LogisticRegression(), {"predict", "predict_proba", "score"}),
        (RobustScaler(), {"transform", "fit_transform"}),
        (PCA(1), {"transform", "fit_transform", "score"}),
    ],
    ids=lambda value: "" if isinstance(value, set) else type(value).__name__,
)
def test_a_method_is_there_if_the_inner_estimator_has_it(inner, there):
    model = SampleAndAggregate(inner)
    assert {name for name in METHODS if hasattr(model, name)} == there


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
def test_answers_are_those_of_the_released_estimator_and_finite_for_huge_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    model = SampleAndAggregate(
        Ridge(),
        output=("coef_", "intercept_"),
        output_bounds=10.0,
        n_blocks=60,
        epsilon=20.0,
        random_state=0,
    ).fit(X, X @ [1.0, -2.0])
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))
    assert model.score(X, X @ [1.0, -2.0]) == model.estimator_.score(X, X @ [1.0, -2.0])
    assert np.isfinite(model.predict(np.array([[1e300, -1e300]]))).all()


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
def test_methods_are_those_of_the_fit_until_the_next_one():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = SampleAndAggregate(n_blocks=4, random_state=0).fit(X)
    for other, next_fit in ((Ridge(), set()), (PCA(1), {"fit_transform"}), ("junk", set())):
        model.set_params(estimator=other)
        there = {name for name in METHODS if hasattr(model, name)}
        assert there == {"transform"} | next_fit
        assert model.transform(X).shape == X.shape


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
@pytest.mark.parametrize(
    "inner, output, method, missing",
    [
        (RobustScaler(), "center_", "transform", "scale_"),
        (PCA(1), "components_", "score", "mean_"),
        (Ridge(), "coef_", "predict", "intercept_"),
    ],
)
def test_what_the_output_lacks_for_a_method_is_named(inner, output, method, missing):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = SampleAndAggregate(inner, output=(output,), n_blocks=4, output_bounds=3.0)
    model.set_params(random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=f"output must also name {missing}") as caught:
        getattr(model, method)(X)
    assert caught.value.__context__ is None
