"""Dendrograms: the branches are merges, the names have sizes, and the cut is where it is said."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from sklearn_dp import DPCoreset, DPKMeans, DPTopics
from sklearn_dp.cluster import ClusterHierarchy
from sklearn_dp.inspection import HierarchyDisplay
from sklearn_dp.inspection._style import MUTED

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


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_a_cut_colors_the_clusters_that_it_leaves(model, n_clusters):
    ax = Figure().subplots()
    display = HierarchyDisplay.from_estimator(model, n_clusters=n_clusters, ax=ax)
    (place, _) = display.cut_.get_xdata()
    tree = ClusterHierarchy.from_estimator(model)
    assert (tree.distances_ > place).sum() == n_clusters - 1
    above = [line for line in display.branches_ if line.get_xdata().max() > place]
    assert len(above) == n_clusters - 1 and {line.get_color() for line in above} == {MUTED}
    colors = {}
    for label in ax.get_yticklabels():
        cluster = tree.cut(n_clusters).labels[int(label.get_text().split(":")[0].split()[1])]
        colors.setdefault(cluster, set()).add(to_hex(label.get_color()))
    assert all(len(each) == 1 for each in colors.values())
    assert len(set.union(*colors.values())) == n_clusters
    assert ax.get_legend().get_texts()[0].get_text() == f"cut: {n_clusters} clusters"


def test_many_points_are_drawn_as_their_last_merges(rows):
    noise = np.random.default_rng(0).normal(size=rows.shape) * 0.1
    coreset = DPCoreset(20, epsilon=8.0, bounds=1.5, random_state=0).fit(rows + noise)
    assert len(coreset.points_) > 40
    display = HierarchyDisplay.from_estimator(coreset, n_clusters=5, ax=Figure().subplots())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(names) == 40 and any(" merged:  " in name for name in names)
    assert len(display.branches_) == 39 and "±" not in "".join(names)
    display.figure_.canvas.draw()


def test_topics_have_their_labels():
    subjects = np.repeat([0, 1, 2], [600, 900, 400])
    texts = [["<b>tea", "cup"], ["$x$ & $y$", "code"], ["rare"]]
    model = DPTopics(3, epsilon=20.0, random_state=0)
    model.fit(np.eye(3)[subjects], texts=[texts[s] for s in subjects])
    ax = HierarchyDisplay.from_estimator(model, ax=Figure().subplots()).ax_
    names = {label.get_text().split(":")[0] for label in ax.get_yticklabels()}
    assert r"\$x\$ & \$y\$, code" in names
    ax.figure.canvas.draw()  # a dollar sign is no formula


def test_equal_centers_are_drawn():
    tree = ClusterHierarchy(np.ones((3, 2)), [1.0, 2.0, 3.0])
    display = HierarchyDisplay(tree, ["a", "b", "c"], "Equal", 2).plot(Figure().subplots())
    assert len(display.branches_) == 2


def test_bad_input(model, rows):
    for wrong in (1, 6):
        with pytest.raises(ValueError, match="n_clusters"):
            HierarchyDisplay.from_estimator(model, n_clusters=wrong)
    one = DPKMeans(1, bounds=1.5, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="estimator: a dendrogram needs two clusters"):
        HierarchyDisplay.from_estimator(one)
    with pytest.raises(TypeError, match="estimator must be"):
        HierarchyDisplay.from_estimator(rows)
    with pytest.raises(TypeError, match="ax must be axes"):
        HierarchyDisplay.from_estimator(model, ax=3)
