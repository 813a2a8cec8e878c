"""A thin adapter to Flower's Message API (extra ``federated``).

Flower carries a message of the server as an ``ArrayRecord`` and its kind as a ``ConfigRecord``,
both in a query to each node; a node answers with an ``ArrayRecord`` of the same kind. Nothing is
kept at a node between rounds. Flower is imported where it is used: the package does without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._privacy._optional import extra
from .._privacy.mechanisms.shares import NoiseShares
from .._queries.client_rounds import Arrays
from ._client import client_update, read_rows

_MESSAGE, _ANSWER, _ROUND = "message", "answer", "round"


def is_grid(clients: Any) -> bool:
    """Whether clients are asked through a Flower ``Grid``; Flower need not be there to tell."""
    return hasattr(clients, "send_and_receive") and hasattr(clients, "get_node_ids")


class FlowerEngine:
    """Asks the nodes of a Flower ``Grid`` (`flwr.serverapp`). It waits at most `seconds` for the
    answers of a round; None: until all are there."""

    def __init__(self, grid: Any, seconds: float | None = None) -> None:
        self.grid, self.seconds = grid, seconds

    def check(self) -> None:
        """Refuse a grid without nodes: which are there is known to everybody who runs it. A
        RuntimeError, before anything is charged."""
        if not list(self.grid.get_node_ids()):
            raise RuntimeError("clients: no node is connected to the grid; nothing is charged.")

    def ask(self, kind: str, message: Arrays) -> list[tuple[Arrays | None, Exception | None]]:
        """Pairs (answer, error), one for each node, in the order of their ids. One of the two is
        None. A node that answers twice has answered once: its first answer counts, else it could
        move a sum by twice what is claimed of it."""
        nodes = sorted(self.grid.get_node_ids())
        queries = [_query(kind, message, node) for node in nodes]
        found: dict[int, Any] = {}
        for reply in self.grid.send_and_receive(queries, timeout=self.seconds):
            found.setdefault(reply.metadata.src_node_id, reply)
        return [_read(found.get(node)) for node in nodes]


def _query(kind: str, message: Arrays, node: int) -> Any:
    """The question of a round to one node."""
    from flwr.app import ConfigRecord, Message, MessageType, RecordDict

    content = RecordDict({_MESSAGE: _record(message), _ROUND: ConfigRecord({"kind": kind})})
    return Message(content, node, MessageType.QUERY)


def _read(reply: Any) -> tuple[Arrays | None, Exception | None]:
    """The answer in a reply, unchecked, or why there is none."""
    if reply is None:
        return None, TimeoutError("no answer in time")
    try:
        if reply.has_error():
            raise RuntimeError("the client failed")
        return _arrays(reply.content[_ANSWER]), None
    except Exception as error:  # a reply without arrays, or with such that cannot be read
        return None, error


def _record(arrays: Arrays) -> Any:
    """A dict of arrays as Flower sends it: values, types and shapes stay what they are."""
    from flwr.app import Array, ArrayRecord

    return ArrayRecord({name: Array(np.ascontiguousarray(value)) for name, value in arrays.items()})


def _arrays(record: Any) -> Arrays:
    """The arrays in a record; the opposite of `_record`."""
    return {name: array.numpy() for name, array in record.items()}


def flower_client(
    read: Callable[[Any], Any], *, share_seed: Callable[[Any], tuple[int, str | int]] | None = None
) -> Any:
    """Create a Flower ``ClientApp`` that answers the rounds of a federated fit.

    Parameters
    ----------
    read : callable
        A function from the node's Flower ``Context`` to its rows. The rows stay on the node, which
        sends only what :func:`client_update` returns.
    share_seed : callable, optional
        A function from the ``Context`` to a pair (seed, name), for reproducible shares of the noise
        if clients add it. For tests only: only None, the operating system's generator, protects.

    Returns
    -------
    app : flwr.clientapp.ClientApp
        For ``flower-supernode``, or a simulation.
    """
    with extra("federated"):
        from flwr.app import Message, RecordDict
        from flwr.clientapp import ClientApp
    app = ClientApp()

    @app.query()
    def answer(message: Any, context: Any) -> Any:
        kind = message.content[_ROUND]["kind"]
        shares = NoiseShares(*(share_seed(context) if share_seed else ()))
        asked = _arrays(message.content[_MESSAGE])
        found = client_update(kind, asked, read_rows(asked, read, context), shares)
        return Message(RecordDict({_ANSWER: _record(found)}), reply_to=message)

    return app
