"""Statistics are integers and nothing else: by `exact_integers`, or `bounded_integers` of whole
floats.

A cast makes -2**63 of an infinity and of NaN, and no sensitivity covers that. Outside this module
floats become integers by these two only (`tests/test_architecture.py`).
"""

from typing import Any

import numpy as np

_EXACT = 2.0**53  # up to here all integers are floats
_INT64 = np.iinfo(np.int64)


def exact_integers(value: Any) -> np.ndarray:
    """An integer array (int64, or object for large ones) that equals `value`, or a TypeError that
    quotes nothing. Floats must be whole and of at most 2**53: above, a float no longer tells which
    integer it was."""
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in "bi":
        return array.astype(np.int64, copy=False)
    if kind == "u":
        return array.astype(object if np.any(array > _INT64.max) else np.int64)
    if kind == "f" and largest_of(array) <= _EXACT:
        integers = array.astype(np.int64)
        if np.array_equal(integers, array):
            return integers
    if kind == "O" and all(
        isinstance(each, int | np.integer) and not isinstance(each, bool)
        for each in array.ravel().tolist()
    ):
        return array
    raise TypeError("a statistic must consist of integers.")


def bounded_integers(whole: np.ndarray, kind: Any, largest: float | None = None) -> np.ndarray:
    """Floats that the caller knows to be whole as integers of a type that holds them all. No entry
    is larger than `largest`, for those who have looked."""
    largest = largest_of(whole) if largest is None else largest
    if not largest <= np.iinfo(kind).max:  # nor is it where one is NaN
        raise TypeError("a statistic must consist of integers.")
    return whole.astype(kind, copy=False)


def largest_of(array: np.ndarray) -> float:
    """The largest absolute value, or NaN: without the array of all of them."""
    return max(float(array.max(initial=0)), -float(array.min(initial=0)))
