"""How pictures look: the same axes for all, legends off the data."""

import matplotlib
import pytest

from sklearn_dp.inspection import _style

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402


def test_axes_are_made_or_taken():
    mine = Figure().subplots()
    assert _style.axes_for(mine, (4, 3)) is mine
    made = _style.axes_for(None, (4, 3))
    assert tuple(made.figure.get_size_inches()) == (4, 3)
    matplotlib.pyplot.close(made.figure)
    with pytest.raises(TypeError, match="ax must be axes of Matplotlib, got int"):
        _style.axes_for(3, (4, 3))


def test_a_legend_stands_between_title_and_axes():
    ax = Figure(layout="constrained", dpi=100).subplots()
    ax.plot([0, 1], [0, 1], label="a line")
    _style.title(ax, "A title", lines_below=1)
    _style.legend_above(ax, 1)
    ax.figure.draw_without_rendering()
    legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
    above = ax._left_title.get_window_extent()
    assert legend.y0 >= box.y1 and legend.y1 <= above.y0
