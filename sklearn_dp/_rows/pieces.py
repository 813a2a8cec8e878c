"""Tables that come in pieces, and what is kept of them: in memory, or in a file if large, which
tells that there are many rows, as time and memory do (`SECURITY.md`)."""

import mmap
import tempfile
from collections import deque
from collections.abc import Iterable
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np

_KEPT_BYTES = 2**28  # beyond this size pieces go to a temporary file
_BESIDE_BYTES = 2**26  # and one array for each of all parts, beyond this size
_FILE_BYTES = 2**28  # of a file of such arrays: it goes away when none of them is needed
_ALIGNED = 64


def kept(pieces: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Copies of arrays of rows, each of which is read once; beyond 256 MB in a nameless file."""
    held, rest = _up_to_limit(map(np.array, pieces))  # others may fill the same array again
    return held if rest is None else np.split(*_in_file(chain(_let_go(held), rest), "r"))


def joined(pieces: Iterable[np.ndarray]) -> np.ndarray:
    """One array of such pieces, at least one: in memory or, beyond 256 MB, in such a file."""
    held, rest = _up_to_limit(pieces)
    if rest is None:
        return np.concatenate(held)
    return np.asarray(_in_file(chain(_let_go(held), rest), "r+")[0])


def _up_to_limit(pieces: Iterable[np.ndarray]) -> tuple[Any, Any]:
    """Pieces in memory, and those that are left to be read, where all are too many."""
    held: list[np.ndarray] = []
    size, pieces = 0, iter(pieces)
    for rows in pieces:
        held.append(rows)
        size += rows.nbytes
        if size > _KEPT_BYTES:
            return held, pieces
    return held, None


def _let_go(held: list[np.ndarray]) -> Iterable[np.ndarray]:
    """Each is let go once it is written."""
    left = deque(held)
    held.clear()
    return (left.popleft() for _ in range(len(left)))


def _in_file(pieces: Iterable[np.ndarray], mode: Any) -> tuple[np.ndarray, np.ndarray]:
    """A view of a file, and where pieces but the first begin."""
    lengths = []
    with tempfile.TemporaryFile() as file:
        for rows in pieces:
            file.write(np.ascontiguousarray(rows).data)
            lengths.append(len(rows))
        file.flush()
        shape = (sum(lengths), *rows.shape[1:])
        return np.memmap(file, rows.dtype, mode, shape=shape), np.cumsum(lengths)[:-1]


class ArraysBeside:
    """Arrays that parts keep from one pass to the next, in temporary files where they are large,
    into which they are written: a full disk raises an error then."""

    def __init__(self) -> None:
        self._file: Any = None
        self._lock, self._end = Lock(), 0
        self._view = np.empty(0, dtype=np.uint8)

    def moved(self, value: Any, n_parts: int) -> Any:
        """The value, with large arrays in a file: it is one of them, or a tuple, or has some."""
        if isinstance(value, np.ndarray):
            large = value.nbytes * n_parts > _BESIDE_BYTES and value.dtype != object
            return self._copied(value) if large and not _in_a_file(value) else value
        if isinstance(value, tuple):
            found = [self.moved(each, n_parts) for each in value]
            return type(value)._make(found) if hasattr(value, "_make") else tuple(found)
        own = vars(value) if hasattr(value, "__dict__") else {}
        own.update({k: self.moved(v, n_parts) for k, v in own.items() if isinstance(v, np.ndarray)})
        return value

    def _copied(self, array: np.ndarray) -> np.ndarray:
        data = np.ascontiguousarray(array)
        with self._lock:
            start = -(-self._end // _ALIGNED) * _ALIGNED
            if start + data.nbytes > len(self._view):
                size, start = max(_FILE_BYTES, data.nbytes), 0
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                self._file.truncate(size)
                self._view = np.asarray(np.memmap(self._file, np.uint8, "r", shape=size))
            self._file.seek(start)
            left = data.reshape(-1).view(np.uint8).data
            while left:
                left = left[self._file.write(left) :]
            self._end = start + data.nbytes
            return self._view[start : self._end].view(data.dtype).reshape(data.shape)


def _in_a_file(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)
