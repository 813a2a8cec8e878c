"""Tasks of collections of Dask: which parts have tasks of their own, and whose clients are gone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..exceptions import PartError

__all__ = ["OwnTasks", "check_clients", "futures", "own_tasks"]


class OwnTasks:
    """Makes a part by its own tasks, inside of the task that asks for it.

    Parameters
    ----------
    graph : dict
        All tasks that the part needs.
    key : object
        The last of them.
    """

    def __init__(self, graph: dict, key: Any) -> None:
        self.graph, self._key = graph, key

    def __call__(self) -> Any:
        from dask.local import get_sync

        return get_sync(self.graph, self._key)


def own_tasks(parts: Sequence[Any]) -> list[OwnTasks] | None:
    """The tasks of each part, if no two parts share one and none holds data."""
    from dask.optimization import cull

    graphs = [part.dask for part in parts]  # mostly one for all; held, so that no two share an id
    tasks = {id(graph): dict(graph) for graph in graphs}
    found = [
        OwnTasks(cull(tasks[id(graph)], [part.key])[0], part.key)
        for graph, part in zip(graphs, parts, strict=True)
    ]
    n_tasks = sum(len(own.graph) for own in found)
    every = {key: node for own in found for key, node in own.graph.items()}
    return found if n_tasks == len(every) and not any(map(_is_data, every.values())) else None


def check_clients(name: str, collections: Sequence[Any]) -> None:
    """Raise if what Dask holds of some collections is gone with its client.

    Parameters
    ----------
    name : str
        Of the parameter.
    collections : sequence of dask collection
    """
    if any(map(_is_gone, futures(collections))):
        raise PartError(
            f"{name}: the client of Dask that holds it is closed or gone. Connect again, and make "
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
