"""The handle that algorithms have on a table: they ask, and let the parts find things out; no more.
There is no way from here to a row, or to a sum that is not sealed."""

from typing import Any, NoReturn, Self

import numpy as np

from .._privacy._units import Units
from .._rows.table import Table as _Table
from ._query import Facts, GridFacts, Query, Step, applied, ask


class TableRows:
    """The rows of a table, as they came. There is one handle of them, which cannot be copied."""

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
        """The dtype of the rows, which is public."""
        return self.__table.dtype

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a handle of rows cannot be copied or pickled.")

    def _raw(self) -> _Table:
        """The table, for questions that make another handle of it."""
        return self.__table

    @property
    def units(self) -> Any:
        """Public facts of the units."""
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
