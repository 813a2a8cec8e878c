"""What algorithms have of a table: they ask, and let the parts find things out; no more.

There is no way from here to a row, or to a sum that is not sealed. What can be seen is public.
"""

from copy import copy
from typing import Any, NoReturn, Self

import numpy as np

from .._privacy._domain import Domain
from .._privacy._grid import Grid
from .._privacy._units import Units
from .._rows.rows import ROWS, GridGeometry, Rows
from .._rows.table import LocalEngine as _LocalEngine
from .._rows.table import Part as _Part
from .._rows.table import PartSource as _PartSource
from .._rows.table import Table as _Table
from ._query import Facts, GridFacts, Query, Step, applied, ask
from .active import ACTIVE
from .grids import Projected, Quantized, Recentered, Unprojected


class TableRows:
    """The rows of a table, as they came. There is one handle of them: it cannot be copied, and what
    would be written to a file are the rows."""

    __slots__ = ("__table",)

    def __init__(self, table: "_Table | TableRows") -> None:
        self.__table: _Table = table.__table if isinstance(table, TableRows) else table

    @classmethod
    def in_memory(cls, X: np.ndarray, units: Units) -> Self:
        """A handle of rows in memory, for who has them already."""
        return cls(_Table.in_memory(X, units))

    @property
    def n_features(self) -> int:
        return self.__table.n_features

    @property
    def dtype(self) -> np.dtype:
        """Of the rows, which is public."""
        return self.__table.dtype

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a handle of rows cannot be copied or pickled.")

    def _raw(self) -> _Table:
        """The table, for questions that make another handle of it."""
        return self.__table

    @property
    def units(self) -> Any:
        """What is public of the units."""
        return self.__table.units

    @property
    def n_parts(self) -> int:
        """A public number."""
        return self.__table.engine.n_parts

    def ask(self, query: Query, grid: GridFacts | None = None) -> Any:
        """Sealed answers: one pass over the rows."""
        d = self.n_features if grid is None else grid.n_features
        return ask(self.__table.sums, query, Facts(self.units, d, grid))

    def apply(self, step: Step, grid: GridFacts | None = None) -> None:
        """Let the parts find something out, in the next pass."""
        if not isinstance(step, Step):
            raise TypeError("only a step can be applied.")
        self.__table.update(applied, step, grid)


class GridRows(GridGeometry):
    """The rows of a table as integers, clipped into a ball; another grid ends those before."""

    def __init__(self, table: TableRows, ball: float, unit: float = 1.0) -> None:
        super().__init__(table.n_features, ball, unit)
        self.table, self.units = table, table.units

    @classmethod
    def in_memory(
        cls, rows: Rows, active: np.ndarray | None = None, units: Units | None = None
    ) -> Self:
        """A handle of integer rows in memory, each of which stands for a unit by default, for who
        has them already; and of which of them are `active`."""
        units, state = units or Units(rows.n_rows), {} if active is None else {ACTIVE: active}
        engine = _LocalEngine([_Part(_PartSource(), units, {ROWS: rows, **state})], guarded=False)
        found = cls(
            TableRows(_Table(engine, rows.n_features, np.float64, units.facts)),
            rows.ball,
            rows.unit,
        )
        GridGeometry.recenter(found, rows.origin)
        return found

    @classmethod
    def quantize(
        cls,
        table: TableRows,
        domain: Domain,
        within: Domain | None = None,
        *,
        kept: bool = True,
    ) -> Self:
        """Move rows into the public `within`, clip them into a domain, round them: in the next
        pass, and `kept` for others."""
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
