"""Caps on distances: what is seen beyond them, and what they may take."""

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.caps import beyond_cap, seen_beyond
from sklearn_dp._privacy._aggregates import NoisyNorms

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_noise_is_seldom_seen():
    """28 empty bins: of 2,000 histograms of noise, 75 windows each, few show any rows at all. A
    normal number beyond 3.5 has the chance 2.3e-4, so 35 are expected at most."""
    rng = np.random.default_rng(0)
    seen = [
        seen_beyond(NoisyNorms(20.0 * rng.normal(size=28), np.arange(29.0), 20.0), 0.0)
        for _ in range(2000)
    ]
    assert sum(each is not None for each in seen) < 60


def _norms(law, sd=0.0):
    """Numbers of rows in bins of a third of an octave, from a law of how many are farther out."""
    edges = np.append(0.0, 2.0 ** (np.arange(-12, 16) / 3))
    beyond = np.append(law(edges[:-1]), 0.0)
    return NoisyNorms(beyond[:-1] - beyond[1:], edges, sd)


@pytest.mark.parametrize("power", [2.5, 3.0, 6.0])
def test_a_power_law_beyond_the_cap_is_found(power):
    """N(r) = 1000 r^-p: beyond 2, the integral of 2 r N(r) dr up to the last edge."""
    seen = _norms(lambda r: 1000 * np.maximum(r, 0.1) ** -power)
    end = seen.edges[-1]
    exact = 2000 * (2 ** (2 - power) - end ** (2 - power)) / (power - 2)
    assert beyond_cap(seen, 2.0, 0.0) == pytest.approx(exact, rel=1e-9)


def test_what_noise_hides_beyond_the_cap_counts():
    """No row beyond 1: with noise of 10, three bins hide 10 sqrt(3) rows, with a tail of power 3.
    Far out 30 rows in each of 12 bins count only where the noise of the sum is less than that; and
    those of the last bin may be as far out as any row."""
    seen = _norms(lambda r: 5.0 * (r < 1), 10.0)
    end = seen.edges[-1]
    assert beyond_cap(seen, 1.0, 2 * end) == pytest.approx(2 * 10 * np.sqrt(3) * (1 - 1 / end))
    seen.counts[-12:] = 30.0
    m = int(np.count_nonzero(seen.edges[:-1] >= 1))
    assert 3 * 10 * np.sqrt(m) < 360
    assert beyond_cap(seen, 1.0, 2 * end) == pytest.approx(2 * 360 * np.log(2 * end))  # of power 2
    assert beyond_cap(seen._replace(sd=40.0), 1.0, end) < 2 * 40 * np.sqrt(3)
    assert 0 < beyond_cap(seen, 0.0, end) < np.inf  # no distance but zero
    heavy = beyond_cap(seen, 1.0, 2 * end, heavy=True)
    assert heavy == pytest.approx(2 * 360 * (2 * end - 1))  # of power 1
