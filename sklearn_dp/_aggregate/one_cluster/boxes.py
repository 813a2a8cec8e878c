"""Boxes of a grid, and how many rows of a table are in each of them.

A part counts the rows in its occupied boxes, and what travels is their codes and their counts
(`CellCounts`): keys where only the fullest box is asked for, names where a box is released. Both
are functions of the coordinates of a box alone, so that the counts of parts add up.

:func:`heaviest` releases one of them by a stability histogram.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..shared.rows import ROWS, Rows
from ..shared.samples import Coins
from ..shared.table import CellCounts, Part

INSIDE = "inside"
"""Name, in the state of a part, of which of its active points are in a released box."""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: 2**64 over the golden ratio
_MOST_CELL = 2.0**40  # coordinates of a box, far beyond those of any grid that is used
_AT_ONCE, _FEW_ROWS = 4, 2**16  # grids that are counted at once, where more rows have to be read


@dataclass(frozen=True)
class Boxes:
    """A grid of boxes, in the space that rows are mapped to; where it is shifted to, others say."""

    matrix: np.ndarray | None  # (k, d), integer-valued; None: the features themselves
    side: float

    def of(self, images: np.ndarray, shift: float | np.ndarray) -> np.ndarray:
        """The box of each of some images."""
        return boxes(images, shift, self.side)


def mapped_chunks(rows: Rows, matrix: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray]]:
    """Maps (m, k) of the rows by an integer matrix (k, d), exact: |A x| is below 2**53.

    A row of signs gives at most d |x|, one of a basis in steps about 2**20 |x|. So BLAS may add up
    in any order, and the image of a row has the same bits whatever other rows there are.
    """
    for place, x in rows.chunks(1 if matrix is None else len(matrix)):
        yield place, x if matrix is None else x @ matrix.T


def boxes(points: np.ndarray, shift: float | np.ndarray, side: float) -> np.ndarray:
    """Integer coordinates of each point's box: elementwise."""
    cells = np.floor((points + shift) / side)
    return exact_integers(np.clip(cells, -_MOST_CELL, _MOST_CELL))


def chosen_rows(part: Part, among: str, coins: Coins | None = None) -> np.ndarray | None:
    """Which rows of a part are `among` some, by name, and in a sample; None: all of them."""
    chosen = part.state.get(among)
    if coins is None:
        return chosen
    sampled = coins.mask(part)
    return sampled if chosen is None else sampled & chosen


def keys_of(cells: np.ndarray) -> np.ndarray:
    """A number (int64) for each row of cells: a hash of its coordinates alone. Boxes with the same
    hash count as one: a partition too, whose fullest cell moves by at most one."""
    odd = np.cumprod(np.full(cells.shape[1], _MIX))  # modulo 2**64
    return (cells.view(np.uint64) * odd).sum(axis=1).view(np.int64)


def names_of(cells: np.ndarray) -> np.ndarray:
    """A name for each row of cells, whatever else is in the data: big-endian bytes."""
    cells = np.ascontiguousarray(cells.astype(">i8", casting="safe"))
    return cells.view(f"S{8 * cells.shape[1]}").ravel()


def counts_of(codes: np.ndarray) -> CellCounts:
    """How many points each occupied box has, by their keys or names."""
    return CellCounts(*np.unique(codes, return_counts=True))


def _counts_of_keys(keys: np.ndarray, only_fullest: bool) -> CellCounts:
    """The same of keys, which are sorted in place: there may be many. Or the fullest box alone."""
    keys.sort()
    first = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    first = np.concatenate([np.zeros(min(len(keys), 1), dtype=np.int64), first])
    counts = np.diff(first, append=len(keys))
    if only_fullest and len(counts):
        top = int(counts.argmax())
        first, counts = first[top : top + 1], counts[top : top + 1].copy()
    return CellCounts(keys[first], counts)


def fullest(found: CellCounts) -> int:
    """Number of points in the fullest box; 0 where no box is occupied."""
    return int(found.counts.max(initial=0))


def counted_boxes(
    part: Part, grid: Boxes, shifts: np.ndarray, among: str, coins: Coins | None, n_parts: int
) -> tuple[Part, tuple[CellCounts, ...]]:
    """A pass: rows in each box, by keys, for each shift (s, k); of a single part its fullest."""
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    n_rows = rows.n_rows if chosen is None else int(np.count_nonzero(chosen))
    step, found = len(shifts), []
    if n_rows > _FEW_ROWS:
        step = 1 if part.source.in_memory else min(_AT_ONCE, step)
    held = np.empty((step, n_rows), dtype=np.int64)
    for start in range(0, len(shifts), step):
        some, first = shifts[start : start + step], 0
        keys = held[: len(some)]
        for place, images in mapped_chunks(rows, grid.matrix):
            images = images if chosen is None else images[chosen[place]]
            for key, shift in zip(keys, some, strict=True):
                key[first : first + len(images)] = keys_of(grid.of(images, shift))
            first += len(images)
        found += [_counts_of_keys(key, n_parts == 1) for key in keys]
    return part, tuple(found)


def named_boxes(
    part: Part,
    grid: Boxes,
    shift: float | np.ndarray,
    among: str,
    coins: Coins | None,
    columns: Sequence[slice] = (slice(None),),
) -> tuple[Part, tuple[CellCounts, ...]]:
    """A pass: rows in each box, by the names of coordinates: a count for each of `columns`."""
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    width = rows.n_features if grid.matrix is None else len(grid.matrix)
    nobody = np.empty((0, width), dtype=np.int64)
    found = [[counts_of(names_of(nobody[:, each]))] for each in columns]
    for place, images in mapped_chunks(rows, grid.matrix):
        cells = grid.of(images if chosen is None else images[chosen[place]], shift)
        for each, column in zip(found, columns, strict=True):
            each.append(counts_of(names_of(cells[:, column])))
    return part, tuple(_added(each) for each in found)


def _added(counts: Sequence[CellCounts]) -> CellCounts:
    """Counts of boxes of several sets of rows, together."""
    cells, index = np.unique(np.concatenate([each.cells for each in counts]), return_inverse=True)
    total = np.zeros(len(cells), dtype=np.int64)
    np.add.at(total, index, np.concatenate([each.counts for each in counts]))
    return CellCounts(cells, total)


def in_box(
    part: Part, grid: Boxes, shift: float | np.ndarray, box: np.ndarray, among: str
) -> tuple[Part, tuple[()]]:
    """A pass: which of some rows are in a released box; kept as `INSIDE`."""
    rows, inside = part[ROWS], np.empty(part[ROWS].n_rows, dtype=bool)
    for place, images in mapped_chunks(rows, grid.matrix):
        inside[place] = (grid.of(images, shift) == box).all(axis=1)
    chosen = part.state.get(among)
    return part.having(**{INSIDE: inside if chosen is None else inside & chosen}), ()


def heaviest(
    session: PrivacySession, entry: str, found: CellCounts, rho: float, delta: float, replace: bool
) -> np.ndarray | None:
    """Coordinates of a box with many points, by a stability histogram; None if none stands out.
    `found` are the occupied boxes by name; a point is in one of them."""
    # A replaced point leaves one box and enters another.
    codes, values = session.stability_histogram(
        entry,
        found.cells,
        found.counts,
        rho=rho,
        delta=delta,
        sensitivity=math.sqrt(2) if replace else 1.0,
    )
    if not len(codes):
        return None
    # NumPy drops zero bytes at the end of a name.
    name = codes[values.argmax()].ljust(found.cells.dtype.itemsize, b"\0")
    return exact_integers(np.frombuffer(name, dtype=">i8"))


def box_spend(session: PrivacySession, entry: str) -> tuple[float, float]:
    """rho and delta of a box: what is left of the one, all of the other."""
    return session.remaining(entry), session.plan[entry].delta
