"""Targets of tables in parts: the last column of the rows of each part, where the part is."""

from typing import Any

import numpy as np

from .._rows.table import Part, PartSource
from ._aggregation import target_column


class _WithTargets(PartSource):
    """Rows of a source, with their targets in a last column; labels of a classifier are public."""

    def __init__(self, source: Any, labels: np.ndarray | None) -> None:
        self.source, self.labels, self.number = source, labels, source.number

    def read(self) -> np.ndarray:
        """The rows as doubles, as those of a table in memory with a target are."""
        rows = self.source.read()
        target = self.source.read_targets(lambda y: target_column(y, len(rows), self.labels))
        return np.column_stack([rows, target])

    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows()


def with_targets(part: Part, labels: np.ndarray | None) -> tuple[Part, tuple]:
    """The part with targets; they are read when the rows are."""
    return part.reading(_WithTargets(part.source, labels)), ()
