"""Who carries messages to the clients and sums their answers.

An engine is an object with a method ``ask(kind, message)`` that returns a pair (answer, error) for
each client: here `LocalEngine`, for clients of this process, and in `_engines` one for others.
`run_rounds` is the loop of a fit: ask, add up, hand the sum to the server, until all is done.

A client may be malicious, or merely broken. It gets copies, so that it changes nothing that others
see. Whatever it raises or answers ends neither the round nor the fit: it then counts as empty,
which is one of the answers that a client may give, so the guarantee stands. What operators are
told of it are words of this package, never the client's own, which may quote rows.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from .._privacy._optional import extra
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy._warn import warn
from .._privacy.mechanisms.shares import NoiseShares
from .._queries.blocks import block_rows
from .._queries.client_rounds import ANSWERS, Arrays, clamped, exact_sum
from .._rows.clients import ask_all
from .._silence.suppress_output import attempt
from ..exceptions import UtilityWarning
from ._client import (
    NO_NAMES,
    WRONG_COLUMNS,
    WRONG_NAMES,
    WRONG_TYPES,
    AnswerError,
    check_answer,
    client_update,
    read_rows,
)
from ._state import SealedMessage, State

_BLOCK = 2**16  # rows of a client, where nobody says who holds what
_MOST_WORK: Any = (
    1000  # of numpy's search for a common element of two arrays; strides of rows need one
)
_MOST_PAIRS = 2**16  # of arrays that lie in one another's gaps: a tenth of a second


def check_distinct(clients: Sequence[Any]) -> None:
    """Refuse clients of :class:`LocalEngine` that are there twice.

    That is a ``client_id`` or an object that occurs twice, or arrays that share memory. A claim is
    for one client more or less. One that is there twice moves every sum by twice that. What is
    compared is where things are; no value is looked at.
    """
    ids = [client.client_id for client in clients if hasattr(client, "client_id")]
    try:
        distinct = len(set(ids))
    except TypeError:
        raise TypeError("clients: every client_id must be hashable.") from None
    if distinct < len(ids):
        raise ValueError("clients: every client_id must occur once.")
    # A method is made anew whenever it is asked for: it is told from others by what it is made of.
    places = {
        (id(client.__self__), id(client.__func__))
        if isinstance(client, MethodType)
        else (id(client), 0)
        for client in clients
    }
    if len(places) < len(clients):
        raise ValueError("clients: the same object appears twice.")
    if _overlap([client for client in clients if isinstance(client, np.ndarray) and client.size]):
        raise ValueError("clients: two arrays share memory; rows must belong to one client.")


def _overlap(arrays: Sequence[np.ndarray]) -> bool:
    """True if two arrays have memory in common.

    1. Arrays are sorted by the ends of their memory. One that begins after another has ended
       shares nothing with it: that is all there is to do for parts of one array in a row.
    2. Two that begin at the same place share it.
    3. For others, numpy looks for an element of both, for a while.

    The search is cut short: it misses strides that nobody uses to deal out rows, and the far ones
    of hundreds of arrays such as ``X[0::2]`` and ``X[1::2]``.
    """
    spans = sorted((*byte_bounds(array), number) for number, array in enumerate(arrays))
    before: list[tuple[int, int, int]] = []  # spans that may reach as far as this one
    pairs = 0
    for span in spans:
        low, _, number = span
        before = [other for other in before if other[1] > low]
        for other in reversed(before):
            pairs += 1
            if low == other[0] or (
                pairs < _MOST_PAIRS and _share(arrays[number], arrays[other[2]])
            ):
                return True
        before.append(span)
    return False


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    """True if an element is in both arrays; False also where that takes too long to tell."""
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)
    except np.exceptions.TooHardError:
        return False


def partition(X: np.ndarray, units: Units) -> list[Callable[[], np.ndarray]]:
    """Clients that hold the rows of one array, and read them when they are asked. `units` say which
    client holds each row; without an index, blocks of rows in their order, and the answers add up
    to the same sums whatever the blocks are."""
    parts: list[Any]
    if units.index is None:
        parts = [slice(start, start + _BLOCK) for start in range(0, len(X), _BLOCK)]
    else:
        parts = block_rows(units.index, units.size)
    return [partial(X.__getitem__, part) for part in parts]


class LocalEngine:
    """Clients of this process, asked through joblib. A client is its rows, or a function without
    arguments that returns them; or an object with a method ``update(kind, message)`` that answers
    by itself. One that does not answer in `seconds` is given up."""

    def __init__(
        self, clients: Sequence[Any], n_jobs: int | None = None, seconds: float | None = None
    ) -> None:
        self.clients, self.n_jobs, self.seconds = clients, n_jobs, seconds
        self.seed_shares(None)

    def seed_shares(self, seed: int | None) -> None:
        """Make the clients' shares of the noise reproducible, for tests; None: they are not."""
        self.shares = [NoiseShares(seed, number) for number in range(len(self.clients))]

    def ask(self, kind: str, message: Arrays) -> list[tuple[Any, BaseException | None]]:
        """Pairs (answer, error) of all clients, in their order; one of the two is None. Each client
        gets a copy of the message. All have gone when this returns, or have been given up; an
        answer that a client keeps and changes later is copied in time."""
        return ask_all(
            partial(_answer, kind, SealedMessage(message)),
            list(zip(self.clients, self.shares, strict=True)),
            n_jobs=self.n_jobs,
            seconds=self.seconds,
        )


def _answer(kind: str, sealed: SealedMessage, client_and_shares: tuple[Any, Any]) -> Arrays:
    """Return the answer of a client: by its own method, or from its rows."""
    (client, shares), message = client_and_shares, sealed.open()
    if hasattr(client, "update") and not hasattr(client, "shape"):
        # Checked by the server's own copy of the message, and in the time of the client: whatever
        # it answers with may have methods.
        return check_answer(kind, sealed.open(), client.update(kind, message))
    rows = read_rows(message, client) if callable(client) else client
    return client_update(kind, message, rows, shares)


def total_of(
    kind: str, message: Arrays, answers: Iterable[tuple[Any, BaseException | None]]
) -> tuple[Arrays | None, list[tuple[int, str]]]:
    """The sum of the answers, and which clients gave none that can be used, and why.

    The sum is None where nobody has answered.

    A client without a usable answer counts as one that holds nothing. Noise that the server adds
    does not depend on how many there are, so the guarantee stands; at row level only if a client
    does not fail *because of* single rows. Noise that clients add is less without theirs, so too
    few answers end the fit.
    """
    total: Arrays | None = None
    failed = []
    for number, (answer, error) in enumerate(answers):
        if error is None:
            answer, error = attempt(check_answer, kind, message, answer)
        if error is not None:  # whatever a client dies of is no reason to stop a fit
            failed.append((number, _reason(error)))
        elif total is None:
            total = answer
        else:
            total = {name: exact_sum(total[name], answer[name]) for name in total}
    if total is not None and not message["noise"].size:
        # The exact sum is clamped: it moves no farther than the answers do. With noise in it, it
        # is not: a large answer of one client would swallow the noise of others.
        total = {name: clamped(value) for name, value in total.items()}
    return total, failed


def _reason(error: BaseException) -> str:
    """An error as operators see it: words of this package, or the name of its kind alone.
    The words of others may quote rows, and a client may make up names."""
    if type(error) is AnswerError and str(error) in _KNOWN_REASONS:
        return str(error)
    name = type(error).__name__
    return name if getattr(builtins, name, None) is type(error) else "an exception of its own"


_KNOWN_REASONS = {WRONG_TYPES, WRONG_COLUMNS, WRONG_NAMES, NO_NAMES}
for _vectors in ANSWERS.values():
    _KNOWN_REASONS.add(f"an answer must hold exactly: {', '.join(_vectors)}.")
    for _name in _vectors:
        _KNOWN_REASONS |= {
            f"{_name}: {_words}"
            for _words in (
                "an answer must be integers.",
                "wrong shape.",
                "out of the public range.",
            )
        }


def run_rounds(
    state: State,
    update: Callable[..., State],
    session: PrivacySession,
    engine: Any,
    progress: Callable[[str], None] | None = None,
) -> tuple[State, list[dict[str, Any]]]:
    """Go through all the rounds, from the state of :func:`first_message` to the last one.

    `update` is :func:`server_update`; the engine has a method ``ask(kind, message)``; `progress` is
    called with the kind of each round when it is done. Also returned is the communication: floats
    and bytes of a client in each round, from public shapes.
    """
    communication = []
    while (message := state.message) is not None:
        kind = state.kind
        # What is claimed has been settled with the message; a copy of it is all that others get.
        answers = list(engine.ask(kind, state.message or {}))
        total, failed = total_of(kind, message, answers)
        if failed:
            _warn_of(kind, failed)
        # A client without rows and without noise; the shapes of its answer are public.
        nobody = client_update(
            kind, message | {"noise": np.empty(0)}, np.empty((0, len(message["center"])))
        )
        # 8 bytes a number, as it is sent without compression; noise has the size of what it is in.
        down = sum(value.size for value in message.values() if value.dtype.kind != "U")
        up = sum(nobody[name].size for name in ANSWERS[kind])
        communication.append(
            {
                "round": state.round,
                "kind": kind,
                "numbers_down": down,
                "numbers_up": up,
                "bytes_down": 8 * down,
                "bytes_up": 8 * up,
            }
        )
        total = nobody if total is None else total
        state = update(state, total, session, len(answers) - len(failed))
        if progress is not None:
            progress(f"round {kind}")
    return state, communication


def _warn_of(kind: str, failed: Sequence[tuple[int, str]]) -> None:
    """For whoever runs the fit, and no part of the model: which clients gave nothing."""
    shown = "; ".join(f"client {number}: {reason}" for number, reason in failed[:5])
    more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    who = "1 client, which counts" if len(failed) == 1 else f"{len(failed)} clients, which count"
    warn(f"round {kind!r}: no usable answer from {who} as empty ({shown}{more})", UtilityWarning)


# -- Flower ----------------------------------------------------------------------------------------
# A message of the server travels as an ``ArrayRecord`` and its kind as a ``ConfigRecord``, both in
# a query to each node; a node answers with an ``ArrayRecord`` of the same kind. Nothing is kept at
# a node between rounds. Flower is imported where it is used: the package does without it.


_MESSAGE, _ANSWER, _ROUND = "message", "answer", "round"


def is_grid(clients: Any) -> bool:
    """True if clients are asked through a Flower ``Grid``; Flower need not be there to tell."""
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
        replies: dict[int, Any] = {}
        for reply in self.grid.send_and_receive(queries, timeout=self.seconds):
            replies.setdefault(reply.metadata.src_node_id, reply)
        return [_read(replies.get(node)) for node in nodes]


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
        reply = client_update(kind, asked, read_rows(asked, read, context), shares)
        return Message(RecordDict({_ANSWER: _record(reply)}), reply_to=message)

    return app
