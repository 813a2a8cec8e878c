"""Clients: what each computes from a message and its own rows, and who carries the messages.

A message is a dict of plain arrays, and so is an answer. A client leaves out, one by one, rows that
cannot be used, and those beyond the public number of rows of a client;
`sklearn_dp._queries.client_rounds` makes integers of the rest. Where the message has ``noise``,
each client adds its share of the noise. An engine has a method ``ask(kind, message)`` that returns
a pair (answer, error) for each client; `run_rounds` is the loop of a fit.

A client may be malicious, or merely broken. It gets copies, so that it changes nothing that others
see. Whatever it raises or answers ends neither the round nor the fit: it then counts as empty,
which is one of the answers that a client may give, so the guarantee stands. What operators are told
of it are words of this package, never the client's own, which may quote rows.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import ArrayLike

from .._columns import Schema, check_numbers
from .._costs.numbers import check_choice, extra, warn
from .._door import in_order, rows_of, schema
from .._door_entries import lists_rows
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy.mechanisms.shares import NoiseShares
from .._queries.blocks import block_rows
from .._queries.client_rounds import (
    ANSWERS,
    CLIENT_STEPS,
    LARGEST_ENTRY,
    NORM_EDGES,
    REACHES,
    Arrays,
    clamped,
    exact_sum,
    exact_update,
    norm_of,
    upper_triangle,
)
from .._rows.single_rows import row_guard, saturated
from .._rows.threads import ask_all
from .._silence import attempt
from ..exceptions import UtilityWarning
from ._state import State


class AnswerError(ValueError):
    """What is wrong with an answer, in words that never hold data; they are shown to operators."""


WRONG_TYPES = "a client's rows must be real numbers."
WRONG_NAMES = "a client's columns must have the public names, in any order."
NO_NAMES = (
    "a client's table names its columns, and the fit knows no names: give them, as n_features."
)
WRONG_COLUMNS = "a client's rows must be a matrix with the public number of columns."
NO_INTEGERS, WRONG_SHAPE = "an answer must be integers.", "wrong shape."
OUT_OF_RANGE = "out of the public range."


# -- the answer of a client ------------------------------------------------------------------------


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def client_update(
    kind: str, message: Arrays, rows: ArrayLike, shares: NoiseShares | None = None
) -> Arrays:
    """Answer a message of the server. A pure function, except for requested noise.

    Parameters
    ----------
    kind : str
        Kind of the round, such as "moment"; the server sends it along.
    message : dict of str to ndarray
        As the server sends it; see the table in ``sklearn_dp/federated/_server.py``.
    rows : array-like of shape (n, d)
        Rows with NaN or infinite entries, missing values, strings, complex numbers or integers too
        large for a float are dropped one by one; in a list, also rows of another length.
    shares : NoiseShares, optional
        Source of the client's share of the noise; by default the operating system.

    Returns
    -------
    answer : dict of str to ndarray of int64
        One vector for each release of the round. Its shapes are public: they do not depend on the
        rows.

    Raises
    ------
    ValueError, TypeError
        For an unknown kind or an invalid message; and for an array of complex numbers or with
        another number of columns than the message, unless the message asks for noise: such a client
        then answers as one without rows, so that its share of the noise, which others count on,
        never depends on its data.
    """
    check_choice("kind", kind, tuple(ANSWERS))
    if not isinstance(message, Mapping) or not hasattr(message.get("noise"), "size"):
        raise TypeError("message must be a dict of arrays, as the server sends it.")
    if not (shares is None or isinstance(shares, NoiseShares)):
        raise TypeError("shares must be None or a NoiseShares.")
    X = read_rows(message, _rows_of, message, rows)
    answer = exact_update(kind, message, np.empty((0, len(message["center"]))) if X is None else X)
    if not message["noise"].size:
        return answer
    shares = NoiseShares() if shares is None else shares
    return {
        name: _with_share(name, value, message, shares, line)
        for (name, value), line in zip(answer.items(), message["noise"], strict=True)
    }


def read_rows(message: Arrays, read: Callable[..., Any], *arguments: Any) -> Any:
    """What `read` returns: a client's rows. Where clients add the noise, an error becomes None,
    which counts as no rows, whatever it is that cannot be read: others count on the client's share.
    In other rounds the client counts as empty (`total_of`)."""
    try:
        return read(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        if not message["noise"].size:
            raise
    return None


def _rows_of(message: Arrays, rows: Any) -> np.ndarray:
    """The rows that count, and no more than a client may use."""
    names = message["names"].tolist() if "names" in message else None
    X = usable_rows(rows, len(message["center"]), names)
    return saturated(X[: int(message["most_rows"][0])] if message["most_rows"].size else X)


def _with_share(
    name: str, value: np.ndarray, message: Arrays, shares: Any, line: np.ndarray
) -> np.ndarray:
    """An exact vector in fine steps, and the client's share of the noise, by the line of the
    vector: the standard deviation of the share in fine steps, that for entries of a second moment
    off its diagonal, and how many bits finer than a step a fine step is. The number of the round
    tells seeded shares apart."""
    sigma, off_diagonal, bits = line
    scale: Any = sigma
    if name == "second moment":
        diagonal = np.equal(*upper_triangle(len(message["center"])))
        scale = np.where(diagonal, sigma, off_diagonal)
    noise = shares.draw(name, int(message["round"][0]), scale, value.shape)
    # A clamp changes no distance for the worse, and leaves room for the noise.
    largest = LARGEST_ENTRY >> int(bits)
    return (np.clip(value, -largest, largest) << int(bits)) + noise


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def usable_rows(rows: Any, n_features: int, names: Any = None) -> np.ndarray:
    """Those rows that are `n_features` finite real numbers, as floats, the columns in the order of
    `names`; an `AnswerError` for other columns, by type alone."""
    if lists_rows(rows):  # its rows may be anything
        X = rows_of(rows, Schema(n_features))
    else:
        given = _told(WRONG_COLUMNS, schema, rows)
        if given.n_features != n_features:
            raise AnswerError(WRONG_COLUMNS)
        _told(WRONG_TYPES, check_numbers, given)
        rows = _told(NO_NAMES if names is None else WRONG_NAMES, in_order, rows, names)
        X = _told(WRONG_COLUMNS, rows_of, rows, given)
    return X[np.isfinite(X).all(axis=1)]


def _told(words: str, call: Any, *arguments: Any) -> Any:
    """Return the result of a call, or an error in words that everybody may know."""
    try:
        return call(*arguments)
    except MemoryError:
        raise
    except Exception:
        pass
    raise AnswerError(words)


# -- checks of an answer ---------------------------------------------------------------------------
# Whoever sums cannot trust an answer. So it is copied and checked; entries without a bound are
# clamped, and sums never wrap: with a wrapped sum, one row could move it by 2**64.


def check_answer(kind: str, message: Arrays, answer: Any) -> Arrays:
    """The answer of a client as exact int64, or an `AnswerError` that says what is wrong with it.

    It is copied before it is looked at: who sent it may change it. Where clients are the unit, a
    norm above the bound is wrong too, unless clients add the noise: then nobody sees what it was
    before. At row level, an entry of more than 2**61 counts as 2**61: the clamp is the same
    function for all data, and moves no two answers farther apart. To refuse the client instead
    would take all its rows away for the sake of one. An answer with noise is taken as it is: a
    clamp would swallow noise that others count on.
    """
    if type(answer) is not dict or set(answer) != set(ANSWERS[kind]):
        raise AnswerError(_wrong_keys(kind))
    checked = {}
    noisy = bool(message["noise"].size)
    for name, shape in _shapes(kind, message).items():
        value = np.asarray(answer[name])
        if value.dtype.kind not in "iu":
            raise AnswerError(f"{name}: {NO_INTEGERS}")
        if value.shape != shape:
            raise AnswerError(f"{name}: {WRONG_SHAPE}")
        value = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64, casting="safe")
        if value.shape != shape:  # the shape is checked before the copy, and of the copy
            raise AnswerError(f"{name}: {WRONG_SHAPE}")
        value = checked[name] = value.view(np.int64) if noisy else clamped(value)
        if message["shares"].size and not noisy and norm_of(name, value, message) > CLIENT_STEPS:
            raise AnswerError(f"{name}: {OUT_OF_RANGE}")
    return checked


def _wrong_keys(kind: str) -> str:
    return f"an answer must hold exactly: {', '.join(ANSWERS[kind])}."


def _shapes(kind: str, message: Arrays) -> dict[str, tuple[int, ...]]:
    """Public shapes of the vectors of an answer."""
    d, k = len(message["center"]), len(message["anchors"])
    known = {
        "bound": len(NORM_EDGES) - 1,
        "center sum": d,
        "center count": 1,
        "second moment": d * (d + 1) // 2,
        "weights": len(message["points"]),
        **dict.fromkeys(REACHES, 1),
    }
    return {
        name: (known.get(name, k * d if name.endswith(("sums", "means")) else k),)
        for name in ANSWERS[kind]
    }


_KNOWN_REASONS = {
    *(WRONG_TYPES, WRONG_COLUMNS, WRONG_NAMES, NO_NAMES),
    *map(_wrong_keys, ANSWERS),
    *(
        f"{name}: {words}"
        for names in ANSWERS.values()
        for name in names
        for words in (NO_INTEGERS, WRONG_SHAPE, OUT_OF_RANGE)
    ),
}


def _reason(error: BaseException) -> str:
    """What operators are told of an error: words of this package, or the name of its kind. The
    words of others may quote rows, and a client may make up names."""
    if type(error) is AnswerError and str(error) in _KNOWN_REASONS:
        return str(error)
    name = type(error).__name__
    return name if getattr(builtins, name, None) is type(error) else "an exception of its own"


# -- clients of this process -----------------------------------------------------------------------


_BLOCK = 2**16  # rows of a client, where nobody says who holds what
_MOST_WORK: Any = 1000  # of numpy's search for a common element of two arrays with strides
_MOST_PAIRS = 2**16  # of arrays that lie in one another's gaps: a tenth of a second


def check_distinct(clients: Sequence[Any]) -> None:
    """Refuse clients of :class:`LocalEngine` that are there twice, which moves every sum by twice
    what is claimed: a ``client_id`` or an object that occurs twice, or arrays that share memory. No
    value is looked at, and no error is a client's own."""
    asked = (attempt(getattr, client, "client_id") for client in clients)
    ids = [found for found, error in asked if error is None]
    distinct, error = attempt(set, ids)
    if error is not None:
        raise TypeError("clients: every client_id must be hashable.")
    if len(distinct) < len(ids):
        raise ValueError("clients: every client_id must occur once.")
    # A method is made anew whenever it is asked for: it is told from others by what it is made of.
    places = {
        (id(client.__self__), id(client.__func__))
        if type(client) is MethodType
        else (id(client), 0)
        for client in clients
    }
    if len(places) < len(clients):
        raise ValueError("clients: the same object appears twice.")
    # Without the code of their own classes, by which they could hide where they are.
    arrays = [
        np.ndarray.view(client, np.ndarray)
        for client in clients
        if issubclass(type(client), np.ndarray)
    ]
    if _overlap([array for array in arrays if array.size]):
        raise ValueError("clients: two arrays share memory; rows must belong to one client.")


def _has(client: Any, name: str) -> bool:
    """True if a client has an attribute; False also where it raises, whatever that is."""
    return attempt(getattr, client, name)[1] is None


def _overlap(arrays: Sequence[np.ndarray]) -> bool:
    """True if two arrays have memory in common. One that begins after another has ended shares
    nothing with it, and two that begin at the same place share it. For others, numpy looks for an
    element of both, for a while: unusual strides of hundreds of arrays are missed."""
    spans = sorted((*byte_bounds(array), number) for number, array in enumerate(arrays))
    before: list[tuple[int, int, int]] = []  # spans that may reach as far as this one
    pairs = 0
    for span in spans:
        low, _, number = span
        before = [other for other in before if other[1] > low]
        for other in reversed(before):
            pairs += 1
            if low == other[0]:
                return True
            if pairs >= _MOST_PAIRS:
                continue
            try:
                if np.shares_memory(arrays[number], arrays[other[2]], max_work=_MOST_WORK):
                    return True
            except np.exceptions.TooHardError:
                pass
        before.append(span)
    return False


def partition(X: np.ndarray, units: Units) -> list[Callable[[], np.ndarray]]:
    """Clients that hold the rows of one array, and read them when they are asked: by `units`, or
    blocks of rows in their order, whose answers add up to the same sums."""
    parts: list[Any]
    if units.index is None:
        parts = [slice(start, start + _BLOCK) for start in range(0, len(X), _BLOCK)]
    else:
        parts = block_rows(units.index, units.size)
    return [partial(X.__getitem__, part) for part in parts]


class LocalEngine:
    """Clients of this process, asked through joblib: rows, functions that return them, or objects
    with a method ``update(kind, message)``. One that does not answer in `seconds` is given up."""

    def __init__(
        self, clients: Sequence[Any], n_jobs: int | None = None, seconds: float | None = None
    ) -> None:
        self.clients, self.n_jobs, self.seconds = clients, n_jobs, seconds
        self.seed_shares(None)

    def seed_shares(self, seed: int | None) -> None:
        """Make the clients' shares of the noise reproducible, for tests; None: they are not."""
        self.shares = [NoiseShares(seed, number) for number in range(len(self.clients))]

    def ask(self, kind: str, message: Arrays) -> list[tuple[Any, BaseException | None]]:
        """Pairs (answer, error) of all clients, in their order; one of the two is None. A method of
        a client gets a copy of the message; an answer that it changes later is copied in time."""
        return ask_all(
            partial(_answer, kind, message),
            list(zip(self.clients, self.shares, strict=True)),
            n_jobs=self.n_jobs,
            seconds=self.seconds,
        )


def _answer(kind: str, message: Arrays, client_and_shares: tuple[Any, Any]) -> Arrays:
    """Return the answer of a client: by its own method, or from its rows."""
    client, shares = client_and_shares
    if _has(client, "update") and not _has(client, "shape"):
        # Checked by the message that no client gets, and in the time of the client: whatever it
        # answers with may have methods.
        return check_answer(kind, message, client.update(kind, deepcopy(message)))
    rows = read_rows(message, client) if callable(client) else client
    return client_update(kind, message, rows, shares)


# -- a round ---------------------------------------------------------------------------------------


def total_of(
    kind: str, message: Arrays, answers: Iterable[tuple[Any, BaseException | None]]
) -> tuple[Arrays | None, list[tuple[int, str]]]:
    """The sum of the answers, or None; and which clients gave none that can be used, and why.

    These count as clients that hold nothing. Noise that the server adds does not depend on how many
    there are, so the guarantee stands; at row level only if a client does not fail *because of*
    single rows. Noise that clients add is less without theirs, so too few answers end the fit."""
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


def run_rounds(
    state: State,
    update: Callable[..., State],
    session: PrivacySession,
    engine: Any,
    progress: Callable[[str], None] | None = None,
) -> tuple[State, list[dict[str, Any]]]:
    """Go through all the rounds, from the state of :func:`first_message` to the last one, by
    `update`, which is :func:`server_update`. Also returned is the communication: floats and bytes
    of a client in each round, from public shapes."""
    communication = []
    while (message := state.message) is not None:
        kind = state.kind
        # What is claimed has been settled with the message; a copy of it is all that others get.
        answers = list(engine.ask(kind, state.message or {}))
        total, failed = total_of(kind, message, answers)
        if failed:  # for whoever runs the fit, and no part of the model
            shown = "; ".join(f"client {number}: {reason}" for number, reason in failed[:5])
            more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
            one = len(failed) == 1
            who = "1 client, which counts" if one else f"{len(failed)} clients, which count"
            text = f"round {kind!r}: no usable answer from {who} as empty ({shown}{more})"
            warn(text, UtilityWarning)
        # A client without rows and without noise; the shapes of its answer are public.
        nobody = client_update(
            kind, message | {"noise": np.empty(0)}, np.empty((0, len(message["center"])))
        )
        # 8 bytes a number, as it is sent without compression; noise has the size of what it is in.
        numbers = {
            "down": sum(value.size for value in message.values() if value.dtype.kind != "U"),
            "up": sum(nobody[name].size for name in ANSWERS[kind]),
        }
        communication.append(
            {"round": state.round, "kind": kind}
            | {f"numbers_{way}": number for way, number in numbers.items()}
            | {f"bytes_{way}": 8 * number for way, number in numbers.items()}
        )
        total = nobody if total is None else total
        state = update(state, total, session, len(answers) - len(failed))
        if progress is not None:
            progress(f"round {kind}")
    return state, communication


# -- Flower ----------------------------------------------------------------------------------------
# A message of the server travels as an ``ArrayRecord`` and its kind as a ``ConfigRecord``, both in
# a query to each node; a node answers with an ``ArrayRecord`` of the same kind. Nothing is kept at
# a node between rounds. Flower is imported where it is used: the package does without it.


_MESSAGE, _ANSWER, _ROUND = "message", "answer", "round"


def is_grid(clients: Any) -> bool:
    """True if clients are asked through a Flower ``Grid``; Flower need not be there to tell."""
    return hasattr(clients, "send_and_receive") and hasattr(clients, "get_node_ids")


class FlowerEngine:
    """Asks the nodes of a Flower ``Grid``; it waits at most `seconds` for a round."""

    def __init__(self, grid: Any, seconds: float | None = None) -> None:
        self.grid, self.seconds = grid, seconds

    def check(self) -> None:
        """Refuse a grid without nodes, before anything is charged: which are there is public."""
        if not list(self.grid.get_node_ids()):
            raise RuntimeError("clients: no node is connected to the grid; nothing is charged.")

    def ask(self, kind: str, message: Arrays) -> list[tuple[Arrays | None, Exception | None]]:
        """Pairs (answer, error), one for each node, in the order of their ids. The first answer of
        a node counts, else it could move a sum by twice what is claimed of it."""
        from flwr.app import ConfigRecord, Message, MessageType, RecordDict

        nodes = sorted(self.grid.get_node_ids())
        queries = []
        for node in nodes:
            parts = {_MESSAGE: _record(message), _ROUND: ConfigRecord({"kind": kind})}
            queries.append(Message(RecordDict(parts), node, MessageType.QUERY))
        replies: dict[int, Any] = {}
        for reply in self.grid.send_and_receive(queries, timeout=self.seconds):
            replies.setdefault(reply.metadata.src_node_id, reply)
        return [_read(replies.get(node)) for node in nodes]


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
