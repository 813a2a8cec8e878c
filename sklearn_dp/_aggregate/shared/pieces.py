"""Tables that come in pieces, as one array: in memory, or in a file where they are large.

A table that does not fit in memory may come as an iterable of its parts. Every mechanism reads all
rows several times, and an iterable can be read once: so the rows are collected first.

Sizes are not hidden from whoever watches this process: a file tells that there are many rows, as
the time and the memory of a fit do (`SECURITY.md`).
"""

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["gather"]

_KEPT_BYTES = 2**28  # beyond this size pieces go to a temporary file


def gather(pieces: Iterable[Any]) -> np.ndarray:
    """One array from an iterable of arrays of rows, each of which is read once.

    Beyond 256 MB the rows are kept in a temporary file, which goes away with the array.

    Parameters
    ----------
    pieces : iterable of array-like of shape (n_i, n_features)

    Returns
    -------
    rows : ndarray or memmap of float64 of shape (n, n_features)

    Raises
    ------
    ValueError
        Where a piece is no table, or has another number of columns than the first.
    """
    kept: list[np.ndarray] = []
    size = 0
    pieces = iter(pieces)
    for piece in pieces:
        kept.append(_numbers(piece))
        size += kept[-1].nbytes
        if size > _KEPT_BYTES:
            return _spool(kept, pieces)
    for piece in kept:
        _check_width(piece, kept[0].shape[1])
    return np.concatenate(kept)


def _numbers(piece: Any) -> np.ndarray:
    """A piece as a contiguous array of doubles; numpy's own error would quote what it holds."""
    try:
        piece = np.ascontiguousarray(piece, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        piece = None
    # Raised outside of the handler: as the context of this error, numpy's would be shown too.
    if piece is None or piece.ndim != 2:
        raise ValueError("each piece must be a numeric array of shape (n_i, n_features).")
    return piece


def _check_width(piece: np.ndarray, width: int) -> None:
    """Refuse a piece of another width; the message names neither the piece nor its width."""
    if piece.shape[1] != width:
        raise ValueError("all pieces must have the same number of columns.")


def _spool(kept: list[np.ndarray], pieces: Iterator[Any]) -> np.ndarray:
    """A memmap of what is there already and of what comes, in a file without a name.

    Parameters
    ----------
    kept : list of ndarray
        The pieces in memory so far.
    pieces : iterator
        What comes next.

    Returns
    -------
    rows : memmap of shape (n, width), read-only
        One piece is in memory at a time. The file has no name, so it goes away with the mapping,
        even after a crash.
    """
    width, rows = kept[0].shape[1], 0
    with tempfile.TemporaryFile() as file:
        for piece in map(_numbers, itertools.chain(kept, pieces)):
            _check_width(piece, width)
            file.write(piece.data)
            rows += len(piece)
        file.flush()
        # The mapping outlives the file object.
        return np.memmap(file, dtype=np.float64, mode="r", shape=(rows, width))
