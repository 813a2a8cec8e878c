"""Releases of second moments of whitened rows."""

import numpy as np

from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.covariance import FriendlyCovariance


def normal(n, d, condition, scale=1.0, shift=0.0, seed=0):
    """Rows of a rotated normal law, and its covariance."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = scale * np.sqrt(np.geomspace(1, 1 / condition, d))
    X = (rng.normal(size=(n, d)) * scales) @ rotation.T + shift * scale
    return X, (rotation * scales**2) @ rotation.T


def test_noise_is_symmetric_and_the_plan_is_kept():
    X = normal(3000, 4, 5.0)[0]
    recorder = Trace()
    with trace(recorder):
        model = FriendlyCovariance(epsilon=1.0, random_state=1).fit(X)
    paid = sum(event.cost for event in recorder.events)
    assert paid <= model.privacy_plan(4).rho and paid > 0.97 * model.privacy_plan(4).rho
    moments = [event for event in recorder.events if event.entry == "component moments"]
    assert all(event.output.shape == (1, 10) for event in moments) and len(moments) >= 2
