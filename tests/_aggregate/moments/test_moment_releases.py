"""From a release to the next guess: what clipping took away, shrinkage, pooling."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import moment_releases
from sklearn_dp._aggregate.moments.ellipsoid import normal_quantile


def test_clipping_is_undone():
    """separated_gaussians:C8: the share of the variance that survives."""

    def kept(share, d):
        return moment_releases.kept(normal_quantile(share, d), d)

    assert kept(0.9, 10) == pytest.approx(0.968, abs=5e-4)
    assert kept(0.5, 10) == pytest.approx(0.7936, abs=5e-5)
    for share in (0.1, 0.5, 0.7, 0.9, 0.99):  # in two dimensions, the share itself
        assert kept(share, 2) == pytest.approx(share, rel=1e-12)
    rng = np.random.default_rng(0)
    for t in (0.5, 1.0, 1.3):
        Z = rng.normal(size=(400000, 4)) * np.sqrt(t * np.array([1.1, 1.0, 1.0, 0.9]))
        square = normal_quantile(0.9, 4)
        factor = np.minimum(1, np.sqrt(square / np.sum(Z**2, axis=1)))
        clipped = (Z * factor[:, None]).T @ (Z * factor[:, None]) / len(Z)
        assert np.allclose(
            np.diag(moment_releases.unclip(clipped, square, 4)),
            t * np.array([1.1, 1.0, 1.0, 0.9]),
            atol=0.015,
        )
