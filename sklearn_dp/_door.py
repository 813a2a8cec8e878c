"""The one door for tables: from whatever a user gives to rows of numbers, or columns of entries.

A fit comes in twice, and the charge lies in between:

1. :func:`schema` and the checks of what it has found look at types alone: the container, the
   declared types and the names of columns. All that is public, and so are its errors.
2. :func:`numbers` and :func:`columns` read the rows. What has no type of its own (a list of rows, a
   column of objects) is read entry by entry: what becomes of a row never depends on another one.

No error quotes data: of what other code raises only the type is told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import validate_data

from ._privacy._checks import is_integer
from ._privacy._entries import (
    Wrong,
    dtype_of,
    entries_of,
    floats,
    is_column,
    is_sequence,
    items_of,
    kind_of,
    object_array,
    quietly_read,
    unwrapped,
)
from ._privacy._rounding import exact_integers
from ._rows.single_rows import is_small, row_guard

PROJECT = (
    "Project it to a few dozen features first with SparseRandomProjection(dense_output=True), or "
    "create only a few with HashingVectorizer(n_features=...): neither depends on the data, so "
    "neither costs privacy. A dense copy would have noise in every one of its features."
)
"""What to do with sparse or very many features, for errors."""

_MISSING = (
    "Drop rows with missing values, or fill in constants chosen without the data: both use one "
    "row at a time. A scikit-learn imputer learns what it fills in from the rows, so it is not "
    "private."
)
_OTHER_COLUMNS = (
    "Drop columns that are not features; pass the owner of each row as groups; encode categories "
    "with PublicEncoder, and turn dates into days since a fixed one."
)
NUMBERS = ("number", "object")
"""What columns of numbers may declare; an object may be one."""

TARGETS = ("number", "text", "bytes", "object")
"""The same of labels."""

_CATEGORIES = ("number", "text", "object")
_WORDS = {
    "date": "dates or times",
    "interval": "intervals",
    "bytes": "bytes",
    "complex": "complex numbers",
    "other": "values of a type that is neither numbers nor texts",
}


_SPARSE = "{} is sparse, and this estimator needs dense rows. " + PROJECT
_DEEP = "Found array with dim {}, while dim <= 2 is required."
_RAGGED = "{} must be a table: its rows differ in length, or are not rows."


@dataclass(frozen=True)
class Schema:
    """Public facts of a table, from its type alone, and no value of it."""

    n_features: int
    labels: tuple[Any, ...] | None = None  # of the columns of a data frame, whatever they are
    kinds: tuple[str, ...] = ("object",)  # of each column, or one for all; see `kind_of`
    sparse: bool = False
    dtype: np.dtype = np.dtype(np.float64)  # or float32: of the rows once they are read

    def at(self, places: Sequence[int]) -> Self:
        """Return the schema of some of the columns of a data frame."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in places)
        kinds = self.kinds if labels is None else tuple(self.kinds[i] for i in places)
        return replace(self, n_features=len(places), labels=labels, kinds=kinds)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have texts for names."""
        labels = self.labels or (None,)
        return self.labels if all(isinstance(label, str) for label in labels) else None

    def other_than(self, kinds: Sequence[str]) -> list[tuple[str | None, str]]:
        """Label, to be shown, and kind of each column that holds something else."""
        shown = (None,) if self.labels is None else [f"{label}"[:40] for label in self.labels]
        each = zip(shown, self.kinds, strict=True)
        return [(label, kind) for label, kind in each if kind not in kinds]


# -- by type alone ---------------------------------------------------------------------------------


def schema(X: Any, name: str = "X") -> Schema:
    """Return the schema of the table in the argument `name`, by type alone; an error for what is
    none."""
    return quietly_read(name, _schema, X, name)


def check_numbers(given: Schema, name: str = "X", *, sparse: bool = False) -> None:
    """Refuse a table that declares other columns than numbers; `sparse`: whether it may be so."""
    if given.sparse and not sparse:
        raise TypeError(_SPARSE.format(name))
    wrong = given.other_than(NUMBERS)
    if not wrong:
        return
    if given.labels is not None:
        raise ValueError(_not_numeric([label for label, _ in wrong], name))
    kind = wrong[0][1]
    if kind == "complex":
        raise ValueError(f"Complex data not supported: {name} must be real.")
    dates = "dates are not numbers. Turn them into days since a fixed one"
    what = dates if kind == "date" else "it contains text or other objects"
    raise ValueError(f"{name} must be numeric: {what}.")


def check_categories(given: Schema, name: str = "X") -> None:
    """Refuse a table that declares columns of what is no category."""
    if given.sparse:
        raise TypeError(_SPARSE.format(name))
    for label, kind in given.other_than(_CATEGORIES):
        where = name if label is None else f"{name}: column {label!r}"
        words = f"{where} holds {_WORDS[kind]}, which are neither numbers nor categories"
        if kind == "complex":
            words = f"Complex data not supported: {words}"
        days = "days since a fixed one, or into " if kind == "date" else ""
        raise ValueError(f"{words}: turn them into {days}text, as astype(str) does.")


def see_columns(estimator: Any, X: Any, given: Schema, *, reset: bool) -> None:
    """Set the numbers and names of columns of an estimator, or check them, as scikit-learn does."""
    X = X.to_native() if hasattr(type(X), "__narwhals_namespace__") else X
    seen = X if given.labels is not None else SimpleNamespace(shape=(0, given.n_features))
    validate_data(estimator, seen, reset=reset, skip_check_array=True)


def _schema(X: Any, name: str) -> Schema:
    if isinstance(X, np.matrix):
        raise Wrong(TypeError, f"{name} must be an array, not an np.matrix.")
    if isinstance(X, type):
        raise Wrong(ValueError, _expected_table(name))
    frame = _frame(X)
    if frame is not None:
        return _schema_of_frame(frame, name)
    if is_sequence(X):
        # No row decides alone: what is no row is told where rows are read, wherever it stands.
        widths = (_width(row) for row in X)
        width = next((each for each in widths if each), None)
        if width is None and (not len(X) or _width(X[0]) is None):
            raise Wrong(ValueError, _expected_table(name))
        return Schema(_wide_enough(width or 0, name))
    if not hasattr(X, "__array__") and not issparse(X):
        raise Wrong(ValueError, _expected_table(name))
    if not hasattr(X, "shape"):  # the values alone tell
        X = np.asarray(X)
    shape = X.shape
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise Wrong(ValueError, _expected_table(name, series=hasattr(X, "to_frame")))
    if len(shape) > 2:
        raise Wrong(ValueError, f"{name}: {_DEEP.format(len(shape))}")
    declared = X.dtype if isinstance(getattr(X, "dtype", None), np.dtype) else None
    single = np.dtype(np.float32 if declared == np.float32 else np.float64)
    return Schema(
        _wide_enough(shape[1], name), None, (kind_of(declared),), bool(issparse(X)), single
    )


def _expected_table(name: str, series: bool = False) -> str:
    ways = f"{name}.reshape(-1, 1) if it has one feature, {name}.reshape(1, -1) if it is one row."
    if series:
        ways = f"{name}.to_frame() if it is a Series of one feature."
    words = f"Expected 2D array: {name} must have shape (n_samples, n_features)."
    return f"{words} Reshape your data: {ways}"


def _wide_enough(n_features: Any, name: str) -> int:
    if n_features < 1:
        words = "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."
        raise Wrong(ValueError, f"{name}: {words}")
    return int(n_features)


def _schema_of_frame(frame: "_Frame", name: str) -> Schema:
    if len(set(frame.labels)) < len(frame.labels):
        raise Wrong(ValueError, f"{name}: the names of columns must differ.")
    texts = {isinstance(label, str) for label in frame.labels}
    if len(texts) > 1:
        raise Wrong(
            TypeError,
            f"{name}: Feature names are only supported if all input features have string names: "
            f"some are texts and some are not. Convert all of them, for example by "
            f"{name}.columns = {name}.columns.astype(str).",
        )
    return Schema(
        _wide_enough(len(frame.labels), name),
        tuple(frame.labels),
        tuple(map(kind_of, frame.dtypes)),
        frame.sparse,
        frame.dtype,
    )


def _not_numeric(labels: list, name: str) -> str:
    """The columns of a data frame that are no numbers, by name: a schema is public."""
    others = f" (and {len(labels) - 1} more)" * (len(labels) > 1)
    return f"{name} must be numeric: column {labels[0]!r}{others} is not. {_OTHER_COLUMNS}"


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
    """Whether a type is that of a data frame whose rows are in memory: what `_frame` takes."""
    if hasattr(kind, "__narwhals_namespace__"):
        return not hasattr(kind, "collect")
    ways = (("iloc", "columns"), ("get_columns",), ("column", "schema"))
    return any(all(hasattr(kind, name) for name in names) for names in ways)


def _frame(X: Any) -> _Frame | None:
    """A data frame in memory, or None. Asked by type: lazy ones warn whoever asks an object."""
    kind = type(X)
    if hasattr(kind, "__narwhals_namespace__") and hasattr(kind, "to_native"):
        return _frame(X.to_native())
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


# -- by name ---------------------------------------------------------------------------------------


def by_name(values: Any, names: Sequence[str] | None, name: str) -> Any:
    """Put values for columns, given in `name`, in the order of the columns' names.

    A data frame whose columns, or a Series whose entries, have texts for labels; or a pair of such.
    An error if these are other names, and where the columns of `X` have none (`names` is None).
    What has no labels is taken by position.
    """
    if isinstance(values, tuple | list) and len(values) == 2:
        return tuple(by_name(side, names, name) for side in values)
    frame = _frame(values)
    labels, take = _labels(values) if frame is None else (frame.labels, frame.take)
    if names is None and names_in(values):
        raise ValueError(
            f"{name} names columns, and X has no names to tell which is which. Give X as a data "
            f"frame, or {name} as an array in the order of its columns."
        )
    if names is None:
        return values
    places = _places(labels, names, name)
    return values if places is None else take(places)


def in_one_order(values: Any, name: str) -> Any:
    """Return values in the order of the names of the first of a pair that has some: plans know no
    table."""
    names = names_in(values)
    return values if names is None else by_name(values, names, name)


def names_in(values: Any) -> list[str] | None:
    """The names of columns in what is given for columns, or in the first of a pair that has any."""
    for side in values if isinstance(values, tuple | list) and len(values) == 2 else (values,):
        frame = _frame(side)
        labels = _labels(side)[0] if frame is None else frame.labels
        if labels and all(isinstance(label, str) for label in labels):
            return labels
    return None


def matrix_by_name(matrix: Any, names: Sequence[str] | None, name: str) -> Any:
    """A square matrix for the columns of `X`, with rows and columns in the order of their names."""
    if names is None:
        return matrix
    matrix = by_name(matrix, names, name)
    labels, take = _labels(matrix)
    places = _places(labels, names, name)
    return matrix if places is None else take(places)


def _places(labels: list[Any], names: Sequence[str], name: str) -> list[int] | None:
    """Where each of the names is among the labels; None where that is its place, or no label."""
    named = bool(labels) and all(isinstance(label, str) for label in labels)
    if not named or labels == list(names):
        return None
    others = [*sorted({*names} - {*labels}), *sorted({*labels} - {*names})]
    if others or len(labels) != len(names):
        which = f": {others[0]!r} is in one of them only" if others else ""
        raise ValueError(f"{name} must have the columns of X, by their names{which}.")
    return [labels.index(each) for each in names]


def _labels(values: Any) -> tuple[list[Any], Callable[[list[int]], Any]]:
    """Those of the entries of a Series, or of the rows of a data frame, and how to take some."""
    if not hasattr(type(values), "iloc") or not hasattr(values, "index"):
        return [], list
    return list(values.index), lambda places: values.iloc[places]


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
    found, wrong = quietly_read(name, lambda: floats(entries_of(values)))
    if wrong:
        raise ValueError(f"{name} must be a vector of numbers.")
    return found


def integers(values: Any, name: str) -> np.ndarray | None:
    """Integers, one for each of something; None for others."""
    found = column(values, name) if is_column(values) else np.empty(0)
    if found.dtype == object and all(is_integer(value) for value in found.tolist()):
        found = exact_integers(found.tolist())
    return found if found.dtype.kind in "iu" else None


def check_target(y: Any, kinds: Sequence[str] = TARGETS) -> None:
    """Refuse what is no target by its type; one column may stand for a vector, as elsewhere."""
    check_vector(quietly_read("y", _only_column, y), "y", kinds)


def column(values: Any, name: str) -> np.ndarray:
    """One entry for each row: an array of the type that is declared, or of objects as they are."""
    values = quietly_read(name, _only_column, values)
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    found = quietly_read(name, entries_of, values)
    return found if isinstance(found, np.ndarray) else object_array(found)


def _only_column(values: Any) -> Any:
    """The only column of a table; what is no table as it is."""
    frame = _frame(values)
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
        raise ValueError(f"{name} must be a vector of {what}, not {_WORDS.get(kind, f'{kind}s')}.")


@row_guard
def numbers(
    X: Any, given: Schema, name: str = "X", *, finite: bool = True, min_rows: int = 1
) -> Any:
    """The rows of a table whose schema has been checked, as float64 or float32; CSR if sparse.

    An error for entries that are no numbers, which quotes none of them.
    """
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
        return ValueError(_not_numeric(columns, name))
    if wrong & {"object", "complex"}:
        return TypeError(f"{name} must be numeric: its argument must be a string or a real number.")
    return ValueError(f"{name} must be numeric: it contains text or other objects.")


def _read(X: Any, given: Schema) -> tuple[Any, set[str], list[str]]:
    """Rows of floats, what is wrong with entries, as `floats` says, and in which columns.

    NaN in the place of what is no number, and in those of a row of a list that is no row.
    """
    frame = _frame(X)
    if given.sparse:
        return _canonical(X if frame is None else frame.table.sparse.to_coo(), given)
    if frame is not None:
        return _read_frame(frame, given)
    if is_sequence(X):
        return (*_read_rows(_rows(X, given.n_features), given.n_features), [])
    return (*_read_array(X, given), [])


def _read_rows(rows: list[Any], width: int) -> tuple[np.ndarray, set[str]]:
    """Rows of a list: arrays of numbers as they are, others entry by entry."""
    found = np.full((len(rows), width), np.nan)
    typed = [i for i, row in enumerate(rows) if isinstance(row, np.ndarray)]
    listed = [i for i, row in enumerate(rows) if isinstance(row, list | tuple)]
    if typed:
        found[typed] = np.stack([rows[i].astype(np.float64, copy=False) for i in typed])
    values, wrong = floats([*chain.from_iterable(rows[i] for i in listed)])
    found[listed] = values.reshape(-1, width)
    return found, wrong | ({"ragged"} if len(typed) + len(listed) < len(rows) else set())


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
    found = [_read_column(column, kind) for column, kind in pairs]
    columns = [f"{label}"[:40] for label, (_, bad) in zip(frame.labels, found, strict=True) if bad]
    rows = np.column_stack([values for values, _ in found])
    return rows, set().union(*(bad for _, bad in found)), columns


def _read_column(column: Any, kind: str) -> tuple[np.ndarray, set[str]]:
    declared = dtype_of(column)
    coded = hasattr(declared, "categories") or hasattr(declared, "value_type")
    if kind == "object" or coded or "128" in str(declared):  # more bits than NumPy's types have
        return floats(entries_of(column))
    if hasattr(column, "iloc"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), set()
    return np.asarray(column, dtype=np.float64), set()


def _canonical(X: Any, given: Schema) -> tuple[csr_array, set[str], list[str]]:
    """Sparse rows of sorted columns, whose entries that are stored twice have been added up.

    In the order in which they are stored, whatever the format: so a sum that overflows does in all.
    """
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


# -- entries of any kind ---------------------------------------------------------------------------


def columns(
    X: Any, given: Schema, places: Sequence[int] | None = None, *, ragged: bool = False
) -> list[Any]:
    """The entries of each column as they are: an array of one exact type, or a list of objects.

    Of those at some `places`, or of all. A row of a list that has another length has None in all
    columns, if that is allowed (`ragged`).
    """
    wanted = range(given.n_features) if places is None else places
    return quietly_read("X", _columns, X, given, wanted, ragged)


def _columns(X: Any, given: Schema, places: Sequence[int], ragged: bool) -> list[Any]:
    frame = _frame(X)
    if frame is not None:
        return [entries_of(frame.column(i)) for i in places]
    if is_sequence(X):
        rows, missing = _rows(X, given.n_features), [None] * given.n_features
        if not ragged and any(row is None for row in rows):
            raise Wrong(ValueError, _RAGGED.format("X"))
        found = [missing if row is None else row for row in rows]
        return [unwrapped([row[i] for row in found]) for i in places]
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != given.n_features:
        raise Wrong(ValueError, "X must have the number of columns that its shape states.")
    return [entries_of(X[:, i]) for i in places]


def without_rows(X: Any) -> Any:
    """A data frame of the same columns and no rows."""
    frame = _frame(X)
    assert frame is not None
    table = frame.table
    return table.iloc[:0] if hasattr(table, "iloc") else table.slice(0, 0)


def is_vector(X: Any) -> bool:
    """Whether what is given for rows holds one entry for each, such as a text, by type alone."""
    return bool(quietly_read("X", is_column, X)) and not (
        is_sequence(X) and (not len(X) or _width(X[0]) is not None)
    )


def listed_rows(X: Any) -> Any:
    """A list of rows as an array of their entries, read one by one; all else as it is."""
    if not lists_rows(X) or is_vector(X):
        return X
    found = columns(X, given := schema(X))
    table = np.empty((len(X), given.n_features), dtype=object)
    for place, entries in enumerate(found):
        table[:, place] = object_array(list(entries))
    return table


def lists_rows(X: Any) -> bool:
    """Whether something is a list of rows by its type: each of them may be anything."""
    return is_sequence(X) and not isinstance(X, range)


def without_column(X: Any, column: Any) -> tuple[Any, Any]:
    """A table without one of its columns, by name or by number, and that column.

    An IndexError or a ValueError for one that is not there. No value is looked at.
    """
    given = schema(X)
    named = isinstance(column, str)
    place = (given.labels or ()).index(column) if named else range(given.n_features)[column]
    rest = [i for i in range(given.n_features) if i != place]
    frame = _frame(X)
    if frame is not None:
        return frame.take(rest), frame.column(place)
    if is_sequence(X):
        rows = _rows(X, given.n_features)
        key = unwrapped([None if row is None else row[place] for row in rows])
        return [() if row is None else [row[i] for i in rest] for row in rows], key
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    return X[:, rest], X[:, place]


def _width(row: Any) -> int | None:
    """Number of entries of a row of a list, by its type alone; None if it is no row."""
    if issubclass(type(row), type | dict):
        return None
    if is_sequence(row):
        return len(items_of(row))
    flat = hasattr(row, "__len__") and hasattr(row, "__array__")
    return len(row) if flat and len(getattr(row, "shape", (0,))) == 1 else None


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
