"""The integer rows of a table in memory, for tests and for seeded bugs that look at them."""

from sklearn_dp._aggregate.shared.grid_table import ROWS

__all__ = ["rows_in_memory"]


def rows_in_memory(table):
    """The rows of the only part of a `GridTable`; a fit itself never has them."""
    (part,) = table.table.local_parts()
    return part[ROWS]
