"""Tables on Spark: data frames, and RDDs of arrays.

The states are a persisted RDD with one element for each part, made of the one before it and of the
rows, which Spark reads again in each pass unless the user has cached them.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._door import schema
from .._rows.table import PassFunction, SplitFunction
from ..exceptions import PartError
from ._sources import CheckedSource, Columns, EngineInput, Reason, columns_of, quietly
from ._steps import (
    ClusterEngine,
    Given,
    Message,
    Split,
    Step,
    asked,
    columns_or_words,
    name_of,
    of_source,
    pieces_of,
    rows_of,
    run,
    total,
)

_on_spark = partial(asked, "Spark", "a stopped session")

# Names of Spark's types, and what NumPy calls them. Others hold no numbers.
_TYPES = {
    "boolean": "bool", "tinyint": "i1", "smallint": "i2", "int": "i4", "bigint": "i8",
    "float": "f4", "double": "f8", "decimal": "f8",
}  # fmt: skip


class SparkEngine(ClusterEngine):
    """Parts held by Spark, an element of the RDD (rows, or a `Reason`) for each partition."""

    def __init__(self, columns: Columns, rows: Any) -> None:
        self.n_parts, self._rows, self._context = rows.getNumPartitions(), rows, rows.context
        self._held: Any = None
        self._steps = rows.mapPartitionsWithIndex(partial(_first_step, columns))

    def _asked(self, call: Callable[[], Any]) -> Any:
        return _on_spark(call)

    def _total(self, function: PassFunction, broadcast: tuple) -> Any:
        from pyspark import StorageLevel

        before = self._held
        steps = self._next(run, function, broadcast).persist(StorageLevel.MEMORY_AND_DISK)
        self._steps = self._held = steps
        self._context.setJobDescription(f"dp-{name_of(function, broadcast)}")
        try:
            return steps.map(_sums_of).treeReduce(_two)
        finally:
            self._context.setJobDescription(None)
            if before is not None:
                before.unpersist()

    def _results(self, tasks: Any, name: str) -> list:
        self._context.setJobDescription(f"dp-{name}")
        try:
            results = tasks.collect()
        finally:
            self._context.setJobDescription(None)
        return [result for _, result in sorted(results, key=_number)]

    def _hold_no_rows(self) -> None:
        self._steps, self._rows, self._held = self._steps.values(), None, None

    def _brought(
        self, task: Callable, split: SplitFunction, use: Callable, n_tasks: int, broadcast: tuple
    ) -> Any:
        """Run tasks on their pieces of all parts, one in each partition: (number, result)."""
        parts = self._next(pieces_of, Split(split, n_tasks), broadcast)
        pieces = parts.mapPartitionsWithIndex(_addressed)
        message = self._context.broadcast(Message(use, broadcast))
        # The key is the number of the task, and so is the partition that it goes to.
        return pieces.groupByKey(n_tasks, _itself).map(partial(_of_pieces, task, message))

    def _next(self, step: Callable, function: Callable, broadcast: tuple) -> Any:
        message = self._context.broadcast(Message(function, broadcast))
        if self._rows is None:  # they are in the states
            return self._steps.map(partial(_alone, step, message))
        return self._steps.zip(self._rows).map(partial(_pair, step, message))


def _first_step(columns: Columns, number: int, rows: Iterator[Any]) -> Iterator[Step]:
    """The states before the first pass; the rows come along with every step."""
    yield Step(number, CheckedSource(number, columns, Given()))


def _pair(step: Callable, message: Any, pair: tuple) -> Any:
    before, rows = pair
    return step(before, message.value, rows)


def _alone(step: Callable, message: Any, before: Step) -> Any:
    return step(before, message.value)


def _addressed(part: int, held: Iterator[list]) -> Iterator[tuple]:
    """The pieces of a part, under the numbers of the tasks that they go to."""
    for pieces in held:
        yield from ((number, (part, piece)) for number, piece in enumerate(pieces))


def _of_pieces(task: Callable, message: Any, addressed: tuple) -> tuple:
    """Run a task on pieces that have come in any order."""
    number, pieces = addressed
    return number, task(number, message.value, [piece for _, piece in sorted(pieces, key=_number)])


def _itself(number: int) -> int:
    return number


def _number(pair: tuple) -> int:
    return pair[0]


def _sums_of(step: Step) -> Any:
    return step.sums


def _two(one: Any, other: Any) -> Any:
    return total((one, other))


# -- collections -----------------------------------------------------------------------------------


def from_frame(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A table from a data frame of Spark; no groups and weights: frames have no common order."""
    _refuse(groups, sample_weight)
    if ".connect." in type(X).__module__:
        raise TypeError(
            "X must be a data frame of a Spark session of this program, not of Connect."
        )
    kinds = {name: kind.partition("(")[0] for name, kind in _on_spark(lambda: X.dtypes)}
    if len(kinds) < len(X.columns):
        raise ValueError("X: the names of columns must differ.")
    if not set(kinds.values()) <= _TYPES.keys():
        raise ValueError(
            "X must be numeric: it has columns of other types. A column of vectors is split by "
            "pyspark.ml.functions.vector_to_array."
        )
    example = [np.empty((0, 1), dtype=_TYPES[kind]) for kind in kinds.values()]
    read = quietly(lambda: columns_of(np.hstack(example) if example else np.empty((0, 0))))
    columns = Columns(read.n_features, tuple(kinds), read.dtype)

    def rows() -> Any:
        return X.mapInArrow(_packed, "rows binary").rdd.mapPartitions(partial(_unpacked, columns))

    return _input(columns, rows)


def from_rdd(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A table from an RDD whose elements are rows, or tables; an executor looks at one."""
    _refuse(groups, sample_weight)
    columns = _on_spark(lambda: X.map(_columns_of_rows).take(1))
    if not columns:
        raise ValueError("X: Found array with 0 sample(s) while a minimum of 1 is required.")
    if isinstance(columns[0], str):
        raise PartError(columns[0])
    return _input(columns[0], lambda: X.mapPartitions(partial(_joined, columns[0])))


def _input(columns: Columns, rows: Callable[[], Any]) -> EngineInput:
    def rowwise(function: Callable, example: np.ndarray) -> Any:
        answered = partial(_answers, columns, function)
        return _on_spark(lambda: rows().mapPartitionsWithIndex(answered))

    return EngineInput(
        "spark", columns, lambda n_jobs: SparkEngine(columns, _on_spark(rows)), rowwise
    )


def _refuse(groups: Any, sample_weight: Any) -> None:
    for name, values in (("groups", groups), ("sample_weight", sample_weight)):
        if values is not None:
            raise TypeError(f"{name} cannot be combined with a Spark collection.")


def _columns_of_rows(element: Any) -> Columns | str:
    return columns_or_words(_table_of(element))


def _table_of(element: Any) -> Any:
    """An element of an RDD as a table: a row is one of a single row."""
    try:
        schema(element)
    except (TypeError, ValueError):
        return [element]
    return element


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Arrow's batches as pickled arrays, or a pickled reason."""
    import pyarrow

    for batch in batches:
        try:
            rows: Any = np.asarray(pyarrow.Table.from_batches([batch]))
        except Exception as error:
            rows = Reason(f"it could not be read ({type(error).__name__})")
        yield pyarrow.RecordBatch.from_pydict({"rows": [pickle.dumps(rows)]})


def _unpacked(columns: Columns, packed: Iterator[Any]) -> Iterator[Any]:
    return _joined(columns, (pickle.loads(row[0]) for row in packed))


def _joined(columns: Columns, pieces: Iterator[Any]) -> Iterator[Any]:
    """One array of the rows of a partition; of none, an array without rows."""
    try:
        joined = list(pieces)
        reasons = [piece for piece in joined if isinstance(piece, Reason)]
        none = np.empty((0, columns.n_features), dtype=columns.dtype)
        # Each by itself: one array of all would take the type of one odd row.
        tables = [] if reasons else [columns.check(_table_of(piece)) for piece in joined]
        yield reasons[0] if reasons else np.concatenate([none, *tables])
    except Reason as reason:
        yield reason
    except Exception as error:
        yield Reason(f"it could not be read ({type(error).__name__})")


def _answers(
    columns: Columns, function: Callable, number: int, rows: Iterator[Any]
) -> Iterator[np.ndarray]:
    """Apply a function to the rows of a partition, once they have been checked."""
    for piece in rows:
        step = Step(number, CheckedSource(number, columns, Given()))
        yield rows_of(step, Message(of_source, (function,)), piece)
