"""The public geometry of the cell tree: boxes that are halved again and again.

Nothing here depends on the rows except through released numbers (the half widths of the box and
the depth), so which cells there are is public. A cell of depth D is an integer code of D bits: bit
by bit, it says on which side of the cut of each split the cell lies. So the first bits of a code
are the code of the parent, and a tree of cells needs no pointers.
"""

from functools import cached_property
from typing import Protocol

import numpy as np

from ..._privacy._rounding import bounded_integers, exact_integers
from ..shared.rows import Rows

_TABLE_BITS = 8  # of an index that are looked up together


class CellGrid:
    """The sequence of splits of a box about the origin, always across its widest side.

    `half_widths` (q,) are positive, in grid steps; the number of splits, `depth`, is at most 62.
    `axes` (depth,) are what each split goes across, and `bits` (q,) tell how often each axis is
    halved.

    A box that is twice as wide as high is halved across its width first, and the lowest cell of
    the left half has the code 0:

    >>> import numpy as np
    >>> grid = CellGrid(np.array([2.0, 1.0]), 3)
    >>> grid.axes.tolist()
    [0, 0, 1]
    >>> grid.codes(np.array([[-1.9, -0.9], [1.9, 0.9]])).tolist()
    [0, 7]
    """

    def __init__(self, half_widths: np.ndarray, depth: int) -> None:
        self.half_widths, self.depth = half_widths, depth
        widths, axes = half_widths.copy(), []
        for _ in range(depth):
            axes.append(int(np.argmax(widths)))
            widths[axes[-1]] /= 2
        self.axes = exact_integers(axes)
        self.bits = np.bincount(self.axes, minlength=len(half_widths))

    def codes(self, points: np.ndarray) -> np.ndarray:
        """Code of the cell of each point; those outside of the box go to the cell at its border.

        Elementwise: the code of a row is a function of that row and of released values, bit for
        bit. A matrix product would let other rows change it.
        """
        codes = np.zeros(len(points), dtype=np.int64)
        scales = 2.0**self.bits / (2 * self.half_widths)
        for axis, shifted in enumerate(np.array(points.T, order="C")):
            shifted += self.half_widths[axis]
            shifted *= scales[axis]
            np.floor(shifted, out=shifted)
            np.maximum(shifted, 0.0, out=shifted)
            np.minimum(shifted, 2.0 ** self.bits[axis] - 1, out=shifted)
            index = bounded_integers(shifted, np.int64)
            for low, places in self._tables[axis]:
                own = (index >> low) & (len(places) - 1) if len(self._tables[axis]) > 1 else index
                codes |= places[own]
        return codes

    @cached_property
    def _tables(self) -> list[list[tuple[int, np.ndarray]]]:
        """For each axis, what a few bits of an index come to in a code: (lowest bit, table)."""
        tables: list[list] = [[] for _ in self.half_widths]
        for axis, own in enumerate(tables):
            # Of the lowest bit first: the last split across the axis.
            shifts = self.depth - 1 - np.flatnonzero(self.axes == axis)[::-1]
            for low in range(0, len(shifts), _TABLE_BITS):
                bits = shifts[low : low + _TABLE_BITS]
                numbers = np.arange(1 << len(bits))[:, None]
                own.append((low, (((numbers >> np.arange(len(bits))) & 1) << bits).sum(axis=1)))
        return tables

    def __getstate__(self) -> dict:
        """Without the tables, which are made where they are asked for."""
        return {name: value for name, value in vars(self).items() if name != "_tables"}

    def boxes(self, codes: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Centers and widths, both of shape (m, q), of cells of one depth."""
        axes = self.axes[:depth]
        bits = np.bincount(axes, minlength=len(self.half_widths))
        index = np.zeros((len(codes), len(self.half_widths)))
        for t, axis in enumerate(axes):
            index[:, axis] = 2 * index[:, axis] + ((codes >> (depth - 1 - t)) & 1)
        widths = 2 * self.half_widths / 2.0**bits
        return (index + 0.5) * widths - self.half_widths, np.broadcast_to(widths, index.shape)


class Codes(Protocol):
    """What tells the cells of points."""

    def codes(self, points: np.ndarray) -> np.ndarray: ...


def codes_of(rows: Rows, grid: Codes, n_bits: int) -> np.ndarray:
    """Unreleased: the cell of each row in a grid (or in far cells), of shape (n,)."""
    codes = np.empty(rows.n_rows, dtype=np.int32 if n_bits < 31 else np.int64)
    for part, x in rows.chunks():
        codes[part] = grid.codes(x)
    return codes
