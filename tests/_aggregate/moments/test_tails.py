"""Clips of the last round: what counts of distances tell, and what is made of them."""

import numpy as np
import pytest
from scipy.special import chdtr

from sklearn_dp._aggregate.moments import tails
from sklearn_dp._aggregate.moments.ellipsoid import normal_quantile


def edges_of(d):
    near = np.sqrt([normal_quantile(q, d) for q in tails._QUANTILES])
    return np.concatenate([[0.0], near, near[-1] * 2.0 ** (np.arange(1, 9) / 2)])


@pytest.mark.parametrize("d", [1, 4, 20])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3])
def test_a_normal_law_of_any_scale_is_normal_and_its_tails_are_not(d, scale):
    """Expected counts of 20,000 rows: of the normal law, and with 3% of them twice as far out."""
    edges = edges_of(d)
    near, far = (20000 * np.diff(chdtr(d, np.square(edges) / s**2)) for s in (scale, 3 * scale))
    assert tails._normal(near, edges, 25.0, d) and abs(tails._heavier(near, edges, 25.0, d)) < 1e-6
    assert not tails._normal(0.95 * near + 0.05 * far, edges, 25.0, d)
