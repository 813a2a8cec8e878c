"""Audits fit as the strictest user would."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from sklearn_dp import SampleAndAggregate
from sklearn_dp.audit._checks import check_data
from sklearn_dp.audit._observe import run_fit, target_of


def warn_as(category):
    return lambda self, X, session: warnings.warn("something", category, stacklevel=2)


@pytest.mark.parametrize("category", [UserWarning, RuntimeWarning, FutureWarning])
def test_warnings_of_others_are_errors(toy, points, after_fit, category):
    after_fit(warn_as(category))
    assert isinstance(run_fit(toy, points).error, category)
    relaxed = run_fit(toy, points, strict=False)
    assert relaxed.error is None and (category, "something") in relaxed.warnings


@pytest.mark.parametrize("operation", [np.square, np.exp, lambda X: 1e-300 * X / 1e250])
def test_numpy_raises_what_nobody_guards(toy, points, monkeypatch, operation):
    """A fit that goes past the guard of the base class."""
    monkeypatch.setattr(type(toy), "fit", lambda self, X, y=None: operation(X * 1e200) and self)
    assert isinstance(run_fit(toy, points).error, FloatingPointError)


class ToldApart(BaseEstimator):
    """Means of two classes: fails without a target."""

    def fit(self, X, y):
        self.means_ = np.array([X[y == label].mean(axis=0) for label in (0, 1)])
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.target_tags.required = "classifier", True
        return tags


def test_a_target_is_a_function_of_its_row(toy):
    X = check_data(6)
    assert target_of(toy, X) is None
    private = SampleAndAggregate(ToldApart(), output=("means_",), classes=["no", "yes"])
    labels = target_of(private, X)
    assert labels.tolist() == ["no", "yes"] * 3
    assert target_of(private, X[1:]).tolist() == labels[1:].tolist()
    regression = SampleAndAggregate(LinearRegression(), output=("coef_",))
    assert np.array_equal(target_of(regression, X), X[:, 0])


@pytest.mark.parametrize("shown", ["__repr__", "__str__"])
def test_what_either_text_shows_is_in_the_face(toy, points, monkeypatch, shown):
    """`str` asks for `repr`, unless a class has one of its own: then it is a text of its own."""
    outcome = run_fit(toy, points)
    monkeypatch.setattr(type(toy), shown, lambda self: "what only this text says", raising=False)
    assert "what only this text says" in outcome.face()["repr"]
