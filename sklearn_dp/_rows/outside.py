"""Which rows are beyond public bounds: each a function of its row alone."""

from typing import Any

import numpy as np

from .._privacy._domain import Domain, safe_norms
from .._privacy._grid import row_of_each_entry
from .rows import without_zeros
from .sparse_rows import SparseRows

_EQUAL = 1e-5  # of a side: what rounding may exceed


def outside(domain: Domain, X: np.ndarray) -> np.ndarray:
    """Which rows are beyond public bounds, by more than rounding: of each row alone."""
    if domain.low is not None and domain.high is not None:
        return np.any(_outside_box(domain, X), axis=1)
    far = domain.radius * (1 + _EQUAL)
    rows = np.asarray(X, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    flags, unsure = squares > far**2, np.abs(squares / far**2 - 1) < _EQUAL
    # The last bits of a product may depend on other rows, and decide nothing.
    flags[unsure] = safe_norms(rows[unsure]) > far
    return flags


def beyond(domain: Domain, X: np.ndarray | SparseRows, part: slice) -> np.ndarray:
    """Which of some rows are outside a domain."""
    if not isinstance(X, SparseRows) or not X.width:
        return outside(domain, X[part])
    table = X.entries(part)
    n, d = table.shape
    zeros = np.zeros(d)
    if domain.low is None:  # each entry tells of its row
        entries = without_zeros(table, lambda rows: outside(domain, rows)[:, None] & (rows == rows))
    else:
        domain_of_entries = domain.at(np.append(np.arange(d), table.indices))
        line = _outside_box(domain_of_entries, np.append(zeros, table.data)).astype(np.float64)
        zeros, entries = line[:d], line[d:]
    rows = row_of_each_entry(table)
    # What is stored of a row, and the zeros of all columns but these.
    return np.bincount(rows, entries - zeros[table.indices], n) + zeros.sum() > 0


def _outside_box(domain: Any, X: np.ndarray) -> np.ndarray:
    """Which entries are beyond a box, by more than rounding."""
    off = _EQUAL * (domain.high - domain.low)
    return (domain.low - off > X) | (domain.high + off < X)
