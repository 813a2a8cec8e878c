"""Tasks of Dask: new ones, which parts have tasks of their own, and whose clients are gone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from ..exceptions import PartError
from ._steps import name_of

__all__ = [
    "NO_SIZES", "OwnTasks", "check_clients", "check_workers", "constant", "futures",
    "lean_on_others", "new_key", "own_tasks", "same", "shown", "tasks_of_pieces", "workers_of",
]  # fmt: skip


class _NoSizes:
    """Dask does not warn of large graphs in this block: it would tell how large they are.

    The ids of groups are in them, and rows that the client holds. The limit is the process's: the
    first of several threads lifts it, the last one puts it back.
    """

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
    """Tasks that get a piece of every part: a shuffle from worker to worker.

    Each part gives a list of a piece for each task; ``task(number, message, pieces)`` gets them in
    the order of the parts. `piece_key` and `key` are for the pieces and the tasks.
    """
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
    """Makes a part by its own tasks, inside of the task that asks for it.

    The graph has all tasks that the part needs; the last of them is `key`.
    """

    def __init__(self, graph: dict, key: Any) -> None:
        self.graph, self._key = graph, key

    def __call__(self) -> Any:
        from dask.local import get_sync

        return get_sync(self.graph, self._key)


def own_tasks(parts: Sequence[Any]) -> list[OwnTasks] | None:
    """The tasks of each part, if no two parts share one and none holds data."""
    found = _tasks_of(parts)
    n_tasks = sum(len(own.graph) for own in found)
    every = {key: node for own in found for key, node in own.graph.items()}
    return found if n_tasks == len(every) and not any(map(_is_data, every.values())) else None


def lean_on_others(parts: Sequence[Any]) -> bool:
    """Whether what makes a part is not its own: tasks of several parts, or what a client holds."""
    seen: set = set()
    for own in _tasks_of(parts):
        made = {key for key, node in own.graph.items() if not _is_data(node)}
        if made & seen or any(
            _is_future(getattr(node, "value", node)) for node in own.graph.values()
        ):
            return True
        seen |= made
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
    """After the first pass: raise if a worker has gone by then, where parts lean on others.

    What they have in common may have been computed twice before all parts had been read. If that is
    a shuffle of an unseeded order, a row can be in a part of the first time and in one of the
    second; digests are of parts as they were read first, and do not tell.
    """
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
            f"{name} anew."
        )


def futures(collections: Sequence[Any]) -> Iterator[Any]:
    """What clients hold of some collections."""
    graphs: dict[int, Any] = {}
    for one in collections:
        if hasattr(
            type(one), "expr"
        ):  # data frames: what they are read by is not to be asked for now
            operands = [operand for node in one.expr.walk() for operand in node.operands]
            found = [operand for operand in operands if isinstance(operand, Mapping)]
        else:
            found = [one.dask]
        graphs |= {id(graph): graph for graph in found}  # mostly one for all parts
    for graph in graphs.values():
        yield from filter(_is_future, (getattr(node, "value", node) for node in graph.values()))


def _is_future(value: Any) -> bool:
    return type(value).__name__ == "Future" and hasattr(value, "status")


def _is_gone(future: Any) -> bool:
    client = getattr(future, "client", None)
    return client is None or client.status in ("closed", "closing") or future.cancelled()


def _is_data(node: Any) -> bool:
    """Whether a node of a graph is no task but what one has made, or will."""
    value = getattr(node, "value", node)
    return _is_future(value) or isinstance(value, np.ndarray) or hasattr(value, "__array__")
