"""FriendlyCovariance day by day: accuracy, tails, drift, one unit of one day."""

import numpy as np
import pytest

from sklearn_dp import FriendlyCovariance

SHAPE = np.array([[4.0, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.1, 0.2]])


def table_of(law, n, seed=0):
    """Rows, their covariance and mean, and bounds."""
    rng = np.random.default_rng(seed)
    if law == "normal":
        return rng.normal(size=(n, 3)) @ SHAPE.T + 5, SHAPE @ SHAPE.T, np.full(3, 5.0), (-40, 50)
    X = rng.exponential(size=(n, 3))
    return X, np.eye(3), np.ones(3), (0.0, 30.0)


def off(model, truth):
    """By how much a covariance is off, in coordinates where the true one is the identity."""
    white = np.linalg.inv(np.linalg.cholesky(truth))
    return np.linalg.norm(white @ model.covariance_ @ white.T - np.eye(len(truth)))


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_covariances_of_days(law):
    """Days of which hardly one shows its covariance make one that is near that of all rows."""
    for seed in range(3):
        X, truth, mean, bounds = table_of(law, 12_000, seed)
        model = FriendlyCovariance(bounds=bounds, random_state=seed)
        errors = []
        for rows in np.array_split(X, 30):
            errors.append(off(model.partial_fit(rows), truth))
        alone = off(FriendlyCovariance(bounds=bounds, random_state=seed).fit(X[:400]), truth)
        # A day of exponential columns is as good alone, by their own moments.
        part, most = {"normal": (0.5, 0.2), "exponential": (1.5, 0.9)}[law]
        assert errors[-1] < part * alone and errors[-1] < most
        assert model.days_.number == 30 and abs(model.size_ - 12_000) < 5 * model.size_std_error_
        assert np.all(np.abs(model.location_ - mean) < 5 * model.location_std_error_)
        assert np.all(np.abs(model.covariance_ - truth) < 5 * model.covariance_std_error_)
        assert np.all(model.location_std_error_ < 0.2 * np.sqrt(np.diag(truth)))
        assert model.trustworthy_ or law == "exponential"


def test_a_fit_before_days_may_be_left_out():
    rng = np.random.default_rng(0)
    model = FriendlyCovariance(bounds=10.0, random_state=0).fit(rng.normal(size=(20, 2)))
    model.partial_fit(rng.normal(size=(3000, 2)))
    assert model.messages_[0].code == "days_left_out" and model.status_ == "caution"
    assert "left out" not in str(model.fit(rng.normal(size=(3000, 2))).messages_)
