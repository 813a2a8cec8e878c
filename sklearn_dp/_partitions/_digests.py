"""Digests of what parts hold: they tell whether it is what it was in the first pass.

They stay where the rows are, and where the fit is for as long as it runs; none is in what has been
fitted, in a report, or in a message. A digest has 32 bits: other rows go unseen with a chance of
2**-32. They do not guard against those who mean to deceive.
"""

import zlib
from typing import Any

import numpy as np

from .._privacy._entries import entries_of

__all__ = ["digest", "digest_of_values"]

_PLAIN = "?bBhHiIlLqQefdFDmM"  # types of NumPy, all bytes of which are value
_ENTRIES = 2**16  # put into words at a time


def digest(array: np.ndarray) -> int:
    """A number that changes when rows do, or their order; of an array of shape (n, d)."""
    found = 0
    step = max(1, 2**20 // max(1, array.shape[1]))  # what is copied, if rows are not contiguous
    for start in range(0, len(array), step):
        piece = np.ascontiguousarray(array[start : start + step]).view(np.uint8)
        found = zlib.crc32(piece.data, found)
    return found


def digest_of_values(values: Any) -> int:
    """The same of groups, weights or targets in any container, in every process."""
    entries = entries_of(values)
    if isinstance(entries, np.ndarray):
        if entries.dtype.char in _PLAIN:
            return digest(entries.reshape(-1, 1))
        entries = entries.tolist()
    if {tuple, frozenset} & set(map(type, entries)):
        entries = list(map(_in_order, entries))
    found = 0
    for start in range(0, len(entries), _ENTRIES):
        words = repr(entries[start : start + _ENTRIES])  # those of 1, 1.0 and "1" differ
        found = zlib.crc32(words.encode("utf-8", "surrogatepass"), found)
    return found


def _in_order(value: Any) -> Any:
    """An id whose words are the same in every process: a set has no order of its own."""
    if isinstance(value, frozenset):
        return sorted(repr(_in_order(one)) for one in value)
    return tuple(map(_in_order, value)) if isinstance(value, tuple) else value
