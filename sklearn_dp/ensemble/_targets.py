"""Targets of tables in parts: the last column of the rows of each part, where the part is."""

from typing import Any

import numpy as np

from .._partitions import (
    EngineInput,
    InParts,
    Reason,
    engine_of_parts,
    engine_with_targets,
    quietly,
)
from .._rows.table import Part, PartSource, Table
from ._output import target_column


class TargetsInParts(InParts):
    """Fits to tables in parts, with a target in the same parts."""

    def _needs_target(self) -> bool:
        """Whether a fit needs a target."""
        raise TypeError("a subclass must say whether it needs a target")

    def _kinds(self) -> tuple[str, ...]:
        """What a target may declare to hold; see `kind_of`."""
        raise TypeError("a subclass must say what a target may be")

    def _input_of_parts(self, parts: Any, groups: Any, sample_weight: Any, y: Any) -> EngineInput:
        target = y if self._needs_target() else None  # as in `fit`: others do not look at it
        found = engine_with_targets(parts, groups, target, self._kinds(), reader=engine_of_parts)
        assert found is not None, "that reader takes nothing else"
        return found

    def _fit_parts(self, found: EngineInput) -> Any:
        if self._needs_target() and not found.targets:
            raise ValueError("y must be given: the estimator needs a target.")
        return super()._fit_parts(found)

    def _open_parts(self, found: EngineInput) -> Table:
        table = super()._open_parts(found)
        if self._needs_target():
            table.update(with_targets, self._public_labels())
            table.dtype = np.dtype(np.float64)  # so are rows beside a target in memory
        return table

    def _public_labels(self) -> Any:
        """Those of a classifier; None for others."""
        raise TypeError("a subclass must say which labels there are")


class _WithTargets(PartSource):
    """Rows of a source, with their targets in a last column; labels of a classifier are public."""

    def __init__(self, source: Any, labels: np.ndarray | None) -> None:
        self.source, self.labels, self.number = source, labels, source.number

    def read(self) -> np.ndarray:
        """The rows as doubles, as those of a table in memory with a target are."""
        rows, given = self.source.read(), self.source.read_targets()
        column = quietly(lambda: self._column(given, len(rows)), self.number, "y")
        return np.column_stack([rows, column])

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
