"""The parts and the integer rows of a table in memory, for tests and for seeded bugs."""

from sklearn_dp._rows.rows import ROWS

__all__ = ["parts_in_memory", "rows_in_memory"]


def parts_in_memory(table):
    """The parts of a table, after the steps that wait; a fit itself never has them."""
    table._finish()
    return list(table.engine.states)


def rows_in_memory(table):
    """The rows of the only part of a `GridTable`."""
    (part,) = parts_in_memory(table.table)
    return part[ROWS]
