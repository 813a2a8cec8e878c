"""The handle that algorithms have on the rows of a grid; see :mod:`.table_rows`."""

from copy import copy
from typing import Any, Self

import numpy as np

from .._privacy._domain import Domain
from .._privacy._grid import Grid
from .._privacy._units import Units
from .._rows.rows import GridGeometry, Rows
from .._rows.table import ROWS
from .._rows.table import LocalEngine as _LocalEngine
from .._rows.table import Part as _Part
from .._rows.table import PartSource as _PartSource
from .._rows.table import Table as _Table
from ._query import GridFacts, Query, Step
from .grids import ACTIVE, Projected, Quantized, Recentered, Unprojected
from .table_rows import TableRows


class GridRows(GridGeometry):
    """The rows of a table as integers, clipped into a ball; another grid ends those before."""

    def __init__(self, table: TableRows, ball: float, unit: float = 1.0) -> None:
        super().__init__(table.n_features, ball, unit)
        self.table, self.units = table, table.units

    @classmethod
    def of_rows(
        cls, rows: Rows, active: np.ndarray | None = None, units: Units | None = None
    ) -> Self:
        """A handle of integer rows in memory, units by default, of which some are `active`."""
        units, state = units or Units(rows.n_rows), {} if active is None else {ACTIVE: active}
        engine = _LocalEngine([_Part(_PartSource(), units, {ROWS: rows, **state})], guarded=False)
        handle = cls(
            TableRows(_Table(engine, rows.n_features, np.float64, units.facts)),
            rows.ball,
            rows.unit,
        )
        GridGeometry.recenter(handle, rows.origin)
        return handle

    @classmethod
    def quantize(
        cls,
        table: TableRows,
        domain: Domain,
        within: Domain | None = None,
        *,
        kept: bool = True,
    ) -> Self:
        """Move rows `within`, clip, and round them: in the next pass, and `kept` for others."""
        grid = Grid.for_radius(domain.radius)
        table.apply(Quantized(domain, within, table.n_parts, kept))
        return cls(table, grid.steps(domain.radius), grid.unit)

    def ask(self, query: Query) -> Any:
        """Sealed answers: one pass over the rows."""
        return self.table.ask(query, self._facts)

    def apply(self, step: Step) -> None:
        """Let the parts find something out, in the next pass."""
        self.table.apply(step, self._facts)

    @property
    def _facts(self) -> GridFacts:
        return GridFacts(self.n_features, self.limit, self.unit)

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin from now on."""
        self.apply(Recentered(origin))
        super().recenter(origin)

    def project(self, basis: np.ndarray) -> Self:
        """The rows of fewer features that the parts hold until `unproject`; see `Projected`."""
        projected = copy(self)
        GridGeometry.__init__(projected, basis.shape[1], self.limit, self.unit)
        self.apply(Projected(basis, self.table.n_parts))
        return projected

    def unproject(self) -> None:
        """Go back to the rows before `project`."""
        self.table.apply(Unprojected())
