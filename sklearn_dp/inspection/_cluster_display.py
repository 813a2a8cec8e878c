"""Released centers, hierarchies and topics, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator, check_integer, check_real, read_table
from .._costs.numbers import warn
from .._costs.pages import document, framed
from .._door import read_vector
from .._parameters import by_name
from ..cluster import ClusterHierarchy, DPTopics, Topic
from ..exceptions import PrivacyWarning
from ._curve import (
    ACCENT,
    COLORS,
    INK,
    MUTED,
    OTHER,
    PALE,
    Display,
    has_matplotlib,
    legend_above,
    noisy_number,
    plain_text,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_MARK, _SMALLEST_MARK = 70.0, 14.0  # areas of marks, in square points


@dataclass(eq=False, repr=False)
class ClusterDisplay(Display):
    """Plot of the centers of a private fit, with the uncertainty that the fit has released.

    Use :meth:`from_estimator`, which draws, and returns the display.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, 2)
        Two coordinates of the released centers.
    errors : ndarray of shape (n_clusters, 2) or None
        Half the width of their confidence intervals.
    weights : ndarray of shape (n_clusters,) or None
        Released; the area of a mark grows with them.
    rows : ndarray of shape (n_samples, 2) or None
        Drawn below the centers.
    heading : str
        Title of the plot.
    axis_labels : pair of str
        Names of the two coordinates.
    rows_label : str, default="public rows"
        What the rows are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the centers were drawn.
    figure_ : matplotlib Figure
        Of these axes.
    centers_ : matplotlib PathCollection
        The marks.
    errors_ : matplotlib ErrorbarContainer or None
        The intervals, one for each coordinate.
    rows_ : matplotlib PathCollection or None
        The rows below them.

    Notes
    -----
    Centers, weights and errors are released, so the plot may be published. Rows are not released:
    pass public or synthetic ones. If you pass private rows as `private_rows`, do not publish the
    plot, which says so.

    Examples
    --------
    >>> from sklearn_dp.inspection import ClusterDisplay
    >>> display = ClusterDisplay.from_estimator(model, X_public)  # doctest: +SKIP
    """

    centers: np.ndarray
    errors: np.ndarray | None
    weights: np.ndarray | None
    rows: np.ndarray | None
    heading: str
    axis_labels: tuple[str, str]
    rows_label: str = "public rows"

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseDPEstimator,
        X_public: ArrayLike | None = None,
        *,
        private_rows: ArrayLike | None = None,
        features: tuple[int, int] = (0, 1),
        level: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the released centers of a fitted estimator.

        Parameters
        ----------
        estimator : BaseDPEstimator
            Fitted, with `cluster_centers_` or `means_`.
        X_public : array-like of shape (n_samples, n_features), optional
            Public or synthetic rows to draw below the centers.
        private_rows : array-like of shape (n_samples, n_features), optional
            Private rows, in place of `X_public`. Then do not publish the plot.
        features : pair of int, default=(0, 1)
            The two columns to draw.
        level : float, default=0.95
            Level of the confidence interval of each coordinate separately.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : ClusterDisplay
            Drawn.

        Warns
        -----
        PrivacyWarning
            With `private_rows`.
        """
        if not isinstance(estimator, BaseDPEstimator):
            raise TypeError("estimator must be a fitted private estimator of this package.")
        check_is_fitted(estimator)
        name = "cluster_centers_" if hasattr(estimator, "cluster_centers_") else "means_"
        if not hasattr(estimator, name):
            kind = type(estimator).__name__
            raise TypeError(f"estimator: {kind} has no cluster_centers_ or means_.")
        centers = np.asarray(getattr(estimator, name))
        if not isinstance(features, (tuple, list)) or len(features) != 2:
            raise TypeError("features must be a pair of columns.")
        pair = [check_integer(f, "features", low=0, high=centers.shape[1] - 1) for f in features]
        if pair[0] == pair[1]:
            raise ValueError("features must be two different columns.")
        check_real(level, "level", low=0.0, high=1.0)
        names = vars(estimator).get("feature_names_in_")
        rows = _rows(X_public, private_rows, centers.shape[1], names)
        if private_rows is not None:
            warn(
                "the picture shows private rows: it is not private, so do not publish it",
                PrivacyWarning,
            )
        columns = getattr(
            estimator, "feature_names_in_", [f"feature {i}" for i in range(max(pair) + 1)]
        )
        report = estimator.privacy_report_
        return cls(
            centers[:, pair],
            _half_widths(estimator, name, level, pair),
            getattr(estimator, "cluster_weights_", getattr(estimator, "weights_", None)),
            None if rows is None else rows[:, pair],
            f"{type(estimator).__name__}: centers at ε = {report.epsilon:.3g}",
            (str(columns[pair[0]]), str(columns[pair[1]])),
            "public rows" if private_rows is None else "private rows: do not publish",
        ).plot(ax=ax)

    def _size(self) -> tuple[float, float]:
        return 5.6, 5.2

    def _draw(self, ax: Axes) -> None:
        self.rows_: Any = None
        self.errors_: Any = None
        x, y = read_table(self.centers, "centers").T
        if self.rows is not None:
            self.rows_ = ax.scatter(
                self.rows[:, 0], self.rows[:, 1],
                s=8, color=MUTED, alpha=0.4, lw=0, label=self.rows_label,
            )  # fmt: skip
        if self.errors is not None:
            self.errors_ = ax.errorbar(
                x, y, xerr=self.errors[:, 0], yerr=self.errors[:, 1], fmt="none", zorder=4,
                ecolor=OTHER, elinewidth=1.4, capsize=4, label="its confidence interval",
            )  # fmt: skip
        given = self.weights
        weights = np.ones(len(x)) if given is None else read_vector(given, "weights")
        # Noise may leave a weight at zero or below; the most is at least something.
        shares = np.clip(weights, 0, None) / max(float(weights.max()), 1e-300)
        areas = _SMALLEST_MARK + (_LARGEST_MARK - _SMALLEST_MARK) * shares
        self.centers_: Any = ax.scatter(
            x, y, s=areas, color=ACCENT, edgecolor="white", lw=0.8, zorder=3,
            label="released center",
        )  # fmt: skip
        ax.set_xlabel(self.axis_labels[0])
        ax.set_ylabel(self.axis_labels[1])
        title(ax, self.heading, lines_below=1)
        legend_above(ax, columns=3)


def _rows(
    X_public: ArrayLike | None, private_rows: ArrayLike | None, n_features: int, names: Any
) -> np.ndarray | None:
    """The rows to be drawn below the centers, if any; private ones have a name of their own."""
    if X_public is not None and private_rows is not None:
        raise TypeError("X_public and private_rows: give at most one of them.")
    name = "X_public" if private_rows is None else "private_rows"
    given = X_public if private_rows is None else private_rows
    if given is None:
        return None
    rows = read_table(given if names is None else by_name(given, names, name), name)
    if rows.shape[1] != n_features:
        raise ValueError(f"{name} must have as many columns as the centers.")
    return rows


def _half_widths(estimator: Any, name: str, level: float, pair: list[int]) -> np.ndarray | None:
    """Half widths of released confidence intervals or None; zero where not finite."""
    if getattr(estimator, f"{name}std_error_", None) is None:
        return None
    low, high = estimator.confidence_interval(level=level, attribute=name)
    widths = (np.asarray(high) - np.asarray(low)) / 2
    return np.where(np.isfinite(widths), widths, 0.0)[:, pair]


# -- hierarchy display -----------------------------------------------------------------------------


_MOST_LEAVES = 40
_ABOVE = -1  # the cut: in no cluster
_OF_CLUSTERS = [color for color in COLORS if color not in (MUTED, OTHER, INK)]


@dataclass(eq=False, repr=False)
class HierarchyDisplay(Display):
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

    hierarchy: ClusterHierarchy
    names: list[str]
    heading: str
    n_clusters: int | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseDPEstimator, *, n_clusters: int | None = None, ax: Axes | None = None
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

    def _shown(self) -> int:
        return min(len(self.hierarchy.weights), _MOST_LEAVES)

    def _size(self) -> tuple[float, float]:
        return 7.2, 1.3 + 0.22 * self._shown()

    def _draw(self, ax: Axes) -> None:
        tree, (clusters, sizes) = self.hierarchy, self._nodes()
        shown = self._shown()
        drawn = dendrogram(
            tree.linkage_, p=shown, truncate_mode="lastp", no_plot=True, link_color_func=str
        )
        leaves, nodes = drawn["leaves"], [int(node) for node in drawn["color_list"]]
        # In the order of the picture, so that neighbors differ.
        order = list(dict.fromkeys(clusters[leaves].tolist()))
        colors = {cluster: _OF_CLUSTERS[i % len(_OF_CLUSTERS)] for i, cluster in enumerate(order)}
        colors[_ABOVE] = MUTED
        brackets = zip(drawn["dcoord"], drawn["icoord"], nodes, strict=True)
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

    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the cluster of each node of the tree, and its size, error and number of leaves."""
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
        """Return the name of a leaf of the picture, with its size."""
        name = f"{leaves:.0f} merged" if leaves > 1 else self.names[node]
        interval = f" ± {1.96 * error:,.0f}" if error else ""
        return f"{name}:  {noisy_number(size, error)}{interval}"


# -- topic display ---------------------------------------------------------------------------------


_IN_PICTURE, _IN_PAGE = 5, 10  # keywords
_WORDS = {"noise": "size too noisy to use", "unnamed": "no keyword stands out"}
_STYLE = """<style>
.sk-dp-topics{display:grid;grid-template-columns:minmax(9em,1fr) minmax(6em,1fr) 3fr;gap:.5em 1em;
align-items:baseline}
.sk-dp-topics>b{overflow-wrap:anywhere}
.sk-dp-topics i{display:block;height:.55em;border-radius:.15em;background:#0072b2}
.sk-dp-topics .sk-dp-lost i{background:none;border:1px dashed var(--sklearn-color-text-muted)}
.sk-dp-topics small{color:var(--sklearn-color-text-muted);font-variant-numeric:tabular-nums}
.sk-dp-topics .sk-dp-words span{display:inline-block;margin-right:.9em}
</style>"""


@dataclass(eq=False, repr=False)
class TopicDisplay(Display):
    """Topics of a private fit, the largest first: a plot, and a page of HTML.

    Use :meth:`from_estimator`, which draws, and returns the display. :meth:`to_html` makes a page,
    which a notebook shows.

    Parameters
    ----------
    topics : sequence of Topic
        Released topics, in the order in which they are shown.
    n_hidden : int
        How many more topics there are.
    heading : str
        Title of plot and page.
    unit : str
        What is counted: "texts" or "groups".
    guarantee : str
        Sentence below the topics.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the topics were drawn.
    figure_ : matplotlib Figure
        Of these axes.
    bars_ : matplotlib BarContainer
        The sizes.
    errors_ : matplotlib ErrorbarContainer
        Their 95% confidence intervals, for the noise.

    Notes
    -----
    Everything that is shown has been released, so plot and page may be published.

    Examples
    --------
    >>> from sklearn_dp.inspection import TopicDisplay
    >>> display = TopicDisplay.from_estimator(model)  # doctest: +SKIP
    >>> page = display.to_html()  # doctest: +SKIP
    """

    topics: Sequence[Topic]
    n_hidden: int
    heading: str
    unit: str
    guarantee: str

    @classmethod
    def from_estimator(
        cls, estimator: DPTopics, *, n_topics: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the topics of a fitted estimator.

        Parameters
        ----------
        estimator : DPTopics
            Fitted.
        n_topics : int, optional
            How many topics to show, the largest; by default all whose size can be used, or
            one if there are none.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : TopicDisplay
            With the artists as attributes. If Matplotlib is not installed, nothing is drawn: pages
            do not need it.
        """
        if not isinstance(estimator, DPTopics):
            raise TypeError("estimator must be a fitted DPTopics.")
        check_is_fitted(estimator)
        topics = sorted(estimator.topics_, key=lambda topic: -topic.size)
        shown = max(1, sum(topic.status != "noise" for topic in topics))
        if n_topics is not None:
            shown = check_integer(n_topics, "n_topics", low=1)
        else:  # those of which something is known
            topics.sort(key=lambda topic: topic.status == "noise")
        report = estimator.privacy_report_
        unit = "text" if report.unit == "row" else report.unit
        display = cls(
            topics[:shown],
            len(topics[shown:]),
            f"Topics at ε = {report.epsilon:.3g}",
            f"{unit}s",
            f"The bars count {unit}s; the number next to a keyword, those that use it in the topic "
            f"(± {1.96 * estimator.word_count_std_error_:,.0f}). "
            f"({report.epsilon:.3g}, {report.delta:.2g})-differentially private for adding or "
            f"removing one {unit}.",
        )
        return display if ax is None and not has_matplotlib() else display.plot(ax)

    def _size(self) -> tuple[float, float]:
        return 8.0, 1.2 + 0.3 * len(self.topics)

    def _draw(self, ax: Axes) -> None:
        sizes = np.array([max(topic.size, 0.0) for topic in self.topics])
        errors = np.array([1.96 * topic.size_std_error for topic in self.topics])
        places = np.arange(len(sizes))[::-1]
        noisy = [topic.status == "noise" for topic in self.topics]
        self.bars_: Any = ax.barh(
            places, sizes, height=0.62, color=[PALE if each else ACCENT for each in noisy]
        )
        low = np.minimum(errors, sizes)
        self.errors_: Any = ax.errorbar(
            sizes, places, xerr=[low, errors], fmt="none", ecolor=INK, elinewidth=1.2, capsize=3
        )
        ax.set_yticks(places, [plain_text(topic.label) for topic in self.topics])
        end = float((sizes + errors).max())
        for place, size, error, topic in zip(places, sizes, errors, self.topics, strict=True):
            words = ", ".join(topic.keywords[3:_IN_PICTURE])
            words = "; ".join(filter(None, [words, _WORDS.get(topic.status)]))
            ax.text(
                size + error + 0.015 * end, place, plain_text(words), va="center", color=MUTED,
                fontsize=8.5,
            )  # fmt: skip
        ax.set(xlim=(0, 1.35 * end or 1.0), ylim=(-0.7, len(sizes) - 0.3))
        ax.set_xlabel(f"{self.unit}, with 95% confidence intervals" + self._more(" ({})"))
        ax.tick_params(axis="y", length=0)
        title(ax, self.heading)

    def _more(self, form: str) -> str:
        """Return the number of topics that are not shown, in words."""
        if not self.n_hidden:
            return ""
        return form.format(f"{self.n_hidden} more topic{'s' * (self.n_hidden > 1)} not shown")

    def _page(self) -> str:
        """Topics and notes: no script, and every word is escaped."""
        largest = max([topic.size for topic in self.topics] + [1e-300])
        lines = "".join(_line(topic, largest) for topic in self.topics)
        notes = [note for note in (self._more("{}."), self.guarantee) if note]
        return f'{_STYLE}<div class="sk-dp-topics">{lines}</div>' + "".join(
            f'<p class="sk-dp-note">{escape(note)}</p>' for note in notes
        )

    def _repr_html_(self) -> str:
        return framed(f"<p><b>{escape(self.heading)}</b></p>{self._page()}")

    def to_html(self) -> str:
        """Make a page of the topics, to be written into a file and published.

        Returns
        -------
        page : str
            HTML without scripts, pictures or addresses; all texts are escaped.
        """
        return document(self.heading, self._page())


def _line(topic: Topic, largest: float) -> str:
    """Label, size and keywords of a topic, in three cells."""
    pairs = zip(topic.keywords[:_IN_PAGE], topic.counts[:_IN_PAGE], strict=True)
    words = "".join(
        f"<span>{escape(word)} <small>{noisy_number(count, topic.count_std_error)}</small></span>"
        for word, count in pairs
    )
    told, style = _WORDS.get(topic.status, ""), "sk-dp-lost" * (topic.status == "noise")
    width = 100 * min(max(topic.size, 0.0) / largest, 1.0)
    return (
        f"<b>{escape(topic.label)}</b>"
        f'<div class="{style}">'
        f'<i style="width:{width:.1f}%"></i>'
        f"<small>{noisy_number(topic.size, topic.size_std_error)} "
        f"± {1.96 * topic.size_std_error:,.0f}</small></div>"
        f'<div class="sk-dp-words">{words}<small>{told}</small></div>'
    )
