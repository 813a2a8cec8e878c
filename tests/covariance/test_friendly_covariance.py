"""FriendlyCovariance, and the whitened moments under it."""

import numpy as np
import pytest

from sklearn_dp.covariance import FriendlyCovariance


def normal(n, d, condition, scale=1.0, shift=0.0, seed=0):
    """Rows of a rotated normal law, and its covariance."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = scale * np.sqrt(np.geomspace(1, 1 / condition, d))
    X = (rng.normal(size=(n, d)) * scales) @ rotation.T + shift * scale
    return X, (rotation * scales**2) @ rotation.T


def error(covariance, estimate):
    """|S^-1/2 Shat S^-1/2 - I|_F."""
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    return np.linalg.norm(inverse @ estimate @ inverse.T - np.eye(len(covariance)))


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
@pytest.mark.parametrize("scale, shift", [(1e-3, 0.0), (1e6, 0.0), (1.0, 1000.0)])
def test_any_scale_place_and_condition_without_bounds(condition, scale, shift):
    """The issue's target is 0.126 in the mean; 0.105 is the error without privacy."""
    X, truth = normal(10000, 10, condition, scale, shift)
    model = FriendlyCovariance(rho=0.5, random_state=0).fit(X)
    plain = error(truth, np.cov(X.T))
    assert model.trustworthy_
    assert error(truth, model.covariance_) < 1.15 * plain
    shift = model.location_ - X.mean(axis=0)
    assert shift @ np.linalg.solve(truth, shift) < 0.03**2 * 10


# -- audits and mutants -------------------------------------------------------------------------


def test_moments_about_an_origin_outside_of_the_bounds():
    """The ball of the rows holds the origin too, and rows are clipped to the bounds."""
    X = np.random.default_rng(0).uniform(900.0, 1001.0, size=(4000, 3))
    model = FriendlyCovariance(bounds=(1000.0, 1001.0), assume_centered=True, random_state=0).fit(X)
    squares = np.square(np.clip(X, 1000.0, 1001.0)).mean(axis=0)
    np.testing.assert_allclose(np.diag(model.covariance_), squares, rtol=1e-3)
