"""Rows of a table on a public grid: a frame, and passes over the integer rows of the parts."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._grid import Grid
from ..._privacy._units import UnitFacts, Units
from .grid_geometry import GridGeometry
from .rows import Rows
from .table import LocalEngine, Part, PartSource, Table

ROWS = "rows"
"""Name of the integer rows in the state of a part."""


class GridTable(GridGeometry):
    """Integer rows that the parts of a table hold, and the :class:`.grid_geometry.GridGeometry`
    that they are in.

    A table has one such set of rows at a time: to put it on another grid ends the one before.
    """

    def __init__(self, table: Table, ball: float, unit: float = 1.0) -> None:
        super().__init__(table.n_features, ball, unit)
        self.table = table

    @classmethod
    def quantize(cls, table: Table, domain: Domain, within: Domain | None = None) -> Self:
        """Clip the rows into a domain, and round them to its grid: done in the next pass.

        The domain is public or released; `within` are public bounds that the rows are moved into
        first.
        """
        grid = Grid.for_radius(domain.radius)
        table.update(_quantized, domain, within, table.engine.n_parts)
        return cls(table, grid.steps(domain.radius), grid.unit)

    @classmethod
    def of(cls, rows: Rows, units: Units, **state: Any) -> Self:
        """A table in memory of rows that are integers already, in one part with that state."""
        part = Part(PartSource(), units, {ROWS: rows, **state})
        engine = LocalEngine([part], guarded=False)
        table = Table(engine, rows.n_features, np.float64, units.facts)
        found = cls(table, rows.ball, rows.unit)
        GridGeometry.recenter(found, rows.origin)
        return found

    @property
    def units(self) -> UnitFacts:
        """What is public of the units."""
        return self.table.units

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin from now on."""
        super().recenter(origin)
        self.table.update(_recentered, origin)

    def update(self, function: Callable[..., tuple], *broadcast: Any) -> None:
        """See :meth:`.table.Table.update`."""
        self.table.update(function, *broadcast)

    def sums(self, function: Callable[..., tuple], *broadcast: Any) -> tuple:
        """See :meth:`.table.Table.sums`."""
        return self.table.sums(function, *broadcast)


def _quantized(
    part: Part, domain: Domain, within: Domain | None, n_parts: int
) -> tuple[Part, tuple]:
    rows = Rows.of_source(part.source, domain, part.units.n_rows, within=within, n_parts=n_parts)
    return part.having(**{ROWS: rows}), ()


def _recentered(part: Part, origin: np.ndarray) -> tuple[Part, tuple]:
    return part.having(**{ROWS: part[ROWS].about(origin)}), ()
