"""What a client does: from a message of the server and its own rows to integers.

A message is a dict of plain arrays, and so is an answer; both can be sent by any transport.

1. Rows that cannot be used (NaN, infinite, no numbers) are left out one by one (`_client_rows`),
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

from .._aggregate.shared.single_rows import row_guard, saturated
from .._privacy._checks import check_choice
from .._privacy.mechanisms.shares import NoiseShares
from .._queries.client_rounds import ANSWERS, LARGEST_ENTRY, Arrays, exact_update, upper_triangle
from ._client_rows import usable_rows


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
        As the server sends it; see the table in ``sklearn_dp/federated/_messages.py``.
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
    """What a client's function `read` returns; nothing if it fails where others count on its noise.

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
    X = usable_rows(rows, len(message["center"]), _names_of(message))
    return saturated(X[: int(message["most_rows"][0])] if message["most_rows"].size else X)


def _names_of(message: Arrays) -> list[str] | None:
    return message["names"].tolist() if "names" in message else None


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
