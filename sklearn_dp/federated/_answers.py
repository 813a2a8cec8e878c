"""What an answer of a client is: its vectors, their shapes, norms and steps, and its checks.

An answer is a dict of vectors of integers, one for each release of the round (`ANSWERS`). Whoever
sums cannot trust it: a client may send anything. So what arrives is copied, checked for its names,
types, shapes and, where clients are the unit, norms (`check_answer`); what has no bound saturates
(`clamped`); and sums never wrap (`exact_sum`). A wrapped sum would be the worst of all: the clip
of one row could then move it by 2**64, and no noise is made for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._queries.client_rounds import (
    ANSWERS,
    CLIENT_STEPS,
    NORM_EDGES,
    REACHES,
    Arrays,
    clamped,
    norm_of,
)

WRONG_TYPES = "a client's rows must be real numbers."
WRONG_NAMES = "a client's columns must have the public names, in any order."
NO_NAMES = (
    "a client's table names its columns, and the fit knows no names: give them, as n_features."
)
WRONG_COLUMNS = "a client's rows must be a matrix with the public number of columns."


class AnswerError(ValueError):
    """What is wrong with an answer, in words that never hold data; they are shown to operators."""


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
