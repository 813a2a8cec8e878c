"""What an answer of a client is: its vectors, their shapes, norms and steps, and its checks.

An answer is a dict of vectors of integers, one for each release of the round (`ANSWERS`). Whoever
sums cannot trust it: a client may send anything. So what arrives is copied, checked for its names,
types, shapes and, where clients are the unit, norms (`check_answer`); what has no bound saturates
(`clamped`); and sums never wrap (`exact_sum`). A wrapped sum would be the worst of all: the clip
of one row could then move it by 2**64, and no noise is made for that.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .._privacy._rounding import bounded_integers

__all__ = [
    "ANSWERS",
    "CLIENT_STEPS",
    "LARGEST_ENTRY",
    "NORM_EDGES",
    "WRONG_COLUMNS",
    "NO_NAMES",
    "WRONG_NAMES",
    "WRONG_TYPES",
    "AnswerError",
    "Arrays",
    "REACHES",
    "check_answer",
    "clamped",
    "exact_sum",
    "is_count",
    "norm_of",
    "upper_triangle",
]

Arrays = dict[str, np.ndarray]
"""A message, an answer, or a sum of answers."""
CLIENT_STEPS = 2**20
"""Norm of the answer of a client, in steps, where clients are the unit."""
NORM_EDGES = np.concatenate([[0.0], 2.0 ** (np.arange(-200, 201) / 2)])
"""Public bins for the norms of rows, where no bound is known."""
LARGEST_ENTRY = 2**61
"""Entries of answers, and of their sums, saturate here, unless clients add the noise."""
WRONG_TYPES = "a client's rows must be real numbers."
WRONG_NAMES = "a client's columns must have the public names, in any order."
NO_NAMES = (
    "a client's table names its columns, and the fit knows no names: give them, as n_features."
)
WRONG_COLUMNS = "a client's rows must be a matrix with the public number of columns."
ANSWERS = {
    "bound": ("bound",),
    "center": ("center sum", "center count"),
    "moment": ("second moment",),
    "weights": ("weights",),
    "lift": ("lift sums", "lift counts"),
    "means": ("client means", "client presence"),
    "margin": ("margin sums", "margin counts"),
    "lloyd": ("lloyd sums", "lloyd counts"),
    "moment reach": ("moment reach",),
    "lift reach": ("lift reach",),
}
"""The vectors that a client sends in each kind of round."""

REACHES = {"moment reach": "second moment", "lift reach": "lift sums"}
"""Rounds that ask how long a vector of the next round would be, and the name of that vector."""


class AnswerError(ValueError):
    """What is wrong with an answer, in words that never hold data; they are shown to operators."""


def is_count(name: str) -> bool:
    """Whether a vector holds counts: what the paper gives Laplace noise.

    >>> [name for name in ("bound", "lift sums", "lift counts") if is_count(name)]
    ['bound', 'lift counts']
    """
    return name in ("bound", "weights", "client presence") or name.endswith(("count", "counts"))


@lru_cache(maxsize=8)
def upper_triangle(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the upper triangle of a d x d matrix; the same for every client.

    >>> np.array(upper_triangle(2)).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return np.triu_indices(d)


def norm_of(name: str, value: np.ndarray, message: Arrays) -> float:
    """The norm that the vector `name`, of integers, is clipped in.

    Entries are at most 2**26, so that squares and their sums are exact. The norm is Frobenius' for
    the upper triangle of a moment, l1 for counts that get Laplace noise (the ``l1`` of the message
    says whether they do), else l2.

    >>> message = {"l1": np.zeros(0)}
    >>> norm_of("second moment", np.array([1, 2, 4]), message)  # of [[1, 2], [2, 4]]
    5.0
    >>> norm_of("lift sums", np.array([3, 4]), message)
    5.0
    """
    value = np.asarray(value, dtype=np.float64)
    if message["l1"].size and is_count(name):
        return float(np.abs(value).sum())
    squares = np.square(value)
    if name == "second moment":
        d = (math.isqrt(8 * len(value) + 1) - 1) // 2  # len(value) = d (d + 1) / 2
        # An entry off the diagonal stands for two of the matrix.
        squares *= np.where(np.equal(*upper_triangle(d)), 1.0, 2.0)
    return math.sqrt(float(squares.sum()))


def check_answer(kind: str, message: Arrays, answer: Any) -> Arrays:
    """The answer of a client as exact int64, or an `AnswerError` that says what is wrong with it.

    Wrong are another set of vectors than :func:`client_update` has, a wrong shape, numbers that are
    not integers; where clients are the unit, also a norm above the one that bounds them, unless
    they add noise themselves: then nobody sees what it was before.

    The answer is copied before it is looked at: who sent it may hold on to it and change it. At
    row level, an entry of more than 2**61 counts as 2**61: the clamp is the same function for all
    data, and moves no two answers farther apart. To refuse the client instead would take all its
    rows away for the sake of one. An answer with noise is taken as it is: a clamp would swallow
    noise that others count on.
    """
    if type(answer) is not dict or set(answer) != set(ANSWERS[kind]):
        raise AnswerError(f"an answer must hold exactly: {', '.join(ANSWERS[kind])}.")
    found = {}
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
        value = found[name] = value.view(np.int64) if noisy else clamped(value)
        if message["shares"].size and not noisy and norm_of(name, value, message) > CLIENT_STEPS:
            raise AnswerError(f"{name}: out of the public range.")
    return found


def clamped(value: np.ndarray) -> np.ndarray:
    """Integers (int64, uint64 or Python's) of at most 2**61, as int64; no two are farther apart.

    >>> clamped(np.array([7, 2**64 - 1], dtype=np.uint64)).tolist() == [7, 2**61]
    True
    """
    if value.dtype == np.uint64:
        return bounded_integers(np.minimum(value, LARGEST_ENTRY), np.int64)
    return bounded_integers(np.clip(value, -LARGEST_ENTRY, LARGEST_ENTRY), np.int64)


def exact_sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of two arrays of integers, which never wraps: as Python integers where it could.

    So sums do not depend on what is added first. To clamp on the way would: how far single rows
    move the sum could then depend on who holds them, and noise inside of it could be lost.

    >>> exact_sum(np.array([2**62]), np.array([2**62])).tolist() == [2**63]
    True
    """
    largest = (max(int(x.max(initial=0)), -int(x.min(initial=0))) for x in (one, other))
    return (one.astype(object) if sum(largest) >= 2**63 else one) + other


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
