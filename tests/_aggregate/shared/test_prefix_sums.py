"""Noisy prefix sums: the factors of the matrix of sums, and the noise."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared import prefix_sums as module
from sklearn_dp._aggregate.shared.prefix_sums import noisy_prefix_sums, prefix_noise
from sklearn_dp._privacy._plan import Mechanism, PlanEntry
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


@pytest.mark.parametrize(("n", "length"), [(50, 1.53), (1024, 1.81)])
def test_no_column_of_the_root_is_longer_than_the_first(n, length):
    """The sensitivity: columns are shifts of the first one, as they are released."""
    encode, decode = module._factors(n)
    root = np.array([np.convolve(unit, encode)[:n] for unit in np.eye(n, dtype=int)]).T
    lengths = np.square(root).sum(axis=0)
    assert lengths.max() == lengths[0] == int(np.square(encode).sum())
    np.testing.assert_allclose(decode @ root / 2**10, np.tril(np.ones((n, n))), atol=1e-9)
    assert np.sqrt(lengths[0]) / 2**10 < length
    assert np.linalg.norm(decode, axis=1).max() < length


def test_sums_are_right_and_have_the_noise_that_they_are_said_to_have():
    """2,000 sums of 40 histograms, of noise of a scale: 5 sd of each mean, 8 % of all squares.

    The noise of 40 histograms is independent: about 2,000 / 6 squares that count, an error of 8 %
    at one sd for sums that move together; 35 % off has probability 1e-5 at the seed that is fixed.
    """
    counts = np.random.default_rng(0).integers(0, 50, (40, 50))
    session = open_session(PlanEntry("it", Mechanism.GAUSSIAN, 0.5), rho=0.5)
    sums, sigma = noisy_prefix_sums(session, "it", counts, Units(1000), 0.5)
    sd = sigma * np.linalg.norm(prefix_noise(50), axis=1)
    off = (sums - counts.cumsum(axis=1)) / sd
    assert np.abs(off.mean(axis=0)).max() < 5 / np.sqrt(40)
    assert 0.65 < np.square(off).mean() < 1.35
