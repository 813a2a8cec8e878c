"""Rows go to the estimator of their segment, in their order."""

import numpy as np
import pytest

from sklearn_dp import DPBySegment, DPKMeans, FriendlyCovariance


def test_rows_are_routed_in_order():
    X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    key = np.arange(400) % 3
    model = DPBySegment(DPKMeans(2, bounds=4.0), values=[2, 0, 1], epsilon=50.0).fit(X, by=key)
    labels, distances = model.predict(X, by=key), model.transform(X, by=key)
    assert labels.dtype == np.int32 and distances.dtype == np.float32
    for value, fitted in model.estimators_.items():
        assert np.array_equal(labels[key == value], fitted.predict(X[key == value]))
        assert np.array_equal(distances[key == value], fitted.transform(X[key == value]))


def test_methods_are_those_of_the_estimator():
    model = DPBySegment(FriendlyCovariance())
    assert not hasattr(model, "predict") and hasattr(DPBySegment(), "predict")
    with pytest.raises(AttributeError):
        model.transform(np.zeros((2, 2)))
