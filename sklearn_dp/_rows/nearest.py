"""Nearest centers of rows, and distances to them, row by row. They are not private where the rows
are: a fit hands them to the user of its rows (`labels_`), and computes nothing from them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from .._privacy._grid import unit_rows
from .single_rows import SparseRows, narrowed, row_guard, saturated

_ROWS = 2**16  # at a time, and fewer where there are many points or features:
_BYTES = 2**23
_WIDE = 64  # beyond, it takes longer to make rows of float64 shorter than to multiply them


def nearest_seen(X: Any, centers: np.ndarray, rows_of: Callable[[Any], Any]) -> np.ndarray:
    """The nearest center of each row; `rows_of` prepares the rows for comparison."""
    return nearest_point(rows_of(X), centers)


@row_guard
def nearest_point(X: Any, points: np.ndarray) -> np.ndarray:
    """Index (int32) of the nearest of some released points for each finite row, the lowest of
    equals.

    A function of the row alone. A matrix product is fast, but its bits depend on the other rows. So
    it decides only where all other points are farther by more than what rounding can do. Other rows
    are compared by sums of their squared differences, in a fixed order."""
    if not isinstance(X, SparseRows) or not X.width:
        return _of_dense(X, points)
    labels, unsure = _of_entries(X, points)
    if len(unsure):
        labels[unsure] = _of_dense(X[unsure], points)
    return labels


def _of_dense(X: Any, points: np.ndarray) -> np.ndarray:
    labels = np.empty(len(X), dtype=np.int32)
    for part, _, nearest in _with_labels(X, points):
        labels[part] = nearest
    return labels


def _of_entries(X: SparseRows, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels of sparse rows by products with their entries, and the places that may be wrong."""
    labels = np.empty(len(X), dtype=np.int32)
    product = _ByProduct(saturated(narrowed(points, X.dtype).astype(np.float64)), np.float64)
    unsure = [np.zeros(0, dtype=np.int64)]
    step = max(1, _BYTES // (8 * (4 * len(points) + X.width)))
    for start in range(0, len(X), step):
        place = slice(start, start + step)
        labels[place], nearest = product(X.entries(place))
        unsure.append(start + nearest)
    return labels, np.concatenate(unsure)


def _with_labels(X: Any, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """A few rows at a time, where they are among all, and the label of each; under the guard."""
    points = saturated(narrowed(points, X.dtype).astype(np.float64))
    kinds: list[Any] = [np.float32, np.float64]
    if X.dtype == np.float64 and X.shape[1] > _WIDE:
        del kinds[0]
    products = [_ByProduct(points, kind) for kind in kinds]
    for part, rows in _pieces(X, 4 * len(points), kinds[0]):  # scores are read again and again
        yield part, rows, _labels(rows, points, products)


def _labels(rows: np.ndarray, points: np.ndarray, products: list["_ByProduct"]) -> np.ndarray:
    """Labels by the first product where it is sure, by the others where not, at last by sums."""
    if not products:
        return cdist(_saturated(rows, np.float64), points, "sqeuclidean").argmin(axis=1)
    first, *others = products
    labels, unsure = first(_saturated(rows, first.kind))
    if 2 * len(unsure) > len(rows):  # as where one of them is very long
        return _labels(rows, points, others)
    if len(unsure):
        labels[unsure] = _labels(rows[unsure], points, others)
    return labels


@row_guard
def squares_to_nearest(X: Any, points: np.ndarray) -> np.ndarray:
    """The squared distance of each finite row to the nearest of some released points."""
    squares, near = np.empty(len(X)), narrowed(points, X.dtype)
    for part, rows, labels in _with_labels(X, points):
        for few, x in _pieces(rows, len(near), X.dtype, _ROWS // 4):  # and as many offsets
            offsets, exact = near.take(labels[few], axis=0), squares[part][few]
            offsets -= x
            exact[:] = _squares(offsets)
            if not 1e-30 < exact.sum() < 1e30:  # then float32 may overflow, or round to zero
                exact[:] = _squares(near.take(labels[few], axis=0) - _saturated(x, np.float64))
    return squares


def _squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths; rows are overwritten. Faster than by `einsum` where they are short."""
    return np.square(rows, out=rows) @ np.ones(rows.shape[1], dtype=rows.dtype)


def _pieces(
    X: Any, n_points: int, kind: Any, most: int = _ROWS
) -> Iterator[tuple[slice, np.ndarray]]:
    """A few rows at a time: what is made of them, in a type, stays in the caches."""
    width = max(n_points, X.shape[1]) * np.dtype(kind).itemsize
    step = max(1, min(most, _BYTES // width))
    for start in range(0, len(X), step):
        yield slice(start, start + step), X[start : start + step]


def _saturated(rows: np.ndarray, kind: Any) -> np.ndarray:
    """Rows in a type. What is too large for float32 is infinite in it, and then decides nothing."""
    return np.asarray(saturated(rows) if kind == np.float64 else rows, dtype=kind)


class _ByProduct:
    """The nearest of some points to each row by a matrix product, and whether others may be nearer:
    by |x - c|^2 - |x - m|^2 = -2 x.(c - m) + (c - m).(c + m). With m the mean of the points few
    rows are unsure."""

    def __init__(self, points: np.ndarray, kind: Any) -> None:
        self.kind, self.type = kind, np.finfo(kind)
        middle = points.mean(axis=0)
        offsets, sums = points - middle, points + middle
        self.directions = (-2.0 * offsets).astype(kind)
        self.lengths = np.einsum("ij,ij->i", offsets, sums)[:, None].astype(kind)
        self.numbers = np.arange(len(points), dtype=np.min_scalar_type(len(points)))[:, None]
        self.reach = [np.linalg.norm(each, axis=1).max() for each in (offsets, sums, points)]

    def __call__(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Indices for rows of that type, or sparse ones, and the places of the unsure ones."""
        scores = np.ascontiguousarray(self.directions @ rows.T)
        scores += self.lengths
        limit = scores.min(axis=0)
        limit += self.type.dtype.type(self._error(rows))
        near, kind = (scores <= limit).view(np.uint8), self.numbers.dtype
        labels = np.multiply(near, self.numbers, dtype=kind).sum(axis=0, dtype=kind)
        return labels, np.flatnonzero(near.sum(axis=0, dtype=kind) != 1)

    def _error(self, rows: Any) -> float:
        """More than by how much two scores, or two sums of squares, may be off together.

        With unit roundoff u, the score of a row of length r, which may have been rounded itself, is
        off by at most (d + 4) u |c - m| (2 r + |c + m|), and a sum of d squares, in float64, by
        (d + 4) u (r + |c|)^2. And numbers that are too small are rounded to zero. Where some may
        overflow, that is infinite, and all rows are unsure."""
        d = rows.shape[1]
        if self.type.bits == 64:  # the fastest bound; that of float32 must not be so loose
            entries = rows.data if issparse(rows) else rows
            r = float(np.sqrt(np.vdot(entries, entries)))
        else:
            r = np.sqrt(d) * max(float(rows.max()), -float(rows.min()))
        offsets, sums, points = self.reach
        largest = offsets * (2 * r + sums)  # of a score, and of each part of its sum
        if not largest < float(self.type.max) / 4:
            return np.inf
        error = self.type.eps / 2 * largest + 2.0**-53 * (r + points) ** 2
        return float(4 * (d + 4) * (error + self.type.tiny))


class UnitRows:
    """Rows that are scaled to length 1 when they are read: takes the place of an array of them."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Scaled rows of a slice; for indices a view of these rows."""
        rows_of_part = self._X[rows]
        return (
            unit_rows(rows_of_part).astype(self.dtype)
            if isinstance(rows, slice)
            else UnitRows(rows_of_part)
        )
