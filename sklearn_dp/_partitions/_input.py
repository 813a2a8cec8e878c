"""What a fit knows of a table in parts before it reads any of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._aggregate.shared.table import Engine
from ._check_part import Columns

__all__ = ["EngineInput"]


@dataclass(frozen=True)
class EngineInput:
    """A table in parts: its public columns, and how to come by its engine.

    Parameters
    ----------
    kind : str
        Where the parts are, in a word: "dask", "spark", "ray" or "pieces".
    columns : Columns
        Public.
    start : callable
        Makes the engine, for a number of threads, which those on clusters ignore. It may begin to
        read, so it is for fits that have been charged.
    rowwise : callable
        From a function ``(rows) -> array`` and an empty example of its answers to a collection of
        its answers for all rows, lazy where the table is.
    grouped, weighted : bool
        Whether rows have groups, and weights of their own.

    Examples
    --------
    >>> from sklearn_dp._partitions import engine_of
    >>> X = engine_of([np.zeros((3, 2)), np.ones((1, 2))])
    >>> X.n_features, X.feature_names, str(X.dtype), X.engine.n_parts
    (2, None, 'float64', 2)
    """

    kind: str
    columns: Columns
    start: Callable[[int | None], Engine]
    rowwise: Callable[[Callable[[np.ndarray], np.ndarray], np.ndarray], Any]
    grouped: bool = False
    weighted: bool = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.columns.n_features

    @property
    def feature_names(self) -> np.ndarray | None:
        """Names of the columns as scikit-learn keeps them, if they are texts."""
        names = self.columns.names
        return None if names is None else np.array(names, dtype=object)

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64: that of the rows once they have been checked."""
        return self.columns.dtype

    @cached_property
    def engine(self) -> Engine:
        """One for a single pass, or for tests."""
        return self.start(None)

    @property
    def shape(self) -> tuple[float, int]:
        """How many rows there are is private, and unknown."""
        return float("nan"), self.n_features
