"""The work of a client: from a message of the server and its own rows to integers.

A message is a dict of plain arrays, and so is an answer; both can be sent by any transport.

1. Rows that cannot be used (NaN, infinite, no numbers) are left out one by one (`_client`),
   and those beyond the public number of rows of a client.
2. `sklearn_dp._queries.client_rounds` makes integers of what is left, and bounds them where
   clients are the unit.
3. Where the message has ``noise``, clients add the noise: each one its share, to its own answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._columns import Schema, check_numbers
from .._door import in_order, rows_of, schema
from .._door_entries import lists_rows
from .._privacy._checks import check_choice
from .._privacy.mechanisms.shares import NoiseShares
from .._queries.client_rounds import (
    ANSWERS,
    CLIENT_STEPS,
    LARGEST_ENTRY,
    NORM_EDGES,
    REACHES,
    Arrays,
    clamped,
    exact_update,
    norm_of,
    upper_triangle,
)
from .._rows.single_rows import row_guard, saturated


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
    if not message["noise"].size:
        return exact_update(kind, message, _rows_of(message, rows))
    try:
        X = _rows_of(message, rows)
    except Exception:  # whatever it is that cannot be read
        X = np.empty((0, len(message["center"])))
    answer = exact_update(kind, message, X)
    shares = NoiseShares() if shares is None else shares
    return {
        name: _with_share(name, value, message, shares, line)
        for (name, value), line in zip(answer.items(), message["noise"], strict=True)
    }


def read_rows(message: Arrays, read: Callable[..., Any], *arguments: Any) -> Any:
    """Return the rows of a client's function `read`; nothing if it fails where others count on its
    noise.

    `read` may be a database, a file, a Flower context. The message's ``noise`` says whether clients
    add the noise: then None, which counts as no rows, after an error. In other rounds the error
    passes on, and the client counts as empty (see `_engines.total_of`).
    """
    try:
        return read(*arguments)
    except Exception:
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
    """An exact vector in fine steps, and the client's share of the noise.

    The message has the number of the round, which tells seeded shares apart. Its line for a vector
    holds the standard deviation of the share in fine steps, that for entries of a second moment off
    its diagonal, and how many bits finer than a step a fine step is.
    """
    sigma, off_diagonal, bits = line
    scale: Any = sigma
    if name == "second moment":
        diagonal = np.equal(*upper_triangle(len(message["center"])))
        scale = np.where(diagonal, sigma, off_diagonal)
    noise = shares.draw(name, int(message["round"][0]), scale, value.shape)
    # A clamp changes no distance for the worse, and leaves room for the noise.
    largest = LARGEST_ENTRY >> int(bits)
    return (np.clip(value, -largest, largest) << int(bits)) + noise


# -- rows that can be used -------------------------------------------------------------------------


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def usable_rows(rows: Any, n_features: int, names: Any = None) -> np.ndarray:
    """Those rows that are `n_features` finite real numbers, as floats. The columns of a data frame
    are taken in the order of `names`. An `AnswerError` for a table of other columns, or of named
    ones where there are no `names`, by its type alone."""
    if lists_rows(rows):  # its rows may be anything
        return _finite(rows_of(rows, Schema(n_features)))
    given = _told(WRONG_COLUMNS, schema, rows)
    if given.n_features != n_features:
        raise AnswerError(WRONG_COLUMNS)
    _told(WRONG_TYPES, check_numbers, given)
    rows = _told(NO_NAMES if names is None else WRONG_NAMES, in_order, rows, names)
    return _finite(_told(WRONG_COLUMNS, rows_of, rows, given))


def _finite(rows: np.ndarray) -> np.ndarray:
    return rows[np.isfinite(rows).all(axis=1)]


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


WRONG_TYPES = "a client's rows must be real numbers."
WRONG_NAMES = "a client's columns must have the public names, in any order."
NO_NAMES = (
    "a client's table names its columns, and the fit knows no names: give them, as n_features."
)
WRONG_COLUMNS = "a client's rows must be a matrix with the public number of columns."


class AnswerError(ValueError):
    """An error in an answer, in words that never hold data; they are shown to operators."""


def check_answer(kind: str, message: Arrays, answer: Any) -> Arrays:
    """The answer of a client as exact int64, or an `AnswerError` that says what is wrong with it.

    Where clients are the unit, a norm above the bound is wrong too, unless clients add the noise:
    then nobody sees what it was before.

    The answer is copied before it is looked at: who sent it may hold on to it and change it. At
    row level, an entry of more than 2**61 counts as 2**61: the clamp is the same function for all
    data, and moves no two answers farther apart. To refuse the client instead would take all its
    rows away for the sake of one. An answer with noise is taken as it is: a clamp would swallow
    noise that others count on.
    """
    if type(answer) is not dict or set(answer) != set(ANSWERS[kind]):
        raise AnswerError(f"an answer must hold exactly: {', '.join(ANSWERS[kind])}.")
    checked = {}
    noisy = bool(message["noise"].size)
    for name, shape in _shapes(kind, message).items():
        value = np.asarray(answer[name])
        if value.dtype.kind not in "iu":
            raise AnswerError(f"{name}: an answer must be integers.")
        if value.shape != shape:
            raise AnswerError(f"{name}: wrong shape.")
        value = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64, casting="safe")
        if value.shape != shape:  # the shape is checked before the copy, and of the copy
            raise AnswerError(f"{name}: wrong shape.")
        value = checked[name] = value.view(np.int64) if noisy else clamped(value)
        if message["shares"].size and not noisy and norm_of(name, value, message) > CLIENT_STEPS:
            raise AnswerError(f"{name}: out of the public range.")
    return checked


def _shapes(kind: str, message: Arrays) -> dict[str, tuple[int, ...]]:
    """Public shapes of the vectors of an answer."""
    d = len(message["center"])
    k = len(message["anchors"])
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
