"""From the type of `X` to who holds its parts; nothing is imported but what `X` brings along."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np

from .._columns import NUMBERS, Schema
from .._door import in_memory_frame, schema
from .._privacy._entries import dtype_of, kind_of
from .._rows.table import Engine, Table

SUPPORTED = (
    "dask.array.Array, dask.dataframe.DataFrame, pyspark.sql.DataFrame, an RDD of arrays, "
    "ray.data.Dataset, pyarrow.dataset.Dataset, polars.LazyFrame, an Arrow C stream (a query of "
    "DuckDB, a table of ibis, a pyarrow.RecordBatchReader), the path of a Parquet file or folder, "
    "and lists of arrays, of functions that return them, of delayed objects of Dask and of "
    "object references of Ray"
)
"""For errors."""

# Module of a type, its name: the module of this package, and the function of it that reads them.
_READERS = {
    ("dask.array", "Array"): ("_dask", "from_dask"),
    ("dask.dataframe", "DataFrame"): ("_dask", "from_dask"),
    ("dask_expr", "DataFrame"): ("_dask", "from_dask"),
    ("pyspark", "DataFrame"): ("_spark", "from_frame"),
    ("pyspark", "RDD"): ("_spark", "from_rdd"),
    ("pyspark", "PipelinedRDD"): ("_spark", "from_rdd"),
    ("ray.data", "Dataset"): ("_ray", "from_dataset"),
    ("ray.data", "MaterializedDataset"): ("_ray", "from_dataset"),
    ("pyarrow._dataset", "Dataset"): ("_pieces", "from_dataset"),
    ("polars", "LazyFrame"): ("_pieces", "from_lazy"),
    ("pathlib", "PurePath"): ("_pieces", "from_path"),
    ("builtins", "str"): ("_pieces", "from_path"),
}
# The same for the first element of a list.
_LIST_READERS = {
    ("dask.delayed", "Delayed"): ("_dask", "from_delayed"),
    ("dask.delayed", "DelayedAttr"): ("_dask", "from_delayed"),
    ("dask.delayed", "DelayedLeaf"): ("_dask", "from_delayed"),
    ("ray", "ObjectRef"): ("_ray", "from_references"),
}
GROUPS = ("number", "text", "bytes", "date", "interval", "complex", "object")
"""What ids of groups may declare to be."""

_CLUSTERS = ("dask", "dask_expr", "distributed", "pyspark", "ray")


@dataclass(frozen=True)
class InputInParts:
    """A table in parts: what is public of it, before anything of its rows is read."""

    kind: str  # where the parts are, in a word: "dask", "spark", "ray" or "pieces"
    columns: Any  # public: `Columns`
    # Makes the engine, for a number of threads, which those on clusters ignore. It may begin to
    # read, so it is for fits that have been charged.
    start: Callable[[int | None], Engine]
    # From a function ``(rows) -> array`` and an empty example of its answers to a collection of its
    # answers for all rows, lazy where the table is.
    rowwise: Callable[[Callable[[np.ndarray], np.ndarray], np.ndarray], Any]
    grouped: bool = False  # whether rows have groups
    weighted: bool = False  # whether they have weights of their own
    targets: bool = False  # whether they have targets instead of weights

    def opened(self, n_jobs: int | None, max_weight: float = 1.0) -> Table:
        """The table of a charged fit, read once and good; a whole unit weighs `max_weight`."""
        raise TypeError("a table in parts is opened by who holds them")

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

    @property
    def shape(self) -> tuple[float, int]:
        """How many rows there are is private, and unknown."""
        return float("nan"), self.n_features


def engine_of(
    X: Any, groups: Any = None, sample_weight: Any = None, kinds: Sequence[str] = NUMBERS
) -> InputInParts | None:
    """Who holds the parts of a table, by types alone; None for an ordinary table in memory, a
    TypeError for other collections of these libraries. `kinds` are what weights may declare."""
    X = X.to_native() if _is_lazy_narwhals(type(X)) else X
    reader = _reader_of(X)
    if reader is None:
        if type(X).__module__.partition(".")[0] in _CLUSTERS:
            raise TypeError(
                f"X must not be of type {type(X).__name__}. In parts, X may be {SUPPORTED}."
            )
        return None
    _check_beside(groups, sample_weight, kinds)
    module = import_module(f"{__package__}.{reader[0]}")
    source = getattr(module, reader[1])(X, groups, sample_weight)
    return replace(source, grouped=groups is not None, weighted=sample_weight is not None)


def _check_beside(groups: Any, sample_weight: Any, kinds: Sequence[str]) -> None:
    """Refuse groups and weights of rows by the types that their pieces declare."""
    for values, name in ((groups, "groups"), (sample_weight, "sample_weight")):
        for piece in values if isinstance(values, list | tuple) else [values]:
            typed = hasattr(type(piece), "dtype") or hasattr(type(piece), "to_pylist")
            declared = kind_of(dtype_of(piece)) if typed else "object"  # lazy ones declare none
            if declared not in (kinds if name == "sample_weight" else GROUPS):
                raise TypeError(f"{name} must be plain values for rows, not of type {declared!r}.")


def in_memory(X: Any, together: str | None = None) -> Schema:
    """The schema of a table in memory; an error for one in parts names what needs it `together`."""
    if in_parts(X):
        where = f"here, not {type(X).__name__}" if not together else f"for {together}, not in parts"
        raise TypeError(f"X must be in memory {where}.")
    return schema(X)


def in_parts(X: Any) -> bool:
    """True if a table is in parts, by types alone."""
    return _reader_of(X) is not None


def _is_lazy_narwhals(kind: type) -> bool:
    return hasattr(kind, "__narwhals_namespace__") and hasattr(kind, "collect")


def _reader_of(X: Any) -> tuple[str, str] | None:
    """The reader of a table in parts, by types alone."""
    if isinstance(X, list | tuple) and len(X):
        return _reader(type(X[0]), _LIST_READERS) or _list_reader(X)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "iu":
        return ("_pieces", "from_array")  # a copy in doubles would be read as a whole
    known, kind = _reader(type(X), _READERS), type(X)
    if _is_lazy_narwhals(kind):
        return _reader_of(X.to_native())
    if known is not None or in_memory_frame(kind) or not hasattr(kind, "__arrow_c_stream__"):
        return known
    # Single columns are streams, too: of pandas and polars, and of Arrow.
    column = hasattr(kind, "to_frame") or hasattr(kind, "chunks")
    return None if column else ("_pieces", "from_stream")


def engine_with_targets(
    X: Any, groups: Any, y: Any, kinds: Sequence[str],
    *, reader: Callable[..., InputInParts | None] = engine_of,
) -> InputInParts | None:  # fmt: skip
    """Who holds the parts of a table and of a target, which comes as weights do; None if in memory.
    A table supplied in chunks is read by :func:`engine_of_parts`."""
    try:
        source = reader(X, groups, y, kinds=kinds)
    except (TypeError, ValueError) as error:
        kind, words = type(error), str(error)
    else:
        return source and replace(source, weighted=False, targets=source.weighted)
    raise kind(words.replace("sample_weight", "y"))


def engine_of_parts(
    parts: Any, groups: Any = None, sample_weight: Any = None,
    *, name: str = "parts", kinds: Sequence[str] = NUMBERS,
) -> InputInParts:  # fmt: skip
    """Who holds a table supplied in chunks: what `engine_of` takes, or any iterable, read once."""
    source = engine_of(parts, groups, sample_weight, kinds)
    if source is not None:
        return source
    _check_beside(groups, sample_weight, kinds)
    if (
        isinstance(parts, np.ndarray)
        or not isinstance(parts, Iterable)
        or hasattr(parts, "columns")
    ):
        raise TypeError(f"{name} must be an iterable of arrays, or {SUPPORTED}.")
    reader = import_module(f"{__package__}._pieces")
    first, pieces = reader.first_of(parts)
    if first and _reader(type(first[0]), _LIST_READERS) is not None:
        every = [*first, *pieces]
        return engine_of_parts(every, groups, sample_weight, name=name, kinds=kinds)
    source = reader.from_iterable(chain(first, pieces), groups, sample_weight, name)
    return replace(source, grouped=groups is not None, weighted=sample_weight is not None)


def _reader(kind: type, readers: dict) -> tuple[str, str] | None:
    """The reader of a type, or of a type that it derives from."""
    for base in kind.__mro__:
        for (module, name), reader in readers.items():
            inside = base.__module__ == module or base.__module__.startswith(module + ".")
            if base.__name__ == name and inside:
                return reader
    return None


def _list_reader(X: Any) -> tuple[str, str] | None:
    """For lists of whole tables, or of functions that return them."""
    functions = all(callable(part) and not isinstance(part, type) for part in X)
    tables = all(len(_shape(part)) == 2 for part in X)
    return ("_pieces", "from_list") if functions or tables else None


def _shape(part: Any) -> tuple:
    try:
        shape = getattr(part, "shape", None)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # of the code of one row, which may ask to end the process
        shape = None
    return shape if isinstance(shape, tuple) else ()
