"""What a fit knows of a table in parts before it reads any of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._rows.table import Engine
from ._check_part import Columns

__all__ = ["EngineInput", "check_list", "is_list_of_values"]


@dataclass(frozen=True)
class EngineInput:
    """A table in parts: its public columns, and how to come by its engine.

    >>> from sklearn_dp._partitions import engine_of
    >>> X = engine_of([np.zeros((3, 2)), np.ones((1, 2))])
    >>> X.n_features, X.feature_names, str(X.dtype), X.engine.n_parts
    (2, None, 'float64', 2)
    """

    kind: str  # where the parts are, in a word: "dask", "spark", "ray" or "pieces"
    columns: Columns  # public
    # Makes the engine, for a number of threads, which those on clusters ignore. It may begin to
    # read, so it is for fits that have been charged.
    start: Callable[[int | None], Engine]
    # From a function ``(rows) -> array`` and an empty example of its answers to a collection of its
    # answers for all rows, lazy where the table is.
    rowwise: Callable[[Callable[[np.ndarray], np.ndarray], np.ndarray], Any]
    grouped: bool = False  # whether rows have groups
    weighted: bool = False  # whether they have weights of their own
    targets: bool = False  # whether they have targets instead of weights

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


def check_list(
    values: Any, name: str, n_parts: int | None, is_piece: Callable[[Any], bool], piece: str
) -> None:
    """Refuse what is no list of a piece for each part, by types alone: before the charge.

    `values` is what a user has given for groups or weights, under `name`; None is none. `n_parts`
    is that of `X`; None: not known yet. `is_piece` tells by the type of something whether it is
    what `piece` says in words. A TypeError for a single value, other containers, and lists of other
    things; a ValueError for another number of pieces.
    """
    if values is None:
        return
    words = f"{name} must be a list with {piece} for each part of X"
    if not isinstance(values, list | tuple):
        raise TypeError(f"{words}, not {type(values).__name__}.")
    for value in values:
        if not is_piece(value):
            raise TypeError(f"{words}: it contains {type(value).__name__}.")
    if n_parts is not None and len(values) != n_parts:
        raise ValueError(f"{words}: their number differs.")


def is_list_of_values(piece: Any) -> bool:
    """Whether something is one-dimensional and holds values; none of them is looked at.

    >>> is_list_of_values([1, 2]), is_list_of_values(np.ones(3)), is_list_of_values(3.0)
    (True, True, False)
    """
    if isinstance(piece, str | bytes | bytearray | memoryview | dict | set | frozenset | type):
        return False
    sized = hasattr(piece, "__len__") and not hasattr(piece, "__dask_graph__")
    return sized and getattr(piece, "ndim", 1) == 1
