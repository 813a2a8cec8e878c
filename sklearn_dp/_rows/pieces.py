"""Tables that come in pieces, kept for several readings: in memory, or in a file if large.

Sizes are not hidden from whoever watches this process: a file tells that there are many rows, as
the time and the memory of a fit do (`SECURITY.md`).
"""

import tempfile
from collections import deque
from collections.abc import Iterable
from itertools import chain

import numpy as np

_KEPT_BYTES = 2**28  # beyond this size pieces go to a temporary file


def kept(pieces: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Copies of arrays of rows, of one width and type, each of which is read once. Beyond 256 MB in
    a temporary file without a name, which goes away with the last of its views."""
    held: deque[np.ndarray] = deque()
    size, pieces = 0, iter(pieces)
    for rows in pieces:
        held.append(np.array(rows))  # whoever made it may fill the same array again
        size += rows.nbytes
        if size > _KEPT_BYTES:
            # Each is let go once it is written.
            return _in_file(chain((held.popleft() for _ in range(len(held))), pieces))
    return list(held)


def _in_file(pieces: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Views of a file."""
    lengths = []
    with tempfile.TemporaryFile() as file:
        for rows in pieces:
            file.write(np.ascontiguousarray(rows).data)
            lengths.append(len(rows))
        file.flush()
        shape = (sum(lengths), rows.shape[1])
        mapped = np.memmap(file, dtype=rows.dtype, mode="r", shape=shape)
    return np.split(mapped, np.cumsum(lengths)[:-1])
