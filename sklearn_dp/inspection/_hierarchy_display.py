"""The tree of released clusters as a dendrogram, with their sizes and a cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from .._base import BaseDPEstimator, check_integer
from ..cluster import ClusterHierarchy, DPTopics
from ._style import (
    COLORS,
    INK,
    MUTED,
    OTHER,
    axes_for,
    legend_above,
    noisy_number,
    plain_text,
    title,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HierarchyDisplay"]

_MOST_LEAVES = 40
_ABOVE = -1  # the cut: in no cluster
_OF_CLUSTERS = [color for color in COLORS if color not in (MUTED, OTHER, INK)]


class HierarchyDisplay:
    """Dendrogram of released clusters: which ones are merged first, and how far apart they are.

    Use :meth:`from_estimator`, which draws, and returns the display.

    Parameters
    ----------
    hierarchy : ClusterHierarchy
        Of two clusters or more.
    names : sequence of str
        Of the clusters of the fit.
    heading : str
        Title of the plot.
    n_clusters : int or None
        Where the tree is cut; None: no cut is shown.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the tree was drawn.
    figure_ : matplotlib Figure
        Of these axes.
    branches_ : list of matplotlib Line2D
        One bracket for each merge.
    cut_ : matplotlib Line2D or None
        The cut. Clusters that it leaves have the colors of their branches and names.

    Notes
    -----
    Centers and weights have been released, so the plot may be published. Sizes have 95%
    intervals for their noise where the fit has them. A merge is as far to the right as its Ward
    distance, the root of twice what it adds to the sum of squares. Above 40 clusters only the last
    merges are drawn, with a line for each cluster before them.

    Examples
    --------
    >>> from sklearn_dp.inspection import HierarchyDisplay
    >>> display = HierarchyDisplay.from_estimator(model, n_clusters=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        hierarchy: ClusterHierarchy,
        names: list[str],
        heading: str,
        n_clusters: int | None = None,
    ) -> None:
        self.hierarchy = hierarchy
        self.names = names
        self.heading = heading
        self.n_clusters = n_clusters

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseDPEstimator,
        *,
        n_clusters: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the hierarchy of the clusters of a fitted estimator.

        Parameters
        ----------
        estimator : BaseDPEstimator
            Fitted, one of those that :class:`sklearn_dp.cluster.ClusterHierarchy` takes, with two
            clusters or more. Topics are called by their labels.
        n_clusters : int, optional
            Where to show a cut: the number of clusters below it, at least 2.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : HierarchyDisplay
            Drawn.
        """
        hierarchy = ClusterHierarchy.from_estimator(estimator)
        k = len(hierarchy.weights)
        if k < 2:
            raise ValueError("estimator: a dendrogram needs two clusters or more.")
        if n_clusters is not None:
            check_integer(n_clusters, "n_clusters", low=2, high=min(k, _MOST_LEAVES))
        word = "cluster" if hasattr(estimator, "cluster_centers_") else "point"
        names = [f"{word} {i}" for i in range(k)]
        if isinstance(estimator, DPTopics):
            names = [plain_text(topic.label) for topic in estimator.topics_]
        epsilon = estimator.privacy_report_.epsilon
        heading = f"{type(estimator).__name__}: hierarchy at ε = {epsilon:.3g}"
        return cls(hierarchy, names, heading, n_clusters).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the tree, from its leaves at the left to its root.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : HierarchyDisplay
            With the artists as attributes.
        """
        tree, (clusters, sizes) = self.hierarchy, self._nodes()
        shown = min(len(tree.weights), _MOST_LEAVES)
        ax = axes_for(ax, (7.2, 1.3 + 0.22 * shown))
        self.ax_, self.figure_ = ax, ax.figure
        found = dendrogram(
            tree.linkage_, p=shown, truncate_mode="lastp", no_plot=True, link_color_func=str
        )
        leaves, nodes = found["leaves"], [int(node) for node in found["color_list"]]
        # In the order of the picture, so that neighbors differ.
        order = list(dict.fromkeys(clusters[leaves].tolist()))
        colors = {cluster: _OF_CLUSTERS[i % len(_OF_CLUSTERS)] for i, cluster in enumerate(order)}
        colors[_ABOVE] = MUTED
        brackets = zip(found["dcoord"], found["icoord"], nodes, strict=True)
        self.branches_: Any = [
            ax.plot(x, y, color=colors[clusters[node]], lw=1.5)[0] for x, y, node in brackets
        ]
        self.cut_: Any = None
        if self.n_clusters is not None:
            ends = np.append(0.0, tree.distances_)[-self.n_clusters :][:2]
            words = f"cut: {self.n_clusters} clusters"
            self.cut_ = ax.axvline(ends.mean(), color=OTHER, lw=1.2, ls="--", label=words)
            legend_above(ax, columns=1)
        ax.set_yticks(
            10.0 * np.arange(shown) + 5, [self._name(i, *sizes[i]) for i in leaves], fontsize=8.5
        )
        for label, leaf in zip(ax.get_yticklabels(), leaves, strict=True):
            label.set_color(colors[clusters[leaf]] if self.cut_ else INK)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(0, 1.04 * tree.distances_[-1] or 1.0), ylim=(0, 10 * shown))
        ax.set_xlabel("Ward distance")
        title(ax, self.heading, lines_below=int(self.cut_ is not None))
        return self

    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each node of the tree: its cluster, and its size, error and number of leaves."""
        tree, k = self.hierarchy, len(self.hierarchy.weights)
        clusters = np.full(2 * k - 1, _ABOVE if self.n_clusters else 0)
        clusters[:k] = tree.cut(self.n_clusters).labels if self.n_clusters else 0
        noise = np.zeros(k) if tree.weights_std_error is None else tree.weights_std_error
        sums = np.zeros((2 * k - 1, 3))
        sums[:k] = np.column_stack([tree.weights, np.square(noise), np.ones(k)])
        for node, (first, second) in enumerate(tree.children_, start=k):
            sums[node] = sums[first] + sums[second]
            if clusters[first] == clusters[second]:
                clusters[node] = clusters[first]
        sums[:, 1] = np.sqrt(sums[:, 1])
        return clusters, sums

    def _name(self, node: int, size: float, error: float, leaves: float) -> str:
        """What a leaf of the picture is called, with its size."""
        name = f"{leaves:.0f} merged" if leaves > 1 else self.names[node]
        interval = f" ± {1.96 * error:,.0f}" if error else ""
        return f"{name}:  {noisy_number(size, error)}{interval}"
