"""One look for all pictures of this package: the colors of Okabe and Ito, which people of all kinds
of color vision tell apart; legends above the picture."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCENT, OTHER = "#0072b2", "#d55e00"  # blue and vermilion
INK, MUTED, PALE = "#1d2433", "#6b7280", "#d9dce2"
COLORS = (ACCENT, OTHER, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", MUTED, INK)

# For pictures that are drawn as a whole: those of the examples and benchmarks.
SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 10, "text.color": INK,
    "axes.edgecolor": PALE, "axes.labelcolor": INK, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlepad": 9, "axes.titlecolor": INK,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "grid.color": PALE, "grid.linewidth": 0.6, "lines.markersize": 5,
    "legend.frameon": False, "legend.fontsize": 9, "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4, "savefig.facecolor": "white",
}  # fmt: skip


def has_matplotlib() -> bool:
    """True if pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes to draw on, made if there are none (in inches), in the look of this package."""
    # By name, when a picture is drawn: the package and type checkers work without Matplotlib.
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError(
            "pictures need Matplotlib: python -m pip install 'sklearn-dp[plot]'"
        ) from error
    if ax is None:
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "plot"):
        raise TypeError(f"ax must be axes of Matplotlib, got {type(ax).__name__}.")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(colors=MUTED, labelcolor=INK)
    ax.set_axisbelow(True)  # lines of the grid belong behind the data
    return ax


class Display:
    """Base class of the plots: `_size` of a new figure, and `_draw` on axes."""

    ax_: Axes
    figure_: Any

    def _size(self) -> tuple[float, float]:
        raise NotImplementedError

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : object
            With the artists as attributes.
        """
        ax = axes_for(ax, self._size())
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self


def title(ax: Axes, text: str, lines_below: int = 0) -> None:
    """A title at the left, with room for lines of a legend below, between it and the axes."""
    pad = 8 + 17 * lines_below
    ax.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK, pad=pad)


def legend_above(ax: Axes, columns: int) -> None:
    """A legend of all artists with labels between title and axes, where no data are."""
    ax.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, fontsize=8.5,
        borderaxespad=0.2, handlelength=1.5, handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip


def noisy_number(value: float, error: float) -> str:
    """A noisy number, without digits that are noise.

    >>> noisy_number(12345.0, 20.0), noisy_number(-3.0, 20.0), noisy_number(4.0, 0.1)
    ('12,340', '0', '4')
    """
    step = 10.0 ** max(0, int(np.floor(np.log10(max(error, 1.0)))))
    return f"{max(round(value / step) * step, 0.0):,.0f}"


def plain_text(text: str) -> str:
    """A text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")
