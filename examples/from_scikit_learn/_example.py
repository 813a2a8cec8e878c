"""What the examples share: their table, and how rows are drawn."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Ellipse

from sklearn_dp.inspection import _curve

# The eight colors shared by all plots, and two more: some examples have ten clusters.
COLORS = np.array([*_curve.COLORS, "#7c3aed", "#4d7c0f"])
MOST_POINTS = 900  # in a picture


@dataclass(frozen=True)
class Example:
    """An example of the gallery.

    Attributes
    ----------
    name, title : str
        Of the script in scikit-learn, and in words.
    number : str
        What the number is that each version is judged by.
    epsilon : float
    rows : int
        In the original.
    generated : bool
        Whether there can be more rows.
    story : str
        A few sentences for the page.
    run : callable
        Of what makes the estimators, a factor for the number of rows, and the axes or None.
    """

    name: str
    title: str
    number: str
    epsilon: float
    rows: int
    generated: bool
    story: str
    run: Callable

    @property
    def anchor(self):
        """Of the heading of the page."""
        return "".join(c for c in self.title.lower() if c.isalnum() or c in " -").replace(" ", "-")


def scatter(ax, X, labels, size=3, shift=(0.0, 0.0)):
    """Rows by the color of their label, if there is a picture."""
    if ax is None:
        return
    shown = np.random.default_rng(0).permutation(len(X))[:MOST_POINTS]
    where = X[shown, :2] + np.asarray(shift)
    colors = COLORS[np.asarray(labels)[shown] % len(COLORS)]
    ax.scatter(where[:, 0], where[:, 1], s=size, c=colors, linewidths=0, rasterized=True)


def crosses(ax, centers):
    if ax is not None:
        ax.plot(centers[:, 0], centers[:, 1], "kx", markersize=7, markeredgewidth=1.6)


def ellipse(ax, mean, covariance, color, scales=(1, 2)):
    """Ellipses of a Gaussian, at one and two standard deviations."""
    if ax is None:
        return
    values, vectors = np.linalg.eigh(covariance[:2, :2])
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    for scale in scales:
        width, height = 2 * scale * np.sqrt(np.maximum(values[::-1], 0))
        shape = Ellipse(mean[:2], width, height, angle=angle, fill=False, edgecolor=color, lw=1.4)
        ax.add_patch(shape)
