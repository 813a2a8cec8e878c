"""Fits of both data sets, in this process and in others; planted deficits."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp.audit._certify import equal_rows, less_noise, run_pair

PAIR = equal_rows(3)


# All other tests of certificates run in this process.
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_releases_are_seen_and_the_noise_is_of_the_system(jobs):
    runs = run_pair(DPKMeans(1, bounds=1.0, rho=4.0), PAIR, 104, jobs=jobs)
    assert len({numbers["cluster_centers_[0]"] for numbers, _ in runs.rows}) == 104
    assert all("Seeded" not in words["warnings"] for _, words in runs.rows)
    # They are about N(3, 6) with the record and N(-3, 6) without: five deviations of a mean.
    assert runs.ratios[runs.is_other].mean() > 1 > -1 > runs.ratios[~runs.is_other].mean()


def test_less_noise_is_less_by_the_factor_in_every_law():
    """Seeded; 4000 numbers: five deviations of a spread are 6 percent."""

    def spreads(source=NoiseSource):
        noise = source(0)
        return [
            np.std(noise.rounded_gaussian(1e6, 4000)),
            np.mean(np.abs(noise.rounded_laplace(1e6, 4000))),
            np.mean([noise.exponential_choice(np.arange(100), 0.1) for _ in range(1000)]),
        ]

    before, during = spreads(), spreads(less_noise(4.0))
    np.testing.assert_allclose(np.divide(before, during)[:2], 4.0, rtol=0.06)
    # A choice falls off as exp(-rate index): 9.5 on average, and 2.0 with four times the rate.
    assert during[2] < before[2] / 3
