"""The one door for tables, and for the weights of their rows.

Whatever a user gives becomes rows of numbers, or columns of entries. Before the charge
:func:`schema` looks at types alone, which are public, as are its errors; after it :func:`numbers`
and :func:`columns` read the rows. What has no type of its own is read entry by entry: what becomes
of a row never depends on another one. No error quotes data: of what other code raises only the type
is told.

The weights of rows are checked here, too, and applied to scores.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from itertools import chain
from types import MethodType, SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import validate_data

from ._columns import (
    NUMBERS,
    TARGETS,
    WORDS,
    Schema,
    check_numbers,
    expected_table,
    not_numeric,
    places_of,
    schema_of_columns,
    wide_enough,
)
from ._costs.numbers import is_integer, is_real
from ._privacy._entries import (
    Wrong,
    dtype_of,
    entries_of,
    exact_integers,
    floats,
    is_column,
    is_sequence,
    items_of,
    kind_of,
    object_array,
    quietly_read,
)
from ._rows.single_rows import is_small, narrowed, row_guard

_MISSING = (
    "Drop rows with missing values, or fill in constants chosen without the data: both use one "
    "row at a time. A scikit-learn imputer learns what it fills in from the rows, so it is not "
    "private."
)
_DEEP = "Found array with dim {}, while dim <= 2 is required."
_RAGGED = "{} must be a table: its rows differ in length, or are not rows."


# -- by type alone ---------------------------------------------------------------------------------


def schema(X: Any, name: str = "X") -> Schema:
    """The schema of the table in the argument `name`, by type alone; an error for what is none."""
    return quietly_read(name, _schema, X, name)


def see_columns(estimator: Any, X: Any, given: Schema, *, reset: bool) -> None:
    """Set the numbers and names of columns of an estimator, or check them, as scikit-learn does."""
    X = X.to_native() if hasattr(type(X), "__narwhals_namespace__") else X
    shown = X if given.labels is not None else SimpleNamespace(shape=(0, given.n_features))
    validate_data(estimator, shown, reset=reset, skip_check_array=True)


def _schema(X: Any, name: str) -> Schema:
    if isinstance(X, np.matrix):
        raise Wrong(TypeError, f"{name} must be an array, not an np.matrix.")
    if isinstance(X, type):
        raise Wrong(ValueError, expected_table(name))
    frame = frame_of(X)
    if frame is not None:
        kinds = [kind_of(each) for each in frame.dtypes]
        return schema_of_columns(frame.labels, kinds, frame.sparse, frame.dtype, name)
    if is_sequence(X):
        width = common_width(X)
        if width is None:
            raise Wrong(ValueError, expected_table(name))
        return Schema(wide_enough(width, name))
    if not hasattr(X, "__array__") and not issparse(X):
        raise Wrong(ValueError, expected_table(name))
    if not hasattr(X, "shape"):  # the values alone tell
        X = np.asarray(X)
    shape = X.shape
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise Wrong(ValueError, expected_table(name, series=hasattr(X, "to_frame")))
    if len(shape) > 2:
        raise Wrong(ValueError, f"{name}: {_DEEP.format(len(shape))}")
    declared = X.dtype if isinstance(getattr(X, "dtype", None), np.dtype) else None
    single = np.dtype(np.float32 if declared == np.float32 else np.float64)
    return Schema(
        wide_enough(shape[1], name), None, (kind_of(declared),), bool(issparse(X)), single
    )


@dataclass(frozen=True)
class _Frame:
    """A data frame of any library: labels and types of its columns, and how to get at them."""

    table: Any
    labels: list[Any]
    dtypes: list[Any]
    column: Callable[[int], Any]
    take: Callable[[list[int]], Any]  # a frame of some columns
    sparse: bool = False

    @property
    def dtype(self) -> np.dtype:
        """float32 if NumPy makes that of all columns; float64 otherwise."""
        kinds = {each.kind if isinstance(each, np.dtype) else "" for each in self.dtypes}
        single = kinds <= set("biuf") and np.result_type(*self.dtypes) == np.float32
        return np.dtype(np.float32 if single else np.float64)


def in_memory_frame(kind: type) -> bool:
    """True if a type is that of a data frame whose rows are in memory: what `_frame` takes."""
    if hasattr(kind, "__narwhals_namespace__"):
        return not hasattr(kind, "collect")
    ways = (("iloc", "columns"), ("get_columns",), ("column", "schema"))
    return any(all(hasattr(kind, name) for name in names) for names in ways)


def frame_of(X: Any) -> _Frame | None:
    """A data frame in memory, or None. Asked by type: lazy ones warn whoever asks an object."""
    kind = type(X)
    if hasattr(kind, "__narwhals_namespace__") and hasattr(kind, "to_native"):
        return frame_of(X.to_native())
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):  # pandas, and what looks like it
        dtypes = list(X.dtypes)
        # Others than zeros may be left out, too: such columns are dense.
        sparse = bool(dtypes) and all(
            str(each).startswith("Sparse[") and each.fill_value == 0 for each in dtypes
        )
        places = X.iloc
        return _Frame(
            X, list(X.columns), dtypes, lambda i: places[:, i], lambda i: places[:, i], sparse
        )
    if hasattr(kind, "get_columns"):  # polars
        return _Frame(X, list(X.columns), list(X.dtypes), X.to_series, lambda i: X[:, i])
    if hasattr(kind, "column") and hasattr(kind, "schema"):  # Arrow
        return _Frame(X, list(X.schema.names), list(X.schema.types), X.column, X.select)
    return None


def in_order(X: Any, names: Sequence[str] | None) -> Any:
    """A data frame with its columns in the order of `names`; an error if these are others, or if
    the first part has none (`names` is None). What has no labels is taken by position."""
    frame = frame_of(X)
    if frame is None:
        return X
    if names is None:
        if all(isinstance(label, str) for label in frame.labels):
            raise ValueError("X names columns, and those of the first part have no names.")
        return X
    places = places_of(frame.labels, names, "X")
    return X if places is None else frame.take(places)


# -- rows of numbers -------------------------------------------------------------------------------


@row_guard
def read_table(X: Any, name: str, *, single: bool = False, finite: bool = True) -> np.ndarray:
    """A dense table of numbers in the argument `name`, as float64; `single`: or float32."""
    given = schema(X, name)
    check_numbers(given, name)
    rows = numbers(X, given, name, finite=finite)
    return rows if single else rows.astype(np.float64, copy=False)


def read_vector(values: Any, name: str) -> np.ndarray:
    """Numbers, one for each of something, as float64: not all of them need be finite."""
    check_vector(values, name)
    numbers, wrong = quietly_read(name, lambda: floats(entries_of(values)))
    if wrong:
        raise ValueError(f"{name} must be a vector of numbers.")
    return numbers


def integers(values: Any, name: str) -> np.ndarray | None:
    """Integers, one for each of something; None for others."""
    entries = column(values, name) if is_column(values) else np.empty(0)
    if entries.dtype == object and all(is_integer(value) for value in entries.tolist()):
        entries = exact_integers(entries.tolist())
    return entries if entries.dtype.kind in "iu" else None


def check_target(y: Any, kinds: Sequence[str] = TARGETS) -> None:
    """Refuse what is no target by its type; one column may stand for a vector, as elsewhere."""
    check_vector(quietly_read("y", _only_column, y), "y", kinds)


def column(values: Any, name: str) -> np.ndarray:
    """One entry for each row: an array of the type that is declared, or of objects as they are."""
    values = quietly_read(name, _only_column, values)
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    entries = quietly_read(name, entries_of, values)
    return entries if isinstance(entries, np.ndarray) else object_array(entries)


def _only_column(values: Any) -> Any:
    """The only column of a table; what is no table as it is."""
    frame = frame_of(values)
    if frame is not None:
        return frame.column(0) if len(frame.labels) == 1 else values
    one = isinstance(values, np.ndarray) and values.shape[1:] == (1,)
    return values[:, 0] if one else values


def check_vector(values: Any, name: str, kinds: Sequence[str] = NUMBERS) -> None:
    """Refuse what is no column, or one of other declared kinds, by its type alone."""
    if not quietly_read(name, is_column, values):
        raise ValueError(f"{name} must be a vector, with one entry for each row.")
    kind = quietly_read(name, lambda: kind_of(dtype_of(values)))
    if kind not in kinds:
        what = " or ".join(f"{each}s" for each in ("number", "text") if each in kinds) or "bytes"
        raise ValueError(f"{name} must be a vector of {what}, not {WORDS.get(kind, f'{kind}s')}.")


@row_guard
def numbers(
    X: Any, given: Schema, name: str = "X", *, finite: bool = True, min_rows: int = 1
) -> Any:
    """The rows of a table whose schema has been checked, as float64 or float32; CSR if sparse.

    An error for entries that are no numbers, which quotes none of them."""
    rows, wrong, columns = quietly_read(name, _read, X, given)
    if wrong:
        raise _error_of(wrong, columns, name)
    # What is no array by itself may state another shape than its values have. Plans believe it.
    if rows.ndim != 2 or rows.shape[1] != given.n_features:
        raise ValueError(f"{name} must have the number of columns that its shape states.")
    if rows.shape[0] < min_rows:
        raise ValueError(f"{name}: Found array with 0 sample(s) while a minimum of 1 is required.")
    if finite:
        _check_finite(rows.data if given.sparse else rows, name)
    return rows


@row_guard
def rows_of(X: Any, given: Schema) -> np.ndarray:
    """All rows of a table as float64, with NaN for what is no number in them."""
    return _read(X, given)[0].astype(np.float64, copy=False)


def _check_finite(values: np.ndarray, name: str) -> None:
    """No setting of scikit-learn turns this off: guarantees and results rely on it."""
    if is_small(values) or np.isfinite(values).all():
        return
    if np.isnan(values).any():
        raise ValueError(f"Input {name} contains NaN." + f" {_MISSING}" * (name == "X"))
    raise ValueError(f"Input {name} contains infinity or a value too large for {values.dtype!r}.")


def _error_of(wrong: set[str], columns: list[str], name: str) -> Exception:
    """The error for entries that are no numbers; `columns` of a data frame that hold them."""
    if "ragged" in wrong:
        return ValueError(_RAGGED.format(name))
    if "nested" in wrong:
        return ValueError(
            f"{name} must be a table, with one number in each place: {_DEEP.format(3)}"
        )
    if columns:
        return ValueError(not_numeric(columns, name))
    if wrong & {"object", "complex"}:
        return TypeError(f"{name} must be numeric: its argument must be a string or a real number.")
    return ValueError(f"{name} must be numeric: it contains text or other objects.")


def _read(X: Any, given: Schema) -> tuple[Any, set[str], list[str]]:
    """Rows of floats (NaN for what is no number), what is wrong with entries, in which columns."""
    frame = frame_of(X)
    if given.sparse:
        return _canonical(X if frame is None else frame.table.sparse.to_coo(), given)
    if frame is not None:
        return _read_frame(frame, given)
    if is_sequence(X):
        return (*_read_rows(_rows(X, given.n_features), given.n_features), [])
    return (*_read_array(X, given), [])


def _read_rows(rows: list[Any], width: int) -> tuple[np.ndarray, set[str]]:
    """Rows of a list: arrays of numbers as they are, others entry by entry."""
    table = np.full((len(rows), width), np.nan)
    typed = [i for i, row in enumerate(rows) if isinstance(row, np.ndarray)]
    listed = [i for i, row in enumerate(rows) if isinstance(row, list | tuple)]
    if typed:
        table[typed] = np.stack([rows[i].astype(np.float64, copy=False) for i in typed])
    values, wrong = floats([*chain.from_iterable(rows[i] for i in listed)])
    table[listed] = values.reshape(-1, width)
    return table, wrong | ({"ragged"} if len(typed) + len(listed) < len(rows) else set())


def _read_array(X: Any, given: Schema) -> tuple[np.ndarray, set[str]]:
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    array = np.asarray(X)
    kind = kind_of(array.dtype)
    if kind not in NUMBERS:  # of what had not declared it
        return np.full(array.shape, np.nan), {"text" if kind == "text" else "object"}
    if array.dtype == object:
        values, wrong = floats(array.ravel().tolist())
        array = values.reshape(array.shape)
    else:
        array, wrong = array.astype(given.dtype, copy=False), set()
    return (array if masked is None else np.where(masked, np.nan, array)), wrong


def _read_frame(frame: _Frame, given: Schema) -> tuple[np.ndarray, set[str], list[str]]:
    """A data frame at once, where NumPy knows the types of all columns, or column by column."""
    if all(isinstance(each, np.dtype) and each.kind in "biuf" for each in frame.dtypes):
        return np.asarray(frame.table, dtype=given.dtype), set(), []
    pairs = zip(map(frame.column, range(given.n_features)), given.kinds, strict=True)
    read = [_read_column(column, kind) for column, kind in pairs]
    columns = [f"{label}"[:40] for label, (_, bad) in zip(frame.labels, read, strict=True) if bad]
    rows = np.column_stack([values for values, _ in read])
    return rows, set().union(*(bad for _, bad in read)), columns


def _read_column(column: Any, kind: str) -> tuple[np.ndarray, set[str]]:
    declared = dtype_of(column)
    coded = hasattr(declared, "categories") or hasattr(declared, "value_type")
    if kind == "object" or coded or "128" in str(declared):  # more bits than NumPy's types have
        return floats(entries_of(column))
    if hasattr(column, "iloc"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), set()
    return np.asarray(column, dtype=np.float64), set()


def _canonical(X: Any, given: Schema) -> tuple[csr_array, set[str], list[str]]:
    """Sparse rows of sorted columns; duplicates are added up in the order stored."""
    if X.format in ("coo", "bsr"):  # their own conversion adds up in any order
        X = X.tocoo()
        order = np.lexsort((X.col, X.row))
        ends = np.append(0, np.cumsum(np.bincount(X.row, minlength=X.shape[0])))
        X = csr_array((X.data[order], X.col[order], ends), shape=X.shape)
    rows = csr_array(X)
    values, wrong = floats(rows.data.tolist()) if rows.dtype == object else (rows.data, set())
    rows = csr_array((values.astype(given.dtype), rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.tocsc()
        rows.sum_duplicates()
        rows = rows.tocsr()
    return rows, wrong, []


def _width(row: Any) -> int | None:
    """Number of entries of a row of a list, by its type alone; None if it is no row."""
    if issubclass(type(row), type | dict):
        return None
    try:
        if is_sequence(row):
            return len(items_of(row))
        flat = hasattr(row, "__len__") and hasattr(row, "__array__")
        return len(row) if flat and len(getattr(row, "shape", (0,))) == 1 else None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # of the code of one row, which may ask to end the process
        return None


def common_width(X: Sequence[Any]) -> int | None:
    """Number of entries of most rows of a list, by their types; None if most are no rows. No row
    decides alone: one that differs is told where rows are read."""
    rows = set(map(type, X)) <= {list, tuple}
    found = Counter(map(len if rows else _width, X)).most_common(1)
    return found[0][0] if found else None


def _rows(X: Sequence[Any], width: int) -> list[Any]:
    """The entries of each row of a list, each on its own; None for what is no row of a width."""
    if set(map(type, X)) <= {list, tuple} and set(map(len, X)) <= {width}:
        return list(X)
    return [_row(row, width) for row in X]


def _row(row: Any, width: int) -> list[Any] | np.ndarray | None:
    try:
        if _width(row) != width:
            return None
        entries = entries_of(row)
        typed = isinstance(entries, list) or entries.dtype.kind in "biuf"
        return entries if typed else list(entries)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # of the code of one row, which may ask to end the process
        return None


# -- weights ---------------------------------------------------------------------------------------


NO_WEIGHT = (
    "sample_weight: every weight is zero, or less than max_weight / 2**20 and rounded to zero."
)
"""Where no row is left. A table without rows is refused too, as scikit-learn asks."""

_Method = TypeVar("_Method", bound=Callable)

_NO_WEIGHTS = (
    "sample_weight must be a number or an array of shape (n_samples,), finite and not negative."
)
_NO_LARGEST = (
    "sample_weight needs max_weight: give the largest weight that a unit may have. It must be "
    "public, for instance from the design of the survey; do not compute it from the data."
)


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of rows, a number or one for each, as finite float64 of at least 0, or an error."""
    try:
        if is_real(sample_weight):
            weights = np.full(n_rows, float(sample_weight))
        else:
            weights = read_vector(sample_weight, "sample_weight")
    except (OverflowError, TypeError, ValueError):
        weights = None
    if weights is None or weights.shape != (n_rows,):
        raise ValueError(_NO_WEIGHTS)
    if not ((weights >= 0) & (weights < np.inf)).all():  # of NaN neither is true
        raise ValueError(_NO_WEIGHTS)
    return weights


def largest_weight(sample_weight: Any, max_weight: float | None) -> float | None:
    """The weight of a whole unit, or None, before the charge: whether weights were given is public,
    and so is one number for all rows. Without `max_weight` an array is refused."""
    if sample_weight is None:
        return None
    if not is_real(sample_weight):
        check_vector(sample_weight, "sample_weight")
    if max_weight is not None:
        return max_weight
    if not is_real(sample_weight):
        raise ValueError(_NO_LARGEST)
    if 1e-100 < sample_weight < 10**100:  # type: ignore[operator]
        return float(sample_weight)
    raise ValueError("sample_weight must be positive if it is a single number for all rows.")


def with_max_weight(fit: _Method) -> _Method:
    """A `fit` that has `sample_weight` in its signature where the estimator has a `max_weight`, for
    those who look for the parameter, as scikit-learn's ``has_fit_parameter`` does."""
    return cast(_Method, _FitWithWeights(fit))


class _FitWithWeights:
    def __init__(self, fit: Callable) -> None:
        self.fit = fit
        signature = inspect.signature(fit)
        others = [p for name, p in signature.parameters.items() if name != "sample_weight"]
        # No function of its own: it would be one more frame between a warning and its cause.
        self.unweighted = update_wrapper(partial(fit), fit)
        self.unweighted.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is None:
            return self.fit
        return MethodType(self.unweighted if instance.max_weight is None else self.fit, instance)


def weighted_mean(values: np.ndarray, sample_weight: Any) -> float:
    """Mean of a number for each row by the weights that the caller of a score gives, unclipped.

    0 where no row has a weight.

    >>> weighted_mean(np.array([1.0, 4.0]), [2, 1]), weighted_mean(np.array([1.0, 4.0]), 0)
    (2.0, 0.0)
    """
    if sample_weight is None:
        return float(narrowed(values.mean(), np.float64))
    weights = check_weights(sample_weight, len(values))
    weights = weights / max(weights.max(initial=0.0), 1e-300)  # so that their sum does not overflow
    return float(narrowed((weights / max(weights.sum(), 1e-300) * values).sum(), np.float64))
