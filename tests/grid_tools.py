"""Rows of tables in memory, for tests and mutants that look at them, and handles of rows."""

import numpy as np

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._units import Claim, Sealed, UnitFacts, Units, exact_of
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import ROWS, Table

__all__ = [
    "exact", "grid_rows", "parts_in_memory", "points_of", "quantized", "raw_table",
    "rows_in_memory", "sealed_scores", "table_rows",
]  # fmt: skip


def raw_table(rows):
    """The table behind a handle, or a table; a fit itself has the handle only."""
    table = getattr(rows, "table", rows)
    return getattr(table, "_TableRows__table", table)


def parts_in_memory(table):
    """The parts of a table, after the steps that wait."""
    table = raw_table(table)
    table._finish()
    return list(table.engine.states)


def rows_in_memory(table):
    """The rows of the only part of a table, by a handle of them."""
    (part,) = parts_in_memory(table.table)
    return part[ROWS]


def table_rows(X, groups=None, **options):
    """A handle of rows in memory."""
    return TableRows(Table.in_memory(X, Units(len(X), groups), **options))


def grid_rows(rows, ball, groups=None):
    """A handle of rows in memory that are integers already."""
    rows = Rows.of(np.asarray(rows, dtype=np.float64), ball)
    return GridRows.of_rows(rows, units=Units(rows.n_rows, groups))


def quantized(X, radius, groups=None):
    """A handle of rows in memory on the grid of a ball."""
    return GridRows.quantize(table_rows(X, groups), domain_of(radius, X.shape[1]))


def points_of(rows, ball=2.0**24, active=None):
    """A handle of integer points in memory, each of which is a unit."""
    return GridRows.of_rows(Rows.of(np.asarray(rows, dtype=np.float64), ball), active)


def exact(answer):
    """What is in an answer, or in each of several."""
    if isinstance(answer, Sealed):
        return exact_of(answer)
    return tuple(exact_of(each) for each in answer)


def sealed_scores(scores, most=1):
    """Scores as a question would answer them: none moves by more than `most`."""
    scores = np.asarray(scores)
    return Sealed(scores, Claim.of_entries(most, len(scores)), UnitFacts(), "scores")
