"""Tables on this machine that are read in parts: files, streams, lists of pieces.

Each pass reads the parts again; what can be read only once is written to a temporary file first.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from .._costs.numbers import extra
from .._rows.table import LocalEngine, joined, kept
from ._sources import (
    CheckedSource,
    Columns,
    EngineInput,
    Reason,
    check_list,
    columns_of,
    has_no_columns,
    is_list_of_values,
    quietly,
)

_PART_ENTRIES = 2**23
_BATCH_ENTRIES = 2**21  # of a stream, where a part is held as it comes, as rows and as a copy

_GUESSED = ("csv", "json")  # files whose types are those of values

_PIECE = "an array, or a function that returns one,"  # of groups or weights, for errors

Reader = Callable[[], Any]


def _input(
    columns: Columns,
    readers: Callable[[], list[Reader]],
    groups: Any,
    sample_weight: Any,
    n_parts: int | None = None,
) -> EngineInput:
    """Return the input of a fit from pieces; `readers` is called when it has been charged."""
    beside = ((groups, "groups"), (sample_weight, "sample_weight"))
    for values, name in beside:
        check_list(values, name, n_parts, _is_piece, _PIECE)

    def sources() -> list[CheckedSource]:
        rows = quietly(readers)
        others = [_readers_of(values, name, len(rows)) for values, name in beside]
        return [
            CheckedSource(i, columns, *own) for i, own in enumerate(zip(rows, *others, strict=True))
        ]

    def rowwise(function: Callable, example: np.ndarray) -> np.ndarray:
        return joined(chain([example], (function(source.read()) for source in sources())))

    return EngineInput("pieces", columns, lambda n_jobs: LocalEngine(sources(), n_jobs), rowwise)


def _readers_of(values: Any, name: str, n_parts: int) -> list[Any]:
    """How groups or weights are read: as many pieces as `X` has."""
    if values is None:
        return [None] * n_parts
    check_list(values, name, n_parts, _is_piece, _PIECE)
    return [_reader_of(piece) for piece in values]


def _is_piece(piece: Any) -> bool:
    """True if it holds values of rows, or is a function that may return them."""
    lazy = hasattr(piece, "__dask_graph__") or isinstance(piece, type)
    return (callable(piece) and not lazy) or is_list_of_values(piece)


def _reader_of(piece: Any) -> Reader:
    return piece if callable(piece) else partial(_itself, piece)


def _itself(piece: Any) -> Any:
    return piece


def _slices(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of a table whose parts fit into memory many times."""
    step = max(1, _PART_ENTRIES // max(1, width))
    return (slice(start, start + step) for start in range(0, max(n_rows, 1), step))


def from_list(X: Sequence[Any], groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """Parts that are tables in memory, or functions that return one, of which the first (and the
    next ones after lists of no rows) are called for the columns before a fit is charged."""
    readers = [_reader_of(piece) for piece in X]
    seen = _up_to_columns(reader() for reader in readers)
    columns = quietly(lambda: columns_of(seen[-1]), len(seen) - 1)
    for number, piece in enumerate(X):  # of tables, types tell more; what functions return, later
        if not callable(piece):
            quietly(partial(columns.in_order, piece), number)
    return _input(columns, lambda: readers, groups, sample_weight, len(readers))


def from_array(X: np.ndarray, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """An array that should not be copied as a whole, such as integers in a file."""
    columns = quietly(lambda: columns_of(X[:0]))
    readers: list[Reader] = [partial(X.__getitem__, part) for part in _slices(*X.shape)]
    return _input(columns, lambda: readers, groups, sample_weight, len(readers))


# -- pyarrow ---------------------------------------------------------------------------------------


def from_path(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """Parquet files: a path of one, or of a folder."""
    path = Path(X)
    if not (path.is_dir() or (path.is_file() and path.suffix in (".parquet", ".pq"))):
        raise ValueError("X must be a table, or the path of a Parquet file or folder that exists.")
    try:
        from pyarrow import dataset
    except ImportError:
        dataset = None
    if dataset is None:
        raise ImportError('Parquet files need pyarrow: pip install "sklearn-dp[arrow]"')
    found = quietly(lambda: dataset.dataset(os.fspath(path), format="parquet"))
    return from_dataset(found, groups, sample_weight)


def from_dataset(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A data set of pyarrow: a part for each row group of Parquet, or file of other formats. What
    files declare of their columns is public, and looked at before a fit is charged."""
    columns = quietly(lambda: columns_of(X.schema.empty_table()))
    fragments = quietly(lambda: _fragments(X))
    schemas = [
        quietly(partial(_own_schema, each, fragments[0], X.schema), None, f"X, file {number}")
        for number, each in enumerate(fragments)
    ]
    types = [columns_of(schema.empty_table()).dtype for schema in schemas]
    columns = replace(columns, dtype=np.result_type(*types))
    return _input(columns, lambda: _row_groups(fragments, schemas), groups, sample_weight)


def _fragments(X: Any) -> list[Any]:
    try:
        fragments = X.get_fragments()
    except ValueError:
        fragments = None
    if fragments is None:
        raise Reason("it has a filter; pass X.scanner().to_reader()")
    if not (found := list(fragments)):
        raise Reason("it has no parts")
    return found


def _own_schema(fragment: Any, first: Any, schema: Any) -> Any:
    """The columns of X in the types of one file, which are not converted; a `Reason` for others."""
    import pyarrow
    from pyarrow.dataset import get_partition_keys

    file_format = getattr(fragment, "format", None)
    if file_format is not None and file_format.default_extname in _GUESSED:
        return schema
    found, names = fragment.physical_schema, {*schema.names}
    if {*found.names} - names != {*first.physical_schema.names} - names:
        raise Reason("its column names differ from those of the first file")
    # In the names of folders there may be columns, too.
    if not names <= {*found.names} | {*get_partition_keys(fragment.partition_expression)}:
        raise Reason("its column names differ from those of X")
    own = [
        found.field(name) if name in found.names else schema.field(name) for name in schema.names
    ]
    own_schema = pyarrow.schema(own)
    columns_of(own_schema.empty_table())
    return own_schema


def _row_groups(fragments: Sequence[Any], schemas: Sequence[Any]) -> list[Reader]:
    found: list[Reader] = []
    for fragment, schema in zip(fragments, schemas, strict=True):
        split = getattr(fragment, "split_by_row_group", None)
        parts = split() if split is not None else [fragment]
        found += [partial(_fragment, part, schema) for part in parts]
    return found


def _fragment(fragment: Any, schema: Any) -> Any:
    # Without threads of its own: parts may be read by several of ours.
    return fragment.to_table(schema=schema, use_threads=False)


def from_stream(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """Read an object that exports an Arrow C stream, once; it is kept, in a file where it is large.
    Groups and weights have a piece for each batch; without them small batches are put together."""
    with extra("arrow"):
        import pyarrow

    own = isinstance(X, pyarrow.RecordBatchReader)
    reader = X if own else quietly(lambda: pyarrow.RecordBatchReader.from_stream(X))
    columns = quietly(lambda: columns_of(reader.schema.empty_table()))
    most = 0 if groups is not None or sample_weight is not None else _BATCH_ENTRIES
    parts = cache(lambda: _spooled(_joined(reader, most // columns.n_features), columns))
    return _input(columns, parts, groups, sample_weight)


def _joined(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Batches, put together to tables of about so many rows; at least one."""
    import pyarrow

    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= n_rows:
            yield pyarrow.Table.from_batches(held)
            held = []
    if held:
        yield pyarrow.Table.from_batches(held)


# -- polars ----------------------------------------------------------------------------------------


def from_lazy(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A lazy frame of polars: run once, in a stream, into a temporary file."""
    import polars

    schema = quietly(X.collect_schema)
    columns = quietly(lambda: columns_of(polars.DataFrame(schema=schema)))
    return _input(columns, cache(lambda: _spooled_frame(X, columns)), groups, sample_weight)


def _spooled_frame(X: Any, columns: Columns) -> list[Reader]:
    import polars

    # Without a name: it goes away with this process, however that ends.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    X.sink_ipc(file, compression="uncompressed")
    file.seek(0)  # writes what is still on its way, too
    scan = polars.scan_ipc(file)
    finalize(scan, file.close)  # with its last reader
    n_rows = scan.select(polars.len()).collect().item()
    return [partial(_slice, scan, part) for part in _slices(n_rows, columns.n_features)]


def _slice(scan: Any, part: slice) -> Any:
    """Rows of a lazy frame."""
    return scan.slice(part.start, part.stop - part.start).collect()


# -- streams ---------------------------------------------------------------------------------------


def first_of(parts: Iterable[Any]) -> tuple[list[Any], Iterator[Any]]:
    """The first piece, if there is one, and the others."""
    pieces = iter(parts)
    return quietly(lambda: list(islice(pieces, 1)), 0), pieces


def from_iterable(
    X: Iterable[Any], groups: Any = None, sample_weight: Any = None, name: str = "parts"
) -> EngineInput:
    """Pieces that come once; the first (or those after lists of no rows) tell the columns."""
    pieces = iter(X)
    seen = _up_to_columns(pieces)
    if not seen:
        raise ValueError(f"{name} must not be empty.")
    if callable(seen[-1]):
        return from_list([*seen, *pieces], groups, sample_weight)
    columns = quietly(lambda: columns_of(seen[-1]), len(seen) - 1)
    spooled = cache(lambda: _spooled(chain(seen, pieces), columns))  # asked again for labels
    return _input(columns, spooled, groups, sample_weight)


def _up_to_columns(pieces: Iterator[Any]) -> list[Any]:
    """The pieces up to the first that has columns; all of them, if none has."""
    seen: list[Any] = []
    while not seen or has_no_columns(seen[-1]):
        found = quietly(lambda: list(islice(pieces, 1)), len(seen))
        if not found:
            break
        seen += found
    return seen


def _spooled(pieces: Iterable[Any], columns: Columns) -> list[Reader]:
    """Checked pieces, in memory, or in a file without a name where they are large."""
    checked = (
        quietly(partial(columns.check, piece), number) for number, piece in enumerate(pieces)
    )
    return [partial(_itself, rows) for rows in kept(checked)]
