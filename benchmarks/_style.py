"""One look for the pictures of all benchmarks, and the tables of their pages read back.

Fonts and colors are those of the package's own displays. Each benchmark draws its picture again
from what it has stored: `python benchmarks/NAME.py --plot`.
"""

import matplotlib as mpl

mpl.use("Agg")
mpl.set_loglevel("warning")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.ticker import NullFormatter, NullLocator  # noqa: E402

from sklearn_dp.inspection._curve import COLORS, INK, MUTED, PALE, SETTINGS  # noqa: E402

__all__ = [
    "COLORS", "INK", "MARKERS", "MUTED", "PALE", "legend_on_top", "new", "plain_ticks",
    "read_table", "save",
]  # fmt: skip

MARKERS = "osD^vPX*"


def new(size, rows=1, columns=1, **options):
    """A figure in this look, and its axes: one, or an array.

    Parameters
    ----------
    size : pair of float
        In inches.
    rows, columns : int
    **options
        For `subplots`.

    Returns
    -------
    figure : Figure
    axes : Axes or array of them
    """
    mpl.rcParams.update(SETTINGS)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


def plain_ticks(axis, values, labels=None):
    """Ticks at these values of an axis (`axes.xaxis`), in plain numbers, and at no others."""
    axis.set_major_locator(mpl.ticker.FixedLocator(list(values)))
    axis.set_major_formatter(
        mpl.ticker.FixedFormatter(
            labels or [f"{value:,g}" if value < 1e16 else f"{value:g}" for value in values]
        )
    )
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def legend_on_top(figure, columns, **options):
    """One legend for all axes of a figure, above them; each label once.

    Parameters
    ----------
    figure : Figure
    columns : int
    **options
        For `Figure.legend`.
    """
    found = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found, loc="outside upper left", ncols=columns, **options)


def save(figure, path, dpi=110):
    """Write a picture, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"picture: {path}")


def read_table(text, *head):
    """Rows of the Markdown table whose head begins with these columns, as dicts of text.

    Examples
    --------
    >>> read_table("| a | b |\\n|---|---|\\n| 1 | x |\\n", "a")
    [{'a': '1', 'b': 'x'}]
    """
    cut = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.split("\n")
    ]
    start = next(i for i, cells in enumerate(cut) if tuple(cells[: len(head)]) == head)
    rows = []
    for line, cells in zip(text.split("\n")[start + 2 :], cut[start + 2 :], strict=True):
        if not line.startswith("|"):
            break
        rows.append(dict(zip(cut[start], cells, strict=True)))
    return rows
