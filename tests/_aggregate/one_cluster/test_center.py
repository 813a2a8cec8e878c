"""The first ball: projections, a heavy point, and when boxes are counted in a sample."""

import math

import numpy as np
import pytest
from kernel_tools import spending
from scipy.spatial.distance import cdist

from sklearn_dp._aggregate.one_cluster import center as _good_center
from sklearn_dp._costs.plan import PlanEntry


def test_projections_keep_distances_with_the_logarithm_to_base_two():
    n = 60
    k = math.ceil(46 * math.log2(2 * n / 0.1))
    points = np.random.default_rng(9).normal(size=(n, 100))
    for seed in range(10):
        signs = _good_center.signs(spending(PlanEntry("a", "gaussian", 1.0), seed=seed), 100, k)
        ratio = (
            cdist(points @ signs.T / math.sqrt(k), points @ signs.T / math.sqrt(k))
            / np.maximum(cdist(points, points), 1e-9)
        )[np.triu_indices(n, 1)] ** 2
        assert ratio.min() > 0.5 and ratio.max() < 1.5


def test_boxes_are_counted_in_a_sample_where_there_are_very_many_rows():
    """Rates are functions of releases; a small cluster, or much noise, keeps more rows."""
    box = PlanEntry("box", "stability histogram", 0.02, 1e-6)  # noise of 5 standard deviations

    def kept(size, target):
        return size * _good_center.rate_of_boxes(spending(box), "", size, target)

    assert kept(2.0**20, 100) == 2.0**20 and kept(1000.0, 10) == 1000.0 and kept(-3.0, 1) == -3.0
    assert kept(1e9, 1e8) == pytest.approx(2.0**20)
    assert kept(1e9, 1e5) == pytest.approx(1e9 / 1e5 * 200 * 5)  # a thousand of the cluster
    assert kept(1e9, 10) == 1e9
