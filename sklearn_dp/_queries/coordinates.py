"""Columns in comparable units, in which noise of a sum has one size: the origin and the scale of
each, by a box of public bounds (its middle, half its width) or released."""

from functools import cached_property
from typing import Any, Self

import numpy as np

from .._privacy._domain import Domain
from .._rows.table import Part, PartSource
from ._query import Public, Step, applied
from .table_rows import TableRows

_FARTHEST = 1e100  # scales, from the origin: no square overflows


class Columns(Public):
    """Affine coordinates, column by column: ``(x - origin) / scale``."""

    origin: np.ndarray  # (d,)
    scale: np.ndarray
    scaled: bool  # whether columns of different units have become comparable
    box: Domain | None = None  # public bounds, in the units of the table

    @classmethod
    def of(cls, domain: Domain | None, n_features: int, *, scaled: bool = True) -> Self:
        """The middle of a public box, and half of its widths if `scaled`; else table units."""
        origin, scale = np.zeros(n_features), np.ones(n_features)
        if domain is None or domain.low is None or not (domain.low < domain.high).any():
            return cls(origin, scale, False, domain)
        half = (domain.high - domain.low) / 2
        return cls(
            domain.center, np.where(half > 0, half, 1.0) if scaled else scale, scaled, domain
        )

    @cached_property
    def plain(self) -> bool:
        """True if these are the units of the table."""
        return not self.origin.any() and bool(np.all(self.scale == 1.0))

    def about_origin(self) -> "Columns":
        """Return these columns without a shift: where the mean is known to be the origin."""
        scale = self.scale + np.abs(self.origin) if self.scaled else self.scale
        return Columns(np.zeros(len(scale)), scale, self.scaled, self.box)

    @property
    def domain(self) -> Domain | None:
        """The public bounds in these coordinates."""
        if self.box is None or self.box.low is None:
            return self.box
        low, high = self.of_table(np.array([self.box.low, self.box.high]))
        return Domain.within(low, high)

    def of_table(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the table in these coordinates: each a function of its row alone, elementwise."""
        rows = np.asarray(rows, dtype=np.float64)
        if self.box is not None:
            rows = self.box.clip_points(rows)
        if self.plain:
            return rows
        return np.clip((rows - self.origin) / self.scale, -_FARTHEST, _FARTHEST)

    def to_table(self, points: np.ndarray) -> np.ndarray:
        """Released points, back in the units of the table and within its box."""
        points = self.origin + self.scale * points
        return points if self.box is None else self.box.clip_points(points)

    def applied_to(self, table: Any, *, always: bool = False) -> Any:
        """The table with its rows in these coordinates; `always`: and clipped to the box, if there
        is nothing else to do."""
        if always or not self.plain:
            if isinstance(table, TableRows):
                table.apply(InColumns(self))
            else:
                table.update(applied, InColumns(self), None)
        return table


class ColumnSource(PartSource):
    """Rows of a source in other coordinates."""

    def __init__(self, source: PartSource, columns: Columns) -> None:
        self.source, self.columns, self.number = source, columns, source.number
        self.in_memory, self.sparse = source.in_memory, source.sparse

    def read(self) -> Any:
        return _ColumnRows(self.source.read(), self.columns)

    def n_rows(self) -> int:
        return self.source.n_rows()


class _ColumnRows:
    """Rows that are put into other coordinates when they are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Any, columns: Columns) -> None:
        self.X, self.columns, self.shape = X, columns, X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def __getitem__(self, places: Any) -> np.ndarray:
        return self.columns.of_table(self.X[places])


class InColumns(Step):
    """Rows are in these coordinates from now on."""

    columns: Columns

    def on(self, part: Part) -> Part:
        return part.reading(ColumnSource(part.source, self.columns))


class AsTheyCame(Step):
    """Rows are in the units of the table again."""

    def on(self, part: Part) -> Part:
        source = part.source
        while isinstance(source, ColumnSource):
            source = source.source
        return part.reading(source)
