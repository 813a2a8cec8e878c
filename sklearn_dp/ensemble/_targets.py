"""Targets of tables in parts: the last column of the rows of each part, where the part is."""

from typing import Any

import numpy as np

from .._partitions import Reason, quietly
from .._rows.table import Part, PartSource
from ._output import target_column


class _WithTargets(PartSource):
    """Rows of a source, with their targets in a last column; labels of a classifier are public."""

    def __init__(self, source: Any, labels: np.ndarray | None) -> None:
        self.source, self.labels, self.number = source, labels, source.number

    def read(self) -> np.ndarray:
        """The rows as doubles, as those of a table in memory with a target are."""
        rows, given = self.source.read(), self.source.read_targets()
        target = quietly(lambda: self._column(given, len(rows)), self.number, "y")
        return np.column_stack([rows, target])

    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows()

    def _column(self, given: Any, n_rows: int) -> np.ndarray:
        try:
            return target_column(given, n_rows, self.labels)
        except ValueError as error:  # in words that quote nothing
            words = str(error)
        raise Reason(words.replace("y must", "it must", 1))


def with_targets(part: Part, labels: np.ndarray | None) -> tuple[Part, tuple]:
    """The part with targets; they are read when the rows are."""
    return part.reading(_WithTargets(part.source, labels)), ()
