"""FriendlyCovariance, and the whitened moments under it."""

import numpy as np

from sklearn_dp.covariance import FriendlyCovariance


def normal(n, d, condition, scale=1.0, shift=0.0, seed=0):
    """Rows of a rotated normal law, and its covariance."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = scale * np.sqrt(np.geomspace(1, 1 / condition, d))
    X = (rng.normal(size=(n, d)) * scales) @ rotation.T + shift * scale
    return X, (rotation * scales**2) @ rotation.T


# -- audits and mutants -------------------------------------------------------------------------


def test_moments_about_an_origin_outside_of_the_bounds():
    """The ball of the rows holds the origin too, and rows are clipped to the bounds."""
    X = np.random.default_rng(0).uniform(900.0, 1001.0, size=(4000, 3))
    model = FriendlyCovariance(bounds=(1000.0, 1001.0), assume_centered=True, random_state=0).fit(X)
    squares = np.square(np.clip(X, 1000.0, 1001.0)).mean(axis=0)
    np.testing.assert_allclose(np.diag(model.covariance_), squares, rtol=1e-3)
