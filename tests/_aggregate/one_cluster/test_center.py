"""Boxes: cuts, fullest boxes, names, projections."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from sklearn_dp._aggregate.one_cluster import (
    center as _good_center,
)
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.01), entries), random_state=seed
    )


def test_probability_that_a_grid_does_not_cut_a_segment():
    """(1 - w/l)^k = 0.349 at k = 10 and w/l = 0.1; 5000 shifts; false alarms at 1e-6."""
    rng = np.random.default_rng(6)
    ends = np.stack([np.zeros(10), np.full(10, 0.1)])
    whole = sum(
        (_good_center.boxes(ends, shift, 1.0)[0] == _good_center.boxes(ends, shift, 1.0)[1]).all()
        for shift in rng.random((5000, 10))
    )
    assert stats.binomtest(whole, 5000, 0.9**10).pvalue > 1e-6


def test_fullest_box_moves_by_at_most_one():
    rng = np.random.default_rng(7)
    for _ in range(300):
        cells = rng.integers(-2, 3, (rng.integers(1, 40), 2))
        exact = np.unique(cells, axis=0, return_counts=True)[1].max()
        assert _good_center.fullest(cells) == exact
        assert exact - _good_center.fullest(cells[1:]) in (0, 1)
    assert _good_center.fullest(np.empty((0, 3), dtype=int)) == 0


def test_heavy_cells_keep_their_names():
    cells = np.repeat(np.array([[-3, 2**40, 0], [5, -1, -(2**40)]]), [400, 300], axis=0)
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    found = _good_center.heaviest(session, "box", cells, 1.0, 1e-6, False)
    assert found.tolist() == [-3, 2**40, 0]
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    assert _good_center.heaviest(session, "box", cells[:0], 1.0, 1e-6, False) is None


def test_projections_keep_distances_with_the_logarithm_to_base_two():
    n = 60
    k = math.ceil(46 * math.log2(2 * n / 0.1))
    points = np.random.default_rng(9).normal(size=(n, 100))
    for seed in range(10):
        signs = _good_center.signs(open_session(PlanEntry("a", "gaussian", 1.0), seed=seed), 100, k)
        ratio = (
            cdist(points @ signs.T / math.sqrt(k), points @ signs.T / math.sqrt(k))
            / np.maximum(cdist(points, points), 1e-9)
        )[np.triu_indices(n, 1)] ** 2
        assert ratio.min() > 0.5 and ratio.max() < 1.5
