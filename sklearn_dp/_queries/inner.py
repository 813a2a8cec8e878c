"""Tables whose rows are made of those of another table, where these are.

Some steps look at other rows than those of the table: at one of each unit, at some of their
coordinates, at a half of them. Such a table is a :class:`.Part` in the state of each part,
under a name. A pass over it is one over the outer table, so it works for every engine, and what is
told of the parts of the outer table (who computes again what is lost, what errors tell) is true of
it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._privacy._units import UnitFacts
from .._rows.table import ROWS, Engine, Part, PassFunction, SplitFunction, Table
from ._query import Step
from .handles import GridRows
from .table_rows import TableRows


class InnerEngine:
    """Computes on parts that parts of another table hold, by name; see :class:`.Engine`."""

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name, self.n_parts = table, name, table.engine.n_parts

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """In the next pass over the outer table."""
        self.table.update(_inside, self.name, function, broadcast)

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """A pass over the outer table."""
        return self.table.sums(_inside, self.name, function, broadcast)

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """A value for each inner row."""
        return self.table.rows(_rows_inside, self.name, function, broadcast)

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """Not for inner rows: engines bring those together that they have read."""
        raise TypeError("rows of an inner table do not travel.")

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> Engine:
        """Neither are there new parts of them."""
        raise TypeError("rows of an inner table do not travel.")


def inner_table(
    rows: TableRows,
    name: str,
    n_features: int,
    make: Callable[..., Part],
    *broadcast: Any,
    units: UnitFacts | None = None,
) -> TableRows:
    """A handle of what `make`, a pure function of a module, gives for each part in the next pass.
    Another table of the same name ends. Its rows are units of weight one, as those of the table
    are, unless `units` say what else they are."""
    table = rows._raw()
    if units is None and (table.units.grouped or table.units.scale != 1):
        raise TypeError("a row must be all of its unit here.")
    table.update(_made, name, make, broadcast)
    units = replace(units or UnitFacts(), unit=table.units.unit)
    return TableRows(Table(InnerEngine(table, name), n_features, np.float64, units))


def alone(rows: GridRows, name: str) -> GridRows:
    """Return the same rows with a state of their own, each row as a unit."""
    inner = inner_table(rows.table, name, rows.n_features, rows_alone)
    return GridRows(inner, rows.ball, rows.unit)


def rows_alone(part: Part) -> Part:
    """The rows of a part, for a table with a state of its own."""
    return Part(part.source, part.units, {ROWS: part[ROWS]})


class Dropped(Step):
    """Parts let go of inner tables by name, or of rows on a grid: they are the memory of a fit."""

    names: tuple[str, ...] = ()
    rows: bool = False

    def on(self, part: Part) -> Part:
        return part.without(*self.names, *([ROWS] if self.rows else []))


def _made(part: Part, name: str, make: Callable[..., Part], broadcast: tuple) -> tuple[Part, tuple]:
    return part.having(**{name: make(part, *broadcast)}), ()


def _inside(part: Part, name: str, function: PassFunction, broadcast: tuple) -> tuple[Part, tuple]:
    inner, sums = function(part[name], *broadcast)
    return part.having(**{name: inner}), sums


def _rows_inside(
    part: Part, name: str, function: Callable[..., np.ndarray], broadcast: tuple
) -> np.ndarray:
    return function(part[name], *broadcast)
