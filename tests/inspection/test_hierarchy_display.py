"""Dendrograms: the branches are merges, the names have sizes, and the cut is where it is said."""

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp.cluster import ClusterHierarchy
from sklearn_dp.inspection import HierarchyDisplay

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    places = np.array([[-0.7, 0.0], [-0.6, 0.2], [0.5, -0.5], [0.6, -0.4], [0.65, 0.7]])
    return places.repeat(2000, axis=0) + rng.normal(size=(10_000, 2)) * 0.01


@pytest.fixture(scope="module")
def model(rows):
    return DPKMeans(5, epsilon=4.0, bounds=1.5, random_state=0).fit(rows)


def test_a_branch_for_each_merge_and_a_name_for_each_cluster(model):
    ax = Figure().subplots()
    display = HierarchyDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure and display.cut_ is None
    ends = sorted(line.get_xdata().max() for line in display.branches_)
    np.testing.assert_allclose(ends, ClusterHierarchy.from_estimator(model).distances_)
    names = [label.get_text() for label in ax.get_yticklabels()]
    half = 1.96 * model.cluster_weights_std_error_
    assert len(names) == 5
    for i, name in enumerate(sorted(names)):
        assert name.startswith(f"cluster {i}:") and name.endswith(f" ± {half[i]:,.0f}")
    assert "ε = 4" in ax.get_title(loc="left") and ax.get_legend() is None
