"""DPCoreset: released points that anything may be run on."""

import warnings

import numpy as np
import pytest

from sklearn_dp import DPCoreset
from sklearn_dp.audit import replay_audit


def mixture(n, d, k=8, seed=0):
    """Round clusters, six standard deviations apart or more."""
    rng = np.random.default_rng(seed)
    centers = 12.0 * rng.permutation(np.indices((2,) * max(d, 4)).reshape(max(d, 4), -1).T)[:k, :d]
    centers += rng.uniform(-3, 3, centers.shape)
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def flat():
    X = mixture(10_000, 2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X, DPCoreset(epsilon=1.0, bounds=(-6.0, 20.0), random_state=0).fit(X)


# -- its methods -----------------------------------------------------------------------------------


def test_the_seed_of_a_sample_is_no_noise():
    """No warning, no other report; None is another sample each time."""
    coreset = DPCoreset(epsilon=1.0, bounds=20.0).fit(mixture(3000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (coreset.sample(5, random_state=3) for _ in range(2))
        assert np.array_equal(first, second)
        assert not np.array_equal(coreset.sample(5), coreset.sample(5))
        for state in (np.random.RandomState(0), np.random.default_rng(0)):
            assert coreset.sample(random_state=state).shape == (1, 2)
    assert "seed" not in str(coreset.privacy_report_).lower()


@pytest.mark.parametrize("n", [0, -1, 1.5, "many", 10**12])
def test_bad_numbers_of_samples(flat, n):
    with pytest.raises((ValueError, TypeError), match="n_samples"):
        flat[1].sample(n)


# -- privacy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "bounds"), [(2, None), (5, 4.0), (12, 4.0)])
def test_replay(d, bounds):
    """Rows and groups, with little noise so that there are many cells."""
    X = mixture(90, d, 3) / 10
    estimator = DPCoreset(4, epsilon=60.0, bounds=bounds)
    result = replay_audit(estimator, X)
    result += replay_audit(estimator, X, groups=np.arange(90) // 3, strangers=False)
    assert result.violations == []
    assert {"sum and count", "radius", "cells", "cell means"} <= set(result.ratios)
