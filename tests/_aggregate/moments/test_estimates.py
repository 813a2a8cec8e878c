"""From a release to the next guess: what clipping took away, shrinkage, pooling."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import estimates
from sklearn_dp._aggregate.moments.ellipsoid import Ellipsoid, normal_quantile
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


def test_noise_makes_no_scale_of_its_own_where_it_is_known():
    """A trace that noise brings near the largest there can be was one of four times the scale."""
    square = normal_quantile(0.7, 4)
    left = estimates.kept(square, 4)

    def scale(trace, **known):
        return float(np.trace(estimates.unclip(trace * np.eye(4), square, 4, **known))) / 4

    for trace in (0.5 * left, 0.9 * left, left):
        assert scale(trace, known=True) == scale(trace)
    assert scale(1.02 * left, known=True) == pytest.approx(scale(1.02 * left), rel=2e-3)
    assert scale(0.99 * square / 4) > 4 and 1.7 < scale(0.99 * square / 4, known=True) < 2.2


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


def test_a_change_that_may_be_noise_is_taken_back():
    """Noise of the size that is claimed shrinks to next to nothing; a real change stays."""
    rng, d, noise = np.random.default_rng(0), 12, 0.1
    entries = noise * np.sqrt(0.5) * rng.normal(size=(d, d))
    second = np.eye(d) + np.triu(entries, 1) + np.triu(entries, 1).T
    second += np.diag(noise * rng.normal(size=d))
    found = estimates.shrunk(second, noise, d, "full")
    assert np.linalg.norm(found - np.eye(d)) < 0.4 * np.linalg.norm(second - np.eye(d))
    wide = np.diag(np.linspace(1.0, 9.0, d))
    assert np.allclose(estimates.shrunk(wide, noise, d, "full"), wide, rtol=0.01)


def test_rounds_are_pooled_by_their_noise():
    """An earlier release with a tenth of the noise, in other coordinates, counts nearly alone."""
    past, d = [], 3
    wide = Ellipsoid(np.zeros(d), np.eye(d), np.full(d, 2.0), 9.0)
    narrow = Ellipsoid(np.zeros(d), np.eye(d), np.ones(d), 9.0)
    first, _ = estimates.pooled(past, narrow, np.diag([4.0, 4.0, 4.0]), 1e-4)
    assert np.allclose(first, 4 * np.eye(d))
    second, noise = estimates.pooled(past, wide, np.diag([3.0, 3.0, 3.0]), 1.0)
    assert np.allclose(second, np.eye(d), atol=0.01) and noise < 0.1
