"""Tables on Dask: arrays, data frames, and lists of delayed parts.

The state of a part is the future of a pure task, made of the future before it: what a dead worker
held Dask computes again, with the same bits. Without a client the same tasks run on the scheduler
that Dask is set to.

Where each part is made by tasks of its own, these travel inside of the source of the part: each
pass reads its rows again where the state is. Parts that have tasks in common (a shuffle, an array
in the memory of the client) are computed once and stay in the memory of the workers until the fit
ends, as do those that the user has persisted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from .._rows.table import PassFunction, SplitFunction
from ..exceptions import PartError
from ._sources import CheckedSource, Columns, EngineInput, check_list, columns_of, quietly
from ._steps import (
    FAN_IN,
    ClusterEngine,
    Given,
    Message,
    Split,
    Step,
    asked,
    columns_or_words,
    name_of,
    pieces_of,
    run,
    total,
)


class _NoSizes:
    """Dask does not warn of large graphs in this block: it would tell how large they are. The limit
    is the process's: the first of several threads lifts it, the last one puts it back."""

    def __init__(self) -> None:
        self._lock, self._blocks = Lock(), 0
        self._lifted: Any = None

    def __enter__(self) -> None:
        import dask

        # The first `compute` imports it, and it reads its settings then: into a branch that is
        # there already they would not all come, and on leaving the branch would go with them.
        with suppress(ImportError):
            import distributed  # noqa: F401
        with self._lock:
            if not self._blocks:
                limit = {"distributed.admin.large-graph-warning-threshold": 2**62}
                self._lifted = dask.config.set(limit)
            self._blocks += 1

    def __exit__(self, *raised: Any) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._lifted.__exit__(*raised)


NO_SIZES = _NoSizes()


def shown(function: Callable, broadcast: tuple) -> str:
    """Dask's pages show the words before the first that is not of letters."""
    return name_of(function, broadcast).replace("_", "-")


def new_key(name: str) -> str:
    """A key that no other task has, whoever else uses the cluster."""
    from dask.delayed import tokenize

    return f"dp-{name}-{tokenize(pure=False).replace('-', '')}"


def constant(value: Any, key: Any) -> Any:
    """A task that gives a value, which Dask does not look into."""
    from dask.delayed import Delayed

    return Delayed(key, {key: value})


def same(value: Any) -> Any:
    """The value: what has to be the result of a task."""
    return value


def tasks_of_pieces(
    task: Callable, parts: Sequence[Any], message: Any, n_tasks: int, piece_key: str, key: str
) -> list[Any]:
    """Tasks that get a piece of every part, in order: ``task(number, message, pieces)``."""
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layer: dict[Any, Any] = {
        (piece_key, i, number): (_piece, part.key, number)
        for i, part in enumerate(parts)
        for number in range(n_tasks)
    }
    layer |= {
        (key, number): (
            task, number, message.key, [(piece_key, i, number) for i in range(len(parts))],
        )
        for number in range(n_tasks)
    }  # fmt: skip
    name = new_key("tasks")
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[*parts, message])
    return [Delayed((key, number), graph, layer=name) for number in range(n_tasks)]


def _piece(pieces: list, number: int) -> Any:
    return pieces[number]


class OwnTasks:
    """Makes a part by its own tasks, `key` the last, inside of the task that asks for it."""

    def __init__(self, graph: dict, key: Any) -> None:
        self.graph, self._key = graph, key

    def __call__(self) -> Any:
        from dask.local import get_sync

        return get_sync(self.graph, self._key)


def own_tasks(parts: Sequence[Any]) -> list[OwnTasks] | None:
    """The tasks of each part, if no two parts share one and none holds data."""
    tasks = _tasks_of(parts)
    n_tasks = sum(len(task.graph) for task in tasks)
    every = {key: node for task in tasks for key, node in task.graph.items()}
    return tasks if n_tasks == len(every) and not any(map(_is_data, every.values())) else None


def lean_on_others(parts: Sequence[Any]) -> bool:
    """True if what makes a part is not its own: tasks of several parts, or what a client holds."""
    tasks: set = set()
    for task in _tasks_of(parts):
        made = {key for key, node in task.graph.items() if not _is_data(node)}
        if made & tasks or any(
            _is_future(getattr(node, "value", node)) for node in task.graph.values()
        ):
            return True
        tasks |= made
    return False


def _tasks_of(parts: Sequence[Any]) -> list[OwnTasks]:
    """All tasks that each part needs."""
    from dask.optimization import cull

    graphs = [part.dask for part in parts]  # mostly one for all; held, so that no two share an id
    tasks = {id(graph): dict(graph) for graph in graphs}
    return [
        OwnTasks(cull(tasks[id(graph)], [part.key])[0], part.key)
        for graph, part in zip(graphs, parts, strict=True)
    ]


def workers_of(pieces: Sequence[tuple]) -> set[str]:
    """The workers of the cluster that holds some pieces; none, if no cluster does."""
    held = next(futures([piece for part in pieces for piece in part]), None)
    return set() if held is None else set(held.client.nthreads())


def check_workers(first: set[str], pieces: Sequence[tuple]) -> None:
    """Raise if a worker has gone by the end of the first pass, where parts have tasks in common: a
    shuffle of an unseeded order may have been computed twice, so that a row can be in two parts,
    and digests are of parts as they were read first."""
    if first and not first <= workers_of(pieces):
        raise PartError(
            "X: a worker was lost during the first read of parts that share tasks. Write X to "
            "files, then fit again."
        )


def check_clients(name: str, collections: Sequence[Any]) -> None:
    """Raise if what Dask holds of a parameter's collections is gone with its client."""
    if any(map(_is_gone, futures(collections))):
        raise PartError(
            f"{name}: the Dask client that holds it is closed or gone. Reconnect, and create "
            f"{name} again."
        )


def futures(collections: Sequence[Any]) -> Iterator[Any]:
    """Return the futures that clients hold of some collections."""
    graphs: dict[int, Any] = {}
    for one in collections:
        if hasattr(
            type(one), "expr"
        ):  # data frames: what they are read by is not to be asked for now
            operands = [operand for node in one.expr.walk() for operand in node.operands]
            operand_graphs = [operand for operand in operands if isinstance(operand, Mapping)]
        else:
            operand_graphs = [one.dask]
        graphs |= {id(graph): graph for graph in operand_graphs}  # mostly one for all parts
    for graph in graphs.values():
        yield from filter(_is_future, (getattr(node, "value", node) for node in graph.values()))


def _is_future(value: Any) -> bool:
    return type(value).__name__ == "Future" and hasattr(value, "status")


def _is_gone(future: Any) -> bool:
    client = getattr(future, "client", None)
    return client is None or client.status in ("closed", "closing") or future.cancelled()


def _is_data(node: Any) -> bool:
    """True if a node of a graph is no task but what one has made, or will."""
    value = getattr(node, "value", node)
    return _is_future(value) or isinstance(value, np.ndarray) or hasattr(value, "__array__")


# -- dask ------------------------------------------------------------------------------------------


def _on_dask(call: Callable[[], Any], failed: Callable[[], int | None] = lambda: None) -> Any:
    """Return the answer of Dask; its own messages show nothing of the rows."""
    with NO_SIZES:
        others = "a closed client, or workers that have died too often"
        return asked("Dask", others, call, failed)


class DaskEngine(ClusterEngine):
    """Parts held by Dask; see :class:`sklearn_dp._rows.table.Engine`. Each element of `rows`,
    `groups` and `weights` is a Delayed. `lengths` are numbers of rows, of no use with weights."""

    def __init__(
        self,
        columns: Columns,
        rows: Sequence[Any],
        groups: Sequence[Any] | None = None,
        weights: Sequence[Any] | None = None,
        lengths: Sequence[Any] | None = None,
    ) -> None:
        self.n_parts, self._lengths = len(rows), lengths if weights is None else None
        for name, parts in (("X", rows), ("groups", groups), ("sample_weight", weights)):
            check_clients(name, parts or ())
        readers, self._pieces = _on_dask(lambda: _readers(rows, groups, weights))
        self._given = self._pieces  # also of an engine of new parts
        lean = any(parts is not None and lean_on_others(parts) for parts in (rows, groups, weights))
        self._first_workers = _on_dask(lambda: workers_of(self._given)) if lean else set()
        self._steps = [
            constant(Step(i, CheckedSource(i, columns, *own)), new_key("part"))
            for i, own in enumerate(readers)
        ]

    def _asked(self, call: Callable[[], Any]) -> Any:
        return _on_dask(call, self._failed)

    def _total(self, function: PassFunction, broadcast: tuple) -> Any:
        import dask

        # What steps before have made is held by these alone from now on, and by their lineage.
        self._steps = list(dask.persist(*self._next(run, function, broadcast)))
        sums = _in_tree(self._steps, shown(function, broadcast)).compute()
        first, self._first_workers = self._first_workers, set()
        check_workers(first, self._given)
        return sums

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """A `dask.array` of the values of all rows, like `function.example`; not computed here."""
        results = super().collect_rows(function, *broadcast)
        return _stacked(results, self._lengths, getattr(function, "example", np.empty(0, np.int32)))

    def _results(self, tasks: list[Any], name: str) -> list:
        import dask

        return list(dask.compute(*tasks))

    def _hold_no_rows(self) -> None:
        self._lengths, self._pieces = None, [()] * self.n_parts

    def _brought(
        self, task: Callable, split: SplitFunction, use: Callable, n_tasks: int, broadcast: tuple
    ) -> list[Any]:
        """Tasks, each of which gets its pieces of all parts."""
        parts = self._next(pieces_of, Split(split, n_tasks), broadcast)
        message = constant(Message(use, broadcast), new_key("released"))
        names = new_key(f"{shown(split, broadcast)}-piece"), new_key(shown(use, broadcast))
        return tasks_of_pieces(task, parts, message, n_tasks, *names)

    def _next(self, step: Callable, function: Callable, broadcast: tuple) -> list[Any]:
        """A task for each part, with a name for Dask's pages."""
        import dask

        key = new_key(shown(function, broadcast))
        # A task of its own: it travels to each worker once, and can be lost and made again.
        message = constant(Message(function, broadcast), new_key("released"))
        return [
            dask.delayed(step, pure=False)(state, message, *pieces, dask_key_name=(key, i))
            for i, (state, pieces) in enumerate(zip(self._steps, self._pieces, strict=True))
        ]

    def _failed(self) -> int | None:
        """The first part whose own tasks have failed, where a cluster knows."""
        check_clients("X", [*self._steps, *(piece for pieces in self._given for piece in pieces)])
        for number, pieces in enumerate(self._given):
            if any(future.status == "error" for future in futures(pieces)):
                return number
        return None


def _in_tree(steps: Sequence[Any], name: str) -> Any:
    """The total of the sums of some steps: only sums leave the workers of the parts."""
    import dask

    key = new_key(f"{name}-sums")
    sums = [
        dask.delayed(_sums_of, pure=False)(step, dask_key_name=(key, i))
        for i, step in enumerate(steps)
    ]
    while True:
        key = new_key(f"{name}-total")
        sums = [
            dask.delayed(total, pure=False)(sums[i : i + FAN_IN], dask_key_name=(key, i))
            for i in range(0, len(sums), FAN_IN)
        ]
        if len(sums) == 1:
            return sums[0]


def _sums_of(step: Step) -> Any:
    return step.sums


def _readers(*collections: Sequence[Any] | None) -> tuple[list[tuple], list[tuple]]:
    """For each part, one reader (or None) for each collection, and what Dask has to bring."""
    import dask

    readers: list[list] = []
    brought: list[tuple] = []
    for parts in collections:
        tasks = None if parts is None else own_tasks(parts)
        if parts is None or tasks is not None:
            readers.append(tasks or [None] * len(collections[0]))  # type: ignore[arg-type]
            continue
        readers.append([Given(len(brought))] * len(parts))
        # Each as the result of a task: Dask does not persist what is none.
        kept = [
            dask.delayed(same, pure=False)(part, dask_key_name=new_key("kept")) for part in parts
        ]
        brought.append(dask.persist(*kept))
    n_parts = len(readers[0])
    pieces = list(zip(*brought, strict=True)) if brought else [()] * n_parts
    return list(zip(*readers, strict=True)), pieces


def _stacked(parts: Sequence[Any], lengths: Sequence[Any] | None, example: np.ndarray) -> Any:
    """A `dask.array` of blocks that tasks give, like `example`, of unknown lengths by default."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    lengths = lengths or [float("nan")] * len(parts)
    name = new_key("rows")
    rest = (0,) * (example.ndim - 1)
    layer: dict[Any, Any] = {(name, i, *rest): (same, part.key) for i, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=list(parts))
    chunks = (tuple(lengths), *((width,) for width in example.shape[1:]))
    return da.Array(graph, name, chunks, meta=example)


# -- collections -----------------------------------------------------------------------------------


def from_dask(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A table from a Dask array or data frame; groups and weights are in the parts of `X`."""
    check_clients("X", [X])
    if hasattr(X, "to_dask_array"):
        columns, cut, lengths = _quiet_columns(X._meta), X.to_delayed, None
        n_parts = X.npartitions
    else:
        if X.ndim != 2:
            raise ValueError("Expected 2D array: X must have shape (n_samples, n_features).")
        if not isinstance(X.shape[1], int):
            raise ValueError("X must have a known number of columns.")
        example = np.empty((0, X.shape[1]), dtype=X.dtype)
        columns = _quiet_columns(csr_array(example) if issparse(X._meta) else example)
        lengths, n_parts = X.chunks[0], X.numblocks[0]

        def cut() -> Any:
            rows = X.rechunk({1: -1})
            # Where a client holds some of it, Dask would take that out of the graphs of the parts.
            return rows.to_delayed(optimize_graph=not any(futures([X]))).ravel()

    def parts() -> Any:
        check_clients("X", [X])  # again: what is gone leaves no trace in parts
        return cut()

    beside = _beside(groups, sample_weight, n_parts)
    return _input(columns, parts, lengths, *beside)


def from_delayed(
    parts: Sequence[Any], groups: Any = None, sample_weight: Any = None
) -> EngineInput:
    """A table from a list of delayed parts; a worker looks at the columns of the first."""
    import dask

    check_clients("X", parts)
    beside = _beside(groups, sample_weight, len(parts))
    first = dask.delayed(columns_or_words, pure=False)(parts[0], dask_key_name=new_key("columns"))
    columns = _on_dask(first.compute, lambda: 0)
    if isinstance(columns, str):
        raise PartError(columns)
    return _input(columns, lambda: parts, None, *beside)


def _quiet_columns(example: Any) -> Columns:
    """Columns of an empty table; words of an error have no number of a part."""
    return quietly(lambda: columns_of(example))


def _beside(groups: Any, sample_weight: Any, n_parts: int) -> tuple:
    """Groups and weights as they were given, if they may belong to so many parts of `X`."""
    given = {"groups": groups, "sample_weight": sample_weight}
    for name, values in given.items():
        if values is None:
            continue
        if hasattr(values, "to_delayed"):
            if getattr(values, "ndim", 0) != 1:
                raise TypeError(f"{name} must be one-dimensional.")
            if values.npartitions != n_parts:
                raise ValueError(f"{name} must have the parts of X.")
        elif isinstance(values, list | tuple):
            check_list(values, name, n_parts, _is_delayed, "a delayed object")
        else:
            raise TypeError(
                f"{name} must be a one-dimensional Dask collection, like X, or a list of "
                f"delayed objects, not {type(values).__name__}."
            )
        check_clients(name, values if isinstance(values, list | tuple) else [values])
    return tuple(given.values())


def _is_delayed(value: Any) -> bool:
    return hasattr(value, "__dask_graph__") and hasattr(value, "key")


def _input(
    columns: Columns, parts: Callable, lengths: Any, groups: Any, sample_weight: Any
) -> EngineInput:
    """The input of a fit from a collection: nothing is computed until it asks for the engine."""

    def start(n_jobs: int | None) -> DaskEngine:
        rows = list(_on_dask(parts))
        return DaskEngine(
            columns,
            rows,
            _parts_of(groups, "groups", len(rows)),
            _parts_of(sample_weight, "sample_weight", len(rows)),
            lengths,
        )

    def rowwise(function: Callable, example: np.ndarray) -> Any:
        import dask

        name = new_key(shown(function, ()))
        answers = [
            dask.delayed(_answer, pure=False)(
                part, i, columns, Message(function, ()), dask_key_name=(name, i)
            )
            for i, part in enumerate(_on_dask(parts))
        ]
        return _stacked(answers, lengths, example)

    return EngineInput("dask", columns, start, rowwise)


def _answer(piece: Any, number: int, columns: Columns, message: Message) -> np.ndarray:
    """Apply a function to the rows of a part, once they have been checked."""
    return message.function(quietly(lambda: columns.check(piece), number))


def _parts_of(values: Any, name: str, n_parts: int) -> list[Any] | None:
    """The parts of groups or weights: as many as `X` turns out to have."""
    if values is None:
        return None
    if isinstance(values, list | tuple):
        return list(values)
    parts = list(np.ravel(np.array(values.to_delayed(), dtype=object)))
    if len(parts) != n_parts:
        raise ValueError(f"{name} must have the parts of X.")
    return parts
