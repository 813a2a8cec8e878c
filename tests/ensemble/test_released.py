"""Methods of the released estimator: there if the inner one has them, and its answers."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import RobustScaler

from sklearn_dp import SampleAndAggregate
from sklearn_dp._partitions import engine_of
from sklearn_dp._partitions._rowwise import _released
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "transform",
    "fit_transform",
    "score",
)


@pytest.mark.parametrize(
    "inner, there",
    [
        (Ridge(), {"predict", "score"}),
        (LogisticRegression(), {"predict", "predict_proba", "decision_function", "score"}),
        (RobustScaler(), {"transform", "fit_transform"}),
        (PCA(1), {"transform", "fit_transform", "score", "score_samples"}),
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
    np.testing.assert_allclose(model.predict(X), model.estimator_.predict(X), rtol=1e-12)
    assert model.score(X, X @ [1.0, -2.0]) == model.estimator_.score(X, X @ [1.0, -2.0])
    assert np.isfinite(model.predict(np.array([[1e300, -1e300]]))).all()


ROWS = np.random.default_rng(0).normal(size=(90, 2))
PARTS = [ROWS[:7], ROWS[7:7], ROWS[7:40], ROWS[40:]]
IN_PARTS = {
    "labels": (
        LogisticRegression(),
        ("coef_", "intercept_"),
        ("predict", "predict_proba", "decision_function"),
    ),
    "line": (Ridge(), ("coef_", "intercept_"), ("predict",)),
    "axes": (
        PCA(1),
        ("mean_", "components_", "explained_variance_", "noise_variance_"),
        ("transform", "score_samples"),
    ),
}


@cache
def released(name):
    inner, output, _ = IN_PARTS[name]
    model = SampleAndAggregate(inner, output=output, output_bounds=5.0, aggregator="mean")
    model.set_params(n_blocks=4, epsilon=50.0, random_state=0, classes=["no", "yes"])
    model.set_params(ledger=PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(
            ROWS, np.where(ROWS[:, 0] > 0, "yes", "no") if name == "labels" else ROWS[:, 0]
        )


def same(found, expected):
    """But for the last bits, which products of matrices of other sizes may have otherwise."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        return np.allclose(found, expected, rtol=1e-12, atol=1e-12)
    return np.array_equal(found, expected)


@pytest.mark.parametrize("name", IN_PARTS)
def test_parts_have_the_answers_of_one_table(name):
    model, methods = released(name), IN_PARTS[name][2]
    for method in methods:
        assert same(getattr(model, method)(PARTS), getattr(model, method)(ROWS))
        assert not len(getattr(model, method)([ROWS[:0]]))
    with pytest.raises(ValueError, match="X has 1 features, but SampleAndAggregate"):
        getattr(model, methods[0])([ROWS[:, :1]])
    with pytest.raises(TypeError, match="^X must be in memory here"):
        model.score(PARTS, ROWS[:, 0])  # of which kind, a mean or not, nobody knows


def test_copies_that_travel_hold_what_was_released():
    model = released("labels")
    copied = _released(model, engine_of(PARTS), "predict")
    assert copied.ledger is None and copied.random_state is None and model.ledger is not None
    assert vars(copied).keys() <= set(model.get_params(deep=False)) | set(model.__getstate__())
    assert ROWS[3:4].tobytes() not in pickle.dumps(copied)
