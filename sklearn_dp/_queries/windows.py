"""Scores made of the sealed scores of an ordered set of candidates, for recursive searches.

Maxima and minima of scores, and of scores and constants, move by no more than the scores do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._privacy._sealed import Claim, Sealed, exact_of


def _made_of(scores: Sealed, function: Callable[[Any], np.ndarray], about: str) -> Sealed:
    """Numbers that move by no more than the scores do: the callers' proof."""
    value, claim = function(exact_of(scores)), scores.claim
    entry_claim = Claim.of_entries(claim.of_one, len(value), claim.rate)
    return Sealed(value, entry_claim, scores.units, about)


def padded(scores: Sealed) -> Sealed:
    """To a power of two, with what is never better than the last score.

    A constant, or the last score: the padding is as sensitive as the scores are.
    """

    def longer(values: np.ndarray) -> np.ndarray:
        size = 1 << (len(values) - 1).bit_length()
        return np.append(values, np.full(size - len(values), min(0, int(values[-1]))))

    return _made_of(scores, longer, "padded")


def window_widths(scores: Sealed, low: int, high: int) -> Sealed:
    """For j = 0, 1, ...: min(w_j - low, high - w_(j+1)), where w_j is the largest level that the
    ends of some window of 2**j candidates reach.

    For a quasi-concave score that is the level of the whole window. The last w is for windows that
    do not fit: as bad as any.
    """

    def inner(values: np.ndarray) -> np.ndarray:
        columns = [
            int(np.minimum(values[: len(values) - width + 1], values[width - 1 :]).max())
            for width in (1 << j for j in range(len(values).bit_length()))
        ]
        widths = np.array([*columns, min(0, columns[-1])], dtype=np.int64)
        return np.minimum(widths[:-1] - low, high - widths[1:])

    return _made_of(scores, inner, "window_widths")


def best_of_intervals(scores: Sealed, starts: range) -> Sealed:
    """The best score of each interval of a partition, from its start to that of the next one."""

    def best(values: np.ndarray) -> np.ndarray:
        return np.array([values[max(start, 0) : start + starts.step].max() for start in starts])

    return _made_of(scores, best, "best_of_intervals")


def some_of(scores: Sealed, candidates: list[int]) -> Sealed:
    """The scores of some candidates, public or released."""
    return _made_of(scores, lambda values: values[candidates], "some_of")
