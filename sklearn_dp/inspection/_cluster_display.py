"""Released centers with their standard errors, over rows that may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator, check_integer, check_real, read_table
from .._door import by_name, read_vector
from .._privacy._warn import warn
from ..exceptions import PrivacyWarning
from ._style import ACCENT, MUTED, OTHER, axes_for, legend_above, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ClusterDisplay"]

_LARGEST_MARK = 70.0  # area of the mark of the heaviest center, in square points
_SMALLEST_MARK = 14.0  # a center of weight zero is still to be seen


class ClusterDisplay:
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

    def __init__(
        self,
        centers: np.ndarray,
        errors: np.ndarray | None,
        weights: np.ndarray | None,
        rows: np.ndarray | None,
        heading: str,
        axis_labels: tuple[str, str],
        rows_label: str = "public rows",
    ) -> None:
        self.centers = centers
        self.errors = errors
        self.weights = weights
        self.rows = rows
        self.heading = heading
        self.axis_labels = axis_labels
        self.rows_label = rows_label

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
        name = _centers_name(estimator)
        centers = np.asarray(getattr(estimator, name))
        pair = _check_features(features, centers.shape[1])
        check_real(level, "level", low=0.0, high=1.0)
        names = vars(estimator).get("feature_names_in_")
        rows = _rows(X_public, private_rows, centers.shape[1], names)
        if private_rows is not None:
            warn(
                "the picture shows private rows: it is not private, so do not publish it",
                PrivacyWarning,
            )
        seen = getattr(
            estimator, "feature_names_in_", [f"feature {i}" for i in range(max(pair) + 1)]
        )
        report = estimator.privacy_report_
        return cls(
            centers[:, pair],
            _half_widths(estimator, name, level, pair),
            getattr(estimator, "cluster_weights_", getattr(estimator, "weights_", None)),
            None if rows is None else rows[:, pair],
            f"{type(estimator).__name__}: centers at ε = {report.epsilon:.3g}",
            (str(seen[pair[0]]), str(seen[pair[1]])),
            "public rows" if private_rows is None else "private rows: do not publish",
        ).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the rows, the intervals and the centers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : ClusterDisplay
            With the artists as attributes.
        """
        ax = axes_for(ax, (5.6, 5.2))
        self.ax_, self.figure_ = ax, ax.figure
        self.rows_: Any = None
        self.errors_: Any = None
        x, y = read_table(self.centers, "centers").T
        if self.rows is not None:
            self.rows_ = ax.scatter(
                self.rows[:, 0],
                self.rows[:, 1],
                s=8,
                color=MUTED,
                alpha=0.4,
                lw=0,
                label=self.rows_label,
            )
        if self.errors is not None:
            self.errors_ = ax.errorbar(
                x, y, xerr=self.errors[:, 0], yerr=self.errors[:, 1], fmt="none", zorder=4,
                ecolor=OTHER, elinewidth=1.4, capsize=4, label="its confidence interval",
            )  # fmt: skip
        weights = np.ones(len(x))
        if self.weights is not None:
            weights = read_vector(self.weights, "weights")
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
        return self


def _centers_name(estimator: BaseDPEstimator) -> str:
    """The attribute that holds the centers, or an error where there is none."""
    if not isinstance(estimator, BaseDPEstimator):
        raise TypeError("estimator must be a fitted private estimator of this package.")
    check_is_fitted(estimator)
    for name in ("cluster_centers_", "means_"):
        if hasattr(estimator, name):
            return name
    raise TypeError(f"estimator: {type(estimator).__name__} has no cluster_centers_ or means_.")


def _check_features(features: object, n_features: int) -> list[int]:
    """Two different columns of the `n_features` of the centers, or an error."""
    if not isinstance(features, (tuple, list)) or len(features) != 2:
        raise TypeError("features must be a pair of columns.")
    first, second = (check_integer(f, "features", low=0, high=n_features - 1) for f in features)
    if first == second:
        raise ValueError("features must be two different columns.")
    return [first, second]


def _rows(
    X_public: ArrayLike | None, private_rows: ArrayLike | None, n_features: int, names: Any
) -> np.ndarray | None:
    """What is to be drawn below the centers, if anything; errors quote nothing of it.

    At most one of the two is given. Private rows have a name of their own, so that nobody draws
    them by putting a table in the wrong place.
    """
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
    """Half of the width of the released confidence intervals; None where none were released.

    They are the estimator's own, so the picture says what `summary` says: those of the attribute
    `name` in the two columns that are drawn. Zero where a width is not finite: an endless line
    would hide the others.
    """
    if getattr(estimator, f"{name}std_error_", None) is None:
        return None
    low, high = estimator.confidence_interval(level=level, attribute=name)
    widths = (np.asarray(high) - np.asarray(low)) / 2
    return np.where(np.isfinite(widths), widths, 0.0)[:, pair]
