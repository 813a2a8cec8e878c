"""What a client computes: from a message of the server and its own rows to integers.

A message is a dict of plain arrays, and so is an answer; both can be sent by any transport. Every
answer is a vector of integers on a public grid, so that sums over clients are exact and can be
taken under secure aggregation, in any order.

1. Rows that cannot be used (NaN, infinite, no numbers) are left out one by one (`_client_rows`),
   and those beyond the public number of rows of a client.
2. `_statistics` makes integers of what is left, block by block.
3. The unit of privacy decides what bounds them:

   * rows: each row has been clipped, and the answers add up to the statistic of the pooled rows,
     bit for bit. Which client holds a row has no effect; an answer has no bound of its own.
   * clients (the message has ``shares``): the statistic is divided by the number of rows, and the
     *whole* vector is clipped to a norm and rounded toward zero to 2**-20 of it. The sum over
     clients then moves by at most 2**20 steps for a client more or less, whatever it holds.

4. Where the message has ``noise``, clients add the noise: each one its share, to its own answer.

A neighbor changes what one client sends and nothing else: no step looks at another client, and
none depends on who else is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._aggregate.shared.single_rows import row_guard, saturated
from .._privacy._checks import check_choice
from .._privacy._rounding import exact_integers
from .._privacy.mechanisms.shares import NoiseShares
from ._answers import (
    ANSWERS,
    CLIENT_STEPS,
    LARGEST_ENTRY,
    REACHES,
    Arrays,
    clamped,
    exact_sum,
    norm_of,
    upper_triangle,
)
from ._client_rows import usable_rows
from ._statistics import STATISTICS, row_bounds

__all__ = ["HALF_REACH", "client_rounding", "client_update", "read_rows"]

_BLOCK = 2**16  # rows at a time; sums of so many are exact in floats
_FINE_STEPS = 2.0**26  # of the norm of a client's vector before its clip
_MARGIN = 1 - 2.0**-40  # of a clip factor: far more than the rounding of what it is made of

HALF_REACH = 2.0
"""Half of the range of reaches, in powers of two: shares from a sixteenth to one."""


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
        return _exact_update(kind, message, _rows_of(message, rows))
    try:
        X = _rows_of(message, rows)
    except Exception:  # whatever it is that cannot be read
        X = np.empty((0, len(message["center"])))
    answer = _exact_update(kind, message, X)
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


def _exact_update(kind: str, message: Arrays, X: np.ndarray) -> Arrays:
    """The answer without noise, to rows that can be used."""
    statistic = STATISTICS[kind]
    total = statistic(message, X[:_BLOCK])
    for start in range(_BLOCK, len(X), _BLOCK):
        part = statistic(message, X[start : start + _BLOCK])
        total = {name: exact_sum(total[name], part[name]) for name in total}
    # Clamped once, where the sum is complete: a clamp on the way would depend on the order.
    exact = {name: clamped(value) for name, value in total.items()}
    if kind == "means":
        # The paper's step for clients: local means, and which clusters are present. Both are
        # multiplied by the number of rows, which `_clip_whole` divides by.
        counts = exact["lift counts"]
        sums = exact["lift sums"].reshape(len(counts), -1)
        scaled = np.trunc(sums * (len(X) / np.maximum(counts, 1))[:, None])
        exact = {"client means": scaled.ravel(), "client presence": len(X) * (counts > 0)}
    if kind in REACHES:
        return {kind: _reach(kind, exact[REACHES[kind]], len(X), message)}
    if not message["shares"].size:
        return exact
    bounds = row_bounds(kind, message)
    return {
        name: _clip_whole(name, value, len(X), bounds[name], share, message)
        for (name, value), share in zip(exact.items(), message["shares"], strict=True)
    }


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


# -- clients as the unit ---------------------------------------------------------------------------


def _clip_whole(
    name: str, value: np.ndarray, n_rows: int, bound: float, share: float, message: Arrays
) -> np.ndarray:
    """A client's statistic over its number of rows, clipped as a whole; zero without rows.

    `value` is a sum over `n_rows` rows; `bound` is how far one row moves it: its mean over rows is
    no longer. Moments have Frobenius' norm, counts with Laplace noise the l1 norm. A client's
    vector is clipped to ``share * bound``, the public share is from 0 to 1, and comes in steps of
    ``share * bound / CLIENT_STEPS``.

    Every client's vector has norm at most CLIENT_STEPS, so whatever a client holds, its coming or
    going moves the sum over clients by at most that. One factor for the whole vector: clipping
    its parts would let it grow with their number.
    """
    if n_rows == 0:
        return np.zeros(value.shape, dtype=np.int64)
    # The mean of vectors of norm at most `bound` has at most that norm: 2**26 steps, rounded
    # toward zero. Squares of these integers sum to at most 2**52: the norm is exact.
    fine = np.trunc(value * (_FINE_STEPS / (n_rows * bound)))
    limit = _FINE_STEPS * share
    factor = min(1.0, limit / max(norm_of(name, fine, message), 1.0)) * _MARGIN
    return exact_integers(np.trunc(fine * (factor * CLIENT_STEPS / limit)))


def _reach(kind: str, value: np.ndarray, n_rows: int, message: Arrays) -> np.ndarray:
    """How long a client's vector is before any clip: its logarithm, as one integer, (1,).

    `kind` is a key of `REACHES`; `value`, of which the vector is made, a sum over `n_rows` rows. In
    steps of 1 / CLIENT_STEPS: -1 for a share of 2**-4 of a row's bound or less, 1 for all of it, 0
    for 2**-2; 0 without rows. Whatever a client holds, at most CLIENT_STEPS.
    """
    if n_rows == 0:
        return np.zeros(1, dtype=np.int64)
    name = REACHES[kind]
    bound = row_bounds(kind.removesuffix(" reach"), message)[name]
    # As in `_clip_whole`: the mean over the rows, in integers whose norm is exact.
    fine = np.trunc(value * (_FINE_STEPS / (n_rows * bound)))
    share = max(norm_of(name, fine, message), 1.0) / _FINE_STEPS
    level = min(max(math.log2(share) / HALF_REACH + 1, -1.0), 1.0)
    return np.array([math.trunc(level * CLIENT_STEPS)])


def client_rounding(share: float) -> float:
    """Bound of what the two roundings of a client's vector take from each entry, in its steps.

    Why it matters: a rounded second moment need not be positive semidefinite, which is what
    makes two moments less far apart than two other vectors (see `_round_sensitivities`).

    Less than one fine step and one step, and a hundredth of it for the rounding of floats.
    """
    return 1.01 * (1 + CLIENT_STEPS / (_FINE_STEPS * share))
