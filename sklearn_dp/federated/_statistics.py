"""What a client's rows come to: the integer statistics of each kind of round, before any clip.

Every statistic is a sum over rows of something that depends on one row and on the message alone.
So the answers of clients add up to the statistic of the pooled rows, bit for bit, whoever holds
which row; and how far one row moves a statistic is known beforehand, see `row_bounds`.

1. A row is taken about the center of the public domain, clipped into it and rounded toward zero
   to the grid: an integer vector of norm at most 2**24, or 2**25 about a released origin. From
   there on all is integers.
2. Its nearest point, in the released subspace where there is one, is found in exact arithmetic:
   which point a row belongs to must not depend on what other rows there are, and floating-point
   matrix products do. Ties go to the first point.
3. Sums are of integers so small that a block of 2**16 rows is exact in a float, and are added up
   in 64 bits.

`_client` makes an answer of a statistic: it adds up blocks, bounds whole clients, adds noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._aggregate.shared.rows import Rows
from .._privacy._aggregates import norm_places
from .._privacy._domain import Domain
from .._privacy._grid import Grid, clip_integer_rows
from .._privacy._rounding import exact_integers
from .._privacy._units import Units
from .._rows.row_sums import WEIGHT_BITS, clipped_sums, nearest, to_centers
from ._answers import NORM_EDGES, REACHES, Arrays, upper_triangle

__all__ = ["BASIS_BITS", "STATISTICS", "coarse_step", "message_domain", "project", "row_bounds"]

BASIS_BITS = 20
"""Entries of a released basis are integers in steps of 2**-20."""
_MOMENT_LIMIT = 2**15  # norm of a row in a second moment, in coarse steps


def message_domain(message: Arrays) -> Domain:
    """The public region that a message tells clients to clip rows to."""
    low, high = ((message[side] if message[side].size else None) for side in ("low", "high"))
    return Domain(message["center"], float(message["radius"][0]), low, high)


def _rows(message: Arrays, X: np.ndarray) -> Rows:
    """Rows on the grid, about the released origin."""
    domain = message_domain(message)
    grid = Grid.for_radius(domain.radius)
    rows = Rows.of(grid.quantize(domain.center_rows(X), domain.radius), grid.steps(domain.radius))
    if message["origin"].size:
        rows.recenter(message["origin"])
    return rows


def project(message: Arrays, points: np.ndarray) -> np.ndarray:
    """Integer points (n, d) to integer coordinates in the released subspace, each on its own.

    In grid steps, rounded down: floats that hold integers. The ``basis`` (d, q) of the message is
    in steps of 2**-20; empty: points stay what they are.

    >>> diagonal = np.rint(np.sqrt([[0.5], [0.5]]) * 2**BASIS_BITS)
    >>> project({"basis": diagonal}, np.array([[1000.0, 1000.0], [5.0, -5.0]])).ravel().tolist()
    [1414.0, 0.0]
    """
    if not message["basis"].size:
        return points
    # At most 2**26 times 2**20: every product and partial sum is an integer below 2**53. A sum
    # in another order, as BLAS may take it for other numbers of rows, is then the same number.
    return np.floor(points @ message["basis"] * 2.0**-BASIS_BITS)


def _labels(message: Arrays, rows: Rows) -> np.ndarray:
    """The one nearest point of each row (ties to the first), in the subspace."""
    if message["basis"].size:
        rows = Rows.of(
            np.concatenate([project(message, x) for _, x in rows.chunks()])
            if rows.n_rows
            else np.empty((0, message["basis"].shape[1])),
            rows.limit,
        )
    return nearest(rows, message["points"])[0]


# -- one function for each kind of round -----------------------------------------------------------


def _bound(message: Arrays, X: np.ndarray) -> Arrays:
    """How many rows have a norm in each public bin, before there are any bounds."""
    bins = norm_places(X, NORM_EDGES[1:-1], "right")
    return {"bound": np.bincount(bins, minlength=len(NORM_EDGES) - 1)}


def _center(message: Arrays, X: np.ndarray) -> Arrays:
    """Sum and number of the rows."""
    rows = _rows(message, X)
    total = np.zeros(rows.n_features, dtype=np.int64)
    for _, x in rows.chunks():
        total += exact_integers(x.sum(axis=0))  # at most 2**16 integers of at most 2**25: exact
    return {"center sum": total, "center count": np.array([rows.n_rows])}


def coarse_step(limit: float) -> float:
    """Step of a second moment, so coarse that int64 holds the sums: a power of two.

    Products of two entries in grid steps need 50 bits, so 2**13 rows would fill an int64. In
    coarse steps a row has a norm of at most 2**15, and the products of 2**32 rows fit.

    >>> coarse_step(2.0**24), coarse_step(1000.0)
    (512.0, 1.0)
    """
    return max(1.0, 2.0 ** math.ceil(math.log2(limit / _MOMENT_LIMIT)))


def _moment(message: Arrays, X: np.ndarray) -> Arrays:
    """Sum of x x^T over the rows: its upper triangle, row by row."""
    rows, limit = _rows(message, X), float(message["limit"][0])
    coarse = coarse_step(limit)
    total = np.zeros((rows.n_features,) * 2, dtype=np.int64)
    for _, x, squares in rows.squared_chunks():
        x = np.trunc(clip_integer_rows(x, limit, squares) * (1 / coarse))
        # Integers of at most 2**30, at most 2**16 of them: exact sums.
        total += exact_integers(x.T @ x)
    return {"second moment": total[upper_triangle(rows.n_features)]}


def _weights(message: Arrays, X: np.ndarray) -> Arrays:
    """How many rows are next to each of the server's points."""
    labels = _labels(message, _rows(message, X))
    return {"weights": np.bincount(labels, minlength=len(message["points"]))}


def _sums_and_counts(message: Arrays, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of residuals about the anchors, clipped row by row, and counts."""
    rows, anchors = _rows(message, X), message["anchors"]
    labels = _labels(message, rows)
    limits = np.full(len(anchors), float(message["limit"][0]))
    sums = clipped_sums(
        rows, anchors, labels, to_centers(rows, anchors, labels), limits, Units(rows.n_rows)
    )
    return sums, np.bincount(labels, minlength=len(anchors))


def _lift(message: Arrays, X: np.ndarray) -> Arrays:
    """Residuals in the whole space, of rows that are told apart in the subspace."""
    sums, counts = _sums_and_counts(message, X)
    return {"lift sums": sums.ravel(), "lift counts": counts}


def _margin(message: Arrays, X: np.ndarray) -> Arrays:
    """As a lift, of the rows that are three times nearer to one center than to all others."""
    # Whether a row counts is decided by that row and by releases; it counts in one cluster.
    sums, counts = _sums_and_counts(message, X[_clear(message, _rows(message, X))])
    return {"margin sums": sums.ravel(), "margin counts": counts}


def _clear(message: Arrays, rows: Rows) -> np.ndarray:
    """Which rows are at most a third as far from a center as from any other one."""
    points = exact_integers(message["points"])
    clear = [np.empty(0, dtype=bool)]
    for _, x in rows.chunks():
        flat = exact_integers(project(message, x))
        # Integers of norm at most 2**27: nine times a squared distance is below 2**59.
        square = np.stack([np.square(flat - point).sum(axis=1) for point in points], axis=1)
        square.sort(axis=1)
        clear.append(
            9 * square[:, 0] <= square[:, 1] if len(points) > 1 else np.ones(len(x), dtype=bool)
        )
    return np.concatenate(clear)


def _lloyd(message: Arrays, X: np.ndarray) -> Arrays:
    """As a lift, of rows that are told apart in the whole space: the message has no basis."""
    sums, counts = _sums_and_counts(message, X)
    return {"lloyd sums": sums.ravel(), "lloyd counts": counts}


STATISTICS: dict[str, Callable[[Arrays, np.ndarray], Arrays]] = {
    "bound": _bound,
    "center": _center,
    "moment": _moment,
    "weights": _weights,
    "lift": _lift,
    "means": _lift,
    "margin": _margin,
    "lloyd": _lloyd,
    "moment reach": _moment,
    "lift reach": _lift,
}
"""For each kind of round, a function of the message and of finite rows.

`_client` makes local means and reaches of the statistics of a lift and of a moment.
"""


# -- how far a row moves them ----------------------------------------------------------------------


def row_bounds(kind: str, message: Arrays) -> dict[str, float]:
    """How far one row moves each vector of an answer, in its steps: a bound of the l2 norm.

    `kind` is a key of :data:`~sklearn_dp.federated._answers.ANSWERS`. Only ``limit``, the number of
    ``anchors`` and ``l1`` of the message are looked at: public facts and releases. A second moment
    counts in Frobenius norm: entries off the diagonal count twice.

    >>> row_bounds("weights", {})
    {'weights': 1.0}
    >>> row_bounds("moment", {"limit": np.array([2.0**20])})  # 2**15 coarse steps, squared
    {'second moment': 1073741824.0}
    """
    if kind in ("bound", "weights", *REACHES):
        # A row is in one bin, ties or not. A reach is one number of at most 1, of a client.
        return {kind: 1.0}
    if kind == "center":
        # A row is in the ball about the first origin, and the sum is taken about it.
        return {"center sum": float(message["limit"][0]), "center count": 1.0}
    limit = float(message["limit"][0])
    if kind == "moment":
        # x x^T has the Frobenius norm |x|^2: the *square* of the radius. Rounding toward zero
        # makes no entry of x longer, so the bound holds for the integers as it stands.
        return {"second moment": (limit / coarse_step(limit)) ** 2}
    # A row is in one cluster, with a residual of length at most `limit` there, in steps of
    # 2**-WEIGHT_BITS; the last float is for the rounding of the product.
    reach = math.nextafter(limit * 2.0**WEIGHT_BITS, math.inf)
    if kind == "means":
        # For clients only, each of which has k means of length at most `reach`, and k bits: in l1
        # they may come to k.
        k = len(message["anchors"])
        return {
            "client means": reach * math.sqrt(k),
            "client presence": k if message["l1"].size else math.sqrt(k),
        }
    return {f"{kind} sums": reach, f"{kind} counts": 1.0}
