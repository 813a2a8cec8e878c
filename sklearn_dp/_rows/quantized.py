"""Rows of a source on a public grid, made anew in each pass: in dense chunks, or near one row.

Sparse rows go to the grid entry by entry, each with what becomes of a zero of its column; those
that a clip changes, as dense ones. Both ways give the same integers: which one a row goes is to be
seen in nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._privacy._domain import Domain, Sphere
from .._privacy._grid import MOST_COLUMNS, Grid, NearRows, rows_minus
from .sparse_rows import SparseRows
from .table import PartSource

_MOST_CLIPPED = 2**20  # entries of the clipped rows of a chunk: those of more rows are made dense


class Quantized:
    """Begins a pass over the rows of a source, on a grid."""

    def __init__(self, source: PartSource, domain: Domain, within: Domain | None) -> None:
        self.source, self.domain, self.within = source, domain, within

    def __call__(self) -> "QuantizedRows":
        return QuantizedRows(self.source.read(), self.domain, self.within)


class QuantizedRows:
    """Gives rows for slices; `width` is how many entries near rows have, or 0."""

    def __init__(self, X: np.ndarray | SparseRows, domain: Domain, within: Domain | None) -> None:
        self.X, self.domain, self.within = X, domain, within
        self.grid = Grid.for_radius(domain.radius)
        self.width = X.width if isinstance(X, SparseRows) else 0

    def __call__(self, part: slice) -> np.ndarray:
        """Dense rows."""
        return self._quantized(self.X[part])

    def _quantized(self, rows: np.ndarray) -> np.ndarray:
        rows = rows if self.within is None else self.within.move_rows(rows)
        return self.grid.quantize(self.domain.center_rows(rows), self.domain.radius)

    def near(self, part: slice) -> NearRows | None:
        """Near rows; None where many of them have to be dense."""
        assert isinstance(self.X, SparseRows)
        table = self.X.entries(part)
        moved, radius = moved_entries(table, self.within, self.domain), self.domain.radius
        if moved is None:
            return None
        zeros, table = moved
        if not zeros.any() and len(zeros) <= MOST_COLUMNS:
            quantize = partial(self.grid.quantize, radius=radius)
            table.data = without_zeros(table, quantize)
            few = table.copy()  # the places are not its own
            few.eliminate_zeros()
            return NearRows(zeros, few)
        quantized = self.grid.quantize_entries(zeros, table, radius)
        if quantized is None:
            return None
        rows, clipped = quantized[0], np.flatnonzero(quantized[1])
        if len(clipped) * table.shape[1] > _MOST_CLIPPED:
            return None
        if len(clipped):
            others = self._quantized(self.X.entries(part)[clipped].toarray()) - rows.base
            at, columns = np.nonzero(others)
            entries = others[at, columns], (clipped[at], columns)
            rows.few = rows.few + csr_array(entries, shape=table.shape)
        rows.few.eliminate_zeros()
        return rows


def moved_entries(
    table: csr_array, within: Domain | None, domain: Domain | None
) -> tuple[np.ndarray, csr_array] | None:
    """Return the result for a row of zeros and of the entries of sparse rows that are moved into
    the region `within` and taken about the center of a domain, bit for bit. None: not known."""
    d = table.shape[1]
    columns = np.append(np.arange(d), table.indices)
    line = np.append(np.zeros(d), table.data)
    for region, name in ((within, "move_rows"), (domain, "center_rows")):
        if region is None:
            continue
        if type(region) is not Sphere and (region.low is not None or name == "center_rows"):
            # Elementwise, so all entries may as well be one long row.
            line = getattr(region.at(columns), name)(line[None])[0]
        elif line[:d].any():
            return None
        else:
            line[d:] = without_zeros(_with(table, line[d:]), getattr(region, name))
    return line[:d], _with(table, line[d:])


def _with(table: csr_array, data: np.ndarray) -> csr_array:
    """Other entries in the same places."""
    return csr_array((data, table.indices, table.indptr), shape=table.shape)


def without_zeros(table: csr_array, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """New entries of sparse rows, by a function of dense ones to which zeros mean nothing and which
    leaves them what they are: it gets the entries of each row side by side."""
    ends, data = table.indptr, table.data
    nonzero, counts = np.empty(len(data)), np.diff(ends)
    step = max(1, 2**18 // max(1, int(counts.max(initial=0))))
    for start in range(0, len(counts), step):
        counts_of_rows = counts[start : start + step]
        held = np.arange(max(1, counts_of_rows.max())) < counts_of_rows[:, None]
        rows, place = np.zeros(held.shape), slice(ends[start], ends[start + len(counts_of_rows)])
        rows[held] = data[place]
        nonzero[place] = function(rows)[held]
    return nonzero


class About:
    """Rows minus an origin."""

    def __init__(self, read: Any, origin: np.ndarray) -> None:
        self._read, self._origin = read, origin
        self.width = getattr(read, "width", 0)

    def __call__(self, part: slice) -> np.ndarray:
        rows = self._read(part)
        return rows_minus(rows, self._origin, rows)

    def near(self, part: slice) -> NearRows | None:
        rows = self._read.near(part)
        return None if rows is None else NearRows(rows.base - self._origin, rows.few)
