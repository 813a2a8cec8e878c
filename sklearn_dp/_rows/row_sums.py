"""Exact functions of integer rows, and sums of them: distances, clipped residuals, counts; each of
one row and of released values, bit for bit (:mod:`.rows`)."""

import numpy as np
from scipy.sparse import csc_array

from .._privacy._grid import NearRows, sum_type
from .._privacy._integers import exact_integers
from .._privacy._units import Units
from .bins import MOST_ROWS
from .rows import Rows

WEIGHT_BITS = 10  # clip factors are multiples of 2**-10, rounded down
ERROR_STEPS = 2.0**26  # that a row adds to a sum of squares over their caps, at the most


def nearest(rows: Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of integer centers (k, d) of norm at most 2**25, the lowest index among equals,
    and the squared distance to it, exactly; unreleased."""
    labels, squared = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows)
    # |x - c|^2 = |x|^2 + (|c|^2 - 2 x.c), every term an integer of at most 2**51.
    lengths, directions = np.einsum("ij,ij->i", centers, centers)[:, None], -2.0 * centers
    for part, x, squares in rows.squared_chunks(len(centers), near=True):
        scores = lines(directions, x)
        scores += lengths
        labels[part], best = nearest_in(scores)
        squared[part] = squares + best
        del x, scores  # before the next are made
    return labels, squared


def lines(directions: np.ndarray, x: np.ndarray | NearRows) -> np.ndarray:
    """Products of integer directions (k, d) with rows, a line of all rows for each."""
    if isinstance(x, NearRows):
        return np.ascontiguousarray((x @ directions.T).T)
    return directions @ x.T


def nearest_in(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the least of the scores (k, ...) of each row, the lowest among equals; and it.
    NaN is no score; where all are, the index is 0."""
    best, k = np.fmin.reduce(scores, axis=0), len(scores)
    # k, k - 1, ... 1: the largest of those whose scores are the best is that of the lowest index.
    ranks = np.arange(k, 0, -1, dtype=np.min_scalar_type(k)).reshape(-1, *[1] * best.ndim)
    met = np.multiply((scores == best).view(np.uint8), ranks, dtype=ranks.dtype)
    first = met.max(axis=0).astype(np.int32, casting="same_kind")
    return np.where(first > 0, k - first, 0), best


def to_centers(rows: Rows, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Squared distance to the integer center of each label, exactly; 0 for a negative label."""
    squared = np.zeros(rows.n_rows)
    for part, x in rows.chunks():
        residual = x - centers.take(labels[part], axis=0)
        squared[part] = np.where(labels[part] < 0, 0.0, np.einsum("ij,ij->i", residual, residual))
    return squared


def clipped_sums(
    rows: Rows,
    centers: np.ndarray,
    labels: np.ndarray,
    squared: np.ndarray | None,
    limits: np.ndarray,
    units: Units,
) -> np.ndarray:
    """Exact sums (k, d), for each label that is not negative, of residuals clipped to limits (k,).

    `squared` are the squared lengths of the residuals, where they are known. In steps of
    2**-WEIGHT_BITS of the grid: a unit adds residuals of total length, each over its limit, of at
    most 2**WEIGHT_BITS."""
    # f (x - c) is at most 2**36, and so are f x and f c.
    exact = sum_type(rows.n_rows, 36)
    sums, mass = np.zeros(centers.shape, dtype=exact), np.zeros(len(centers), dtype=exact)
    # Rounded down by more than the errors of the square root and the division: the factor times
    # the length of the residual is at most limit 2**WEIGHT_BITS.
    below = limits * (1 - 2.0**-48)
    near = units.weights is None and squared is not None
    for part, x in rows.near_chunks() if near else rows.chunks():
        label, inside = labels[part], np.flatnonzero(labels[part] >= 0)
        whole = len(inside) == len(label)
        if not whole:
            label = label[inside]
            x = x[inside] if isinstance(x, NearRows) else x.take(inside, axis=0)
        if squared is None:
            residual = x - centers.take(label, axis=0)
            square = np.einsum("ij,ij->i", residual, residual)
        else:
            square = squared[part] if whole else squared[part][inside]
        shrink = np.minimum(1.0, below[label] / np.sqrt(np.maximum(square, 1.0)))
        factor = np.floor(shrink * 2.0**WEIGHT_BITS)
        if units.weights is None:
            # sum f (x - c) = sum f x - c sum f; integers of at most 2**36, 2**16 of them.
            mass += exact_integers(np.bincount(label, factor, minlength=len(centers)))
        else:
            weight = units.weights[part] if whole else units.weights[part][inside]
            shrink *= weight * (units.step * 2.0**WEIGHT_BITS)
            x = np.trunc((x - centers.take(label, axis=0)) * shrink[:, None])
            factor = np.ones(len(x))
        if isinstance(x, NearRows):
            sums += exact_integers(x.sums(label, factor, len(centers)))
            continue
        ends = np.arange(len(x) + 1, dtype=np.int32)
        pick = csc_array((factor, label, ends), shape=(len(centers), len(x)))
        sums += exact_integers(pick @ x)
        del x, pick  # before the next are made
    return sums - mass[:, None] * exact_integers(centers)


def square_sums(
    labels: np.ndarray, squared: np.ndarray, cap: float | np.ndarray, n_labels: int, units: Units
) -> np.ndarray:
    """Exact sums of min(squared, cap) / cap for each label, of which none is negative.

    In steps of which a unit adds `ERROR_STEPS` at the most, all of them to one label if its rows
    have one; with several they share them out, as their weights sum to one at most."""
    cap = np.broadcast_to(np.asarray(cap, dtype=np.float64), n_labels)
    # A row adds at most min(squared, cap) / cap <= 1 of the steps: only while the quotient is one.
    with np.errstate(over="ignore", divide="ignore"):
        scale = ERROR_STEPS / cap * (1 - 2.0**-50)
    if not np.all((scale > 0) & (scale < np.inf)):
        raise ValueError("a cap of squares is too small or too large to divide by.")
    sums = np.zeros(n_labels, dtype=sum_type(len(labels), 26))
    for start in range(0, len(labels), MOST_ROWS):
        part = slice(start, start + MOST_ROWS)
        label = labels[part]
        steps = np.minimum(squared[part], cap[label]) * scale[label]
        if units.weights is not None:
            steps *= units.weights[part] * units.step
        # Integers of at most 2**26, at most 2**16 of them: exact sums.
        sums += exact_integers(np.bincount(label, np.floor(steps), minlength=n_labels))
    return sums
