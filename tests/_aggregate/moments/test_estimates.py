"""From a release to the next guess: what clipping took away, shrinkage, pooling."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import estimates
from sklearn_dp._aggregate.moments.ellipsoid import normal_quantile
from sklearn_dp._aggregate.moments.moment_releases import MomentRelease


def test_clipping_is_undone():
    """separated_gaussians:C8: the share of the variance that survives."""

    def kept(share, d):
        return estimates.kept(normal_quantile(share, d), d)

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
            np.diag(estimates.unclip(clipped, square, 4)),
            t * np.array([1.1, 1.0, 1.0, 0.9]),
            atol=0.015,
        )


@pytest.mark.parametrize("mean", [[0.8], [0.8, 0.1], [0.5, -0.5, 0.5, 0.2, 0.0, 0.0]])
def test_the_noise_of_a_mean_and_a_count_is_in_the_products(mean):
    """No entry has more of it than is stated, some have it all; nor has the spectral norm."""
    rng, mean, noise, size = np.random.default_rng(0), np.array(mean), 1e-5, 1e4
    d = len(mean)
    for count_noise in (0.0, 0.3):
        release = MomentRelease(
            counts=np.array([size]),
            means=mean[None],
            seconds=np.eye(d)[None],
            noise=np.zeros(1),
            sizes=np.array([size]),
            mean_noise=np.array([noise]),
            count_noise=count_noise,
            fourths=None,
        )
        entry, norm = estimates.noise_of_products(release, 0)
        counts = size / (size + count_noise * rng.normal(size=20_000))
        means = mean * counts[:, None] + noise * rng.normal(size=(20_000, d))
        # Second moments of m m^T: rows that are all in one place have no variance.
        found = np.einsum("n,a,b->nab", counts, mean, mean) - np.einsum("na,nb->nab", means, means)
        stated = entry * np.where(np.eye(d, dtype=bool), 1.0, np.sqrt(0.5))
        assert np.all(found.std(axis=0) < 1.02 * stated)
        assert np.max(found.std(axis=0) / stated) > 0.7
        norms = np.linalg.norm(found, ord=2, axis=(1, 2))
        assert 0.95 < np.mean(norms < norm) < 0.9999
