"""What the examples share: arguments, a stopwatch, and the look of the pictures."""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from sklearn_dp.inspection._curve import ACCENT, INK, MUTED, OTHER, SETTINGS

__all__ = [
    "ACCENT", "HERE", "INK", "MUTED", "OTHER", "legend_above", "parse_arguments", "print_table",
    "save", "timed",
]  # fmt: skip

HERE = Path(__file__).resolve().parent  # a notebook has no __file__ of its own


def parse_arguments(description, name, argv=None):
    """The two options of every example."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = HERE / "output" / name
    parser.add_argument("--output", type=Path, default=default, help="the PNG (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="less data, in a few seconds")
    return parser.parse_args(argv)


@dataclass(frozen=True)
class Timing:
    """Processor time (all threads) and wall-clock time of one call."""

    cpu: float
    wall: float


def timed(function, *args, **kwargs):
    """The result of a call, and its times."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function(*args, **kwargs)
    return result, Timing(time.process_time() - cpu, time.perf_counter() - wall)


def print_table(headings, rows):
    """A table as text: the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  " + "   ".join(cells).rstrip())


def legend_above(axes, columns=1, **options):
    """A legend between the title and the axes, where no data are."""
    axes.set_title(
        axes.get_title(loc="left"),
        pad=10 + 16 * -(-len(axes.get_legend_handles_labels()[1]) // columns),
    )
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2, **options
    )


def save(draw, path, size, *, dpi=110):
    """Let `draw` fill a figure, and save it; needs no display."""
    with rc_context(SETTINGS):
        figure = Figure(figsize=size)
        draw(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi, pil_kwargs={"optimize": True})
    print(f"\nPicture: {path}")
