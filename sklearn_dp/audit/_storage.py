"""The same rows as users hand them over: other orders, types and kinds of memory."""

import tempfile
from typing import Any

import numpy as np

from .._privacy._checks import check_choice

__all__ = ["STORAGES", "stored"]

STORAGES = ("C", "F", "float32", "memmap", "read-only")
"""How rows may be stored; see `stored`."""


@np.errstate(all="ignore")
def stored(X: Any, storage: str) -> np.ndarray:
    """Finite rows in a storage.

    ``"C"`` and ``"F"``: order of a float64 array. ``"float32"``: numbers beyond the type are moved
    to the largest of it. ``"memmap"``: a temporary file, mapped for reading. ``"read-only"``: a
    view of every other row and column that cannot be written to.
    """
    check_choice("storage", storage, STORAGES)
    if storage == "float32":
        limit = float(np.finfo(np.float32).max)
        return np.clip(X, -limit, limit).astype(np.float32)
    X = np.array(X, dtype=np.float64, order="F" if storage == "F" else "C")
    if storage == "memmap" and X.size:  # nothing cannot be mapped
        # What `numpy.load(mmap_mode="r")` gives. The mapping outlives the file object.
        with tempfile.TemporaryFile() as file:
            file.write(X.tobytes())
            file.flush()
            return np.memmap(file, dtype=np.float64, mode="r", shape=X.shape)
    if storage == "read-only":
        wide = np.full((2 * X.shape[0], 2 * X.shape[1]), 0.5)
        wide[::2, ::2] = X
        X = wide[::2, ::2]
        X.flags.writeable = False
    return X
