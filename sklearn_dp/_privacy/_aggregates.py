"""Exact statistics that questions are made of, and norms of rows.

Data arrive as integer rows on a public grid (see `_grid`), with `Units` (see `_units`) that say
which rows belong to one unit. Its rows together carry a weight of at most one, so by the triangle
inequality whatever bounds the contribution of a row bounds that of a unit.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.sparse import csc_array

from ._grid import sum_type
from ._rounding import exact_integers
from ._units import Units

_LONGEST = 1e308  # norm of a row
_CHUNK = 2**16  # rows; float64 sums of a chunk stay below 2**53
_CHUNK_ENTRIES = 2**18
# Public bins of norms: 2**-100 .. 2**100, two edges an octave, and one down to 0.
NORM_EDGES = np.concatenate([[0.0], 2.0 ** (-100 + np.arange(401) / 2)])


def weighted_bincount(cells: np.ndarray, units: Units, n_cells: int) -> np.ndarray:
    """Exact weight in each cell, as int64 steps; negative cells are left out."""
    counts = np.zeros(n_cells, dtype=np.int64)
    for start in range(0, len(cells), _CHUNK):
        part = slice(start, start + _CHUNK)
        own, weights = cells[part], None if units.weights is None else units.weights[part]
        inside = own >= 0
        if not inside.all():
            own, weights = own[inside], None if weights is None else weights[inside]
        if n_cells > _CHUNK:  # an array of counts for each piece would take longer
            np.add.at(counts, own, 1 if weights is None else weights)
            continue
        # Weights are integers and their sum stays below 2**53: bincount's float64 sums are exact.
        counts += exact_integers(np.bincount(own, weights, minlength=n_cells))
    return counts


def label_sums(rows: np.ndarray, labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Exact sums of integer rows for each label, as integers of shape (n_labels, d)."""
    total = np.zeros((n_labels, rows.shape[1]), dtype=sum_type(len(rows), 26))
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        ones = np.ones(len(part))
        pick = csc_array(
            (ones, labels[start : start + _CHUNK], np.arange(len(part) + 1)),
            shape=(n_labels, len(part)),
        )
        # Integers of at most 2**26, at most 2**18 of them: every partial sum is below 2**53.
        total += exact_integers(pick @ part)
    return total


def norm_counts(
    X: Any, units: Units, prepared: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Exact weights in 400 public bins of the norms of rows: of `NORM_EDGES`.

    `X` holds finite rows, or is what gives such rows for a slice, and has a length and a shape.
    `prepared` is done to rows first, to each on its own."""
    bins = np.empty(len(X), dtype=np.int32)
    step = max(1, min(_CHUNK, _CHUNK_ENTRIES // max(1, X.shape[1])))
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        rows = rows if prepared is None else prepared(rows)
        bins[start : start + step] = norm_places(rows, NORM_EDGES[1:-1], "right", _octave_halves)
    return weighted_bincount(bins, units, len(NORM_EDGES) - 1)


def safe_norms(X: np.ndarray) -> np.ndarray:
    """Norms of rows; each a function of its row alone, elementwise in a fixed order."""
    norms, step = np.empty(len(X)), max(1, _CHUNK_ENTRIES // X.shape[1])
    for start in range(0, len(X), step):
        _, largest, squares = scaled_columns(X[start : start + step])
        # The root is between 1 and that of the number of columns: no product overflows.
        most = _LONGEST / math.sqrt(X.shape[1])
        norms[start : start + step] = np.minimum(largest, most) * np.sqrt(squares)
    return norms


def scaled_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows over their largest entries, as columns (d, n); these entries; and squared lengths of the
    columns, which cannot overflow. Each is a function of its row alone, in a fixed order."""
    # One long line after the other: short rows are slow.
    columns = np.array(X.T, dtype=np.float64, order="C")
    largest = np.maximum(np.abs(columns.max(axis=0)), np.abs(columns.min(axis=0)))
    columns /= np.where(largest > 0, largest, 1.0)
    squares = np.square(columns)
    # Lines are added one by one. A line of one number is none, and would be added pairwise.
    one = columns.shape[1] == 1
    return columns, largest, np.cumsum(squares)[-1:] if one else squares.sum(axis=0)


def _octave_halves(squares: np.ndarray) -> np.ndarray:
    """The bins of `NORM_EDGES` that norms of such squares are in, next to edges or beyond the ends
    perhaps another one: the exponent of a square between 2**(e-1) and 2**e tells the bin."""
    return np.clip(np.frexp(squares)[1] + 200, 0, len(NORM_EDGES) - 2)


def norm_places(
    X: Any,
    edges: np.ndarray,
    side: Literal["left", "right"],
    guess: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """`np.searchsorted(edges, safe_norms(X), side)`, from norms that are seldom computed so.

    A `guess` of places from squares is faster than a search, and need not be right. `X` may also
    be what has a shape, gives rows for indices and tells their `squares`, and how far these may be
    off.
    """
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(X, np.ndarray):
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
            low = norms = np.sqrt(squares)
        else:
            squares, error = X.squares()
            low, norms = np.sqrt(np.maximum(squares - error, 0.0)), np.sqrt(squares + error)
    places = np.searchsorted(edges, norms, side) if guess is None else guess(squares)
    # d products and sums, and a root, in whatever order: off by less than d + 2 places, and so is
    # the safe norm by d + 6 (a quotient, squared, as well). No edge may be between the two; beyond
    # the ends squares may have overflowed or vanished.
    off = (X.shape[1] + 8) * 2.0**-51
    least = np.maximum(np.append(0.0, edges * (1 + off)), 1e-140)
    most = np.minimum(np.append(edges * (1 - off), np.inf), 1e140)
    # The last bits of a product may depend on other rows, and decide nothing.
    unsure = np.flatnonzero(~((low > least[places]) & (norms < most[places])))
    step = max(1, _CHUNK_ENTRIES // X.shape[1])
    for own in (unsure[start : start + step] for start in range(0, len(unsure), step)):
        places[own] = np.searchsorted(edges, safe_norms(X[own]), side)
    return places
