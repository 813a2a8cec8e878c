"""What a client computes: from a message of the server and its own rows to integers.

A message is a dict of plain arrays, and so is an answer; both can be sent by any transport. Every
answer is a vector of integers on a public grid, so that sums over clients are exact and can be
taken under secure aggregation, in any order.

Two units of privacy share the statistics and differ in what bounds them:

* rows: each row is clipped, and the answers add up to the statistic of the pooled rows, bit for
  bit. Which client holds a row has no effect; an answer has no bound of its own.
* clients (the message has ``shares``): a client's statistic is divided by its number of rows, the
  *whole* vector is clipped to a norm and rounded toward zero to 2**-20 of it.

Where the message has ``noise``, clients add the noise: each one its share, to its own answer.
"""

import math
from collections.abc import Mapping

import numpy as np

from .._aggregate.shared.rows import WEIGHT_BITS, Rows, clipped_sums, nearest, to_centers
from .._aggregate.shared.single_rows import row_guard, saturated
from .._privacy._checks import check_choice
from .._privacy._domain import Domain
from .._privacy._grid import Grid, clip_integer_rows
from .._privacy._mechanisms import safe_norms
from .._privacy._units import Units
from .._privacy.laws.shares import NoiseShares
from ._answers import (
    ANSWERS,
    CLIENT_STEPS,
    COMPLEX_ROWS,
    LARGEST_ENTRY,
    NORM_EDGES,
    WRONG_COLUMNS,
    AnswerError,
    clamped,
    exact_sum,
    norm_of,
    upper_triangle,
)

__all__ = [
    "BASIS_BITS",
    "client_rounding",
    "client_update",
    "coarse_step",
    "message_domain",
    "project",
    "read_rows",
    "row_bounds",
]

BASIS_BITS = 20
_MOMENT_LIMIT = 2**15  # norm of a row in a second moment, in coarse steps
_BLOCK = 2**16  # rows at a time
_FINE_STEPS = 2.0**26
_MARGIN = 1 - 2.0**-40  # of a clip factor: far more than the rounding of what it is made of


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def client_update(kind, message, rows, shares=None):
    """Answer a message of the server. A pure function, but for the noise that is asked for.

    Parameters
    ----------
    kind : str
        Kind of the round, a key of :data:`ANSWERS`.
    message : dict of str to ndarray
    rows : array-like of shape (n, d)
        Rows with NaN or infinite entries are left out, each on its own account.
    shares : NoiseShares, optional
        Where the client's share of the noise comes from; the operating system by default.

    Returns
    -------
    answer : dict of str to ndarray of int64

    Raises
    ------
    ValueError, TypeError
        For another kind, or what is no message; and when the rows have another number of columns
        than the message, unless it asks for noise: such a client then answers as one without
        rows, so that its share of the noise, which others count on, never depends on its data.
    """
    check_choice("kind", kind, tuple(ANSWERS))
    if not isinstance(message, Mapping) or not hasattr(message.get("noise"), "size"):
        raise TypeError("message must be a dict of arrays, as the server sends it.")
    if not (shares is None or isinstance(shares, NoiseShares)):
        raise TypeError("shares must be None or a NoiseShares.")
    if not message["noise"].size:
        return _exact_update(kind, message, _finite_rows(message, rows))
    try:
        X = _finite_rows(message, rows)
    except Exception:  # whatever it is that cannot be read
        X = np.empty((0, len(message["center"])))
    answer = _exact_update(kind, message, X)
    shares = NoiseShares() if shares is None else shares
    return {
        name: _with_share(name, value, message, shares, *line)
        for (name, value), line in zip(answer.items(), message["noise"], strict=True)
    }


def read_rows(message, read, *arguments):
    """What a client's function returns; nothing if it fails where others count on its noise."""
    try:
        return read(*arguments)
    except Exception:
        if not message["noise"].size:
            raise
    return None


def _with_share(name, value, message, shares, sigma, off_diagonal, bits):
    """An exact vector in fine steps, and the client's share of the noise."""
    scale = sigma
    if name == "second moment":
        diagonal = np.equal(*upper_triangle(len(message["center"])))
        scale = np.where(diagonal, sigma, off_diagonal)
    noise = shares.draw(name, int(message["round"][0]), scale, value.shape)
    # A clamp changes no distance for the worse, and leaves room for the noise.
    largest = LARGEST_ENTRY >> int(bits)
    return (np.clip(value, -largest, largest) << int(bits)) + noise


def _exact_update(kind, message, X):
    """The answer without noise, to rows that can be used."""
    exact = _exact(_STATISTICS[kind], message, X)
    if kind == "means":
        exact = _as_means(message, exact, len(X))
    if not message["shares"].size:
        return exact
    bounds = row_bounds(kind, message)
    return {
        name: _clip_whole(name, value, len(X), bounds[name], share, message)
        for (name, value), share in zip(exact.items(), message["shares"], strict=True)
    }


def _exact(statistic, message, X):
    """The integer statistic of all rows, block by block; clamped once, where it is complete."""
    total = statistic(message, X[:_BLOCK])
    for start in range(_BLOCK, len(X), _BLOCK):
        part = statistic(message, X[start : start + _BLOCK])
        total = {name: exact_sum(total[name], part[name]) for name in total}
    return {name: clamped(value) for name, value in total.items()}


def _finite_rows(message, rows):
    """The rows that count, as floats: finite ones, and no more than a client may use."""
    try:
        X = np.asarray(rows)
        complex_rows = _holds_complex(X)
        X = np.empty(0) if complex_rows else X.astype(np.float64, copy=False)
    except (OverflowError, TypeError, ValueError):  # which would quote what it cannot read
        X, complex_rows = np.empty(0), False
    if complex_rows:
        raise AnswerError(COMPLEX_ROWS)
    if X.ndim != 2 or X.shape[1] != len(message["center"]):
        raise AnswerError(WRONG_COLUMNS)
    # Which rows are finite is a fact of each row; how many a client may have, of each client.
    X = X[np.isfinite(X).all(axis=1)]
    return saturated(X[: int(message["most_rows"][0])] if message["most_rows"].size else X)


def _holds_complex(X):
    """Whether numpy would have to drop imaginary parts, and warn of it, to make floats of X."""
    if X.dtype.kind == "O":
        return any(isinstance(value, complex | np.complexfloating) for value in X.flat)
    return X.dtype.kind == "c"


def message_domain(message):
    """The public region that a message tells clients to clip rows to."""
    low, high = ((message[side] if message[side].size else None) for side in ("low", "high"))
    return Domain(message["center"], float(message["radius"][0]), low, high)


# -- statistics of rows ----------------------------------------------------------------------------


def _rows(message, X):
    """Rows on the grid, about the released origin."""
    domain = message_domain(message)
    grid = Grid.for_radius(domain.radius)
    rows = Rows.of(grid.quantise(domain.center_rows(X), domain.radius), grid.steps(domain.radius))
    if message["origin"].size:
        rows.recenter(message["origin"])
    return rows


def project(message, points):
    """Integer points to integer coordinates in the released subspace, each on its own."""
    if not message["basis"].size:
        return points
    # At most 2**26 times 2**20: every product and partial sum is an integer below 2**53.
    return np.floor(points @ message["basis"] * 2.0**-BASIS_BITS)


def _labels(message, rows):
    """The one nearest point of each row (ties to the first), in the subspace."""
    if message["basis"].size:
        rows = Rows.of(
            np.concatenate([project(message, x) for _, x in rows.chunks()])
            if rows.n_rows
            else np.empty((0, message["basis"].shape[1])),
            rows.limit,
        )
    return nearest(rows, message["points"])[0]


def _bound(message, X):
    bins = np.searchsorted(NORM_EDGES[1:-1], safe_norms(X), side="right")
    return {"bound": np.bincount(bins, minlength=len(NORM_EDGES) - 1)}


def _center(message, X):
    rows = _rows(message, X)
    total = np.zeros(rows.n_features, dtype=np.int64)
    for _, x in rows.chunks():
        total += x.sum(axis=0).astype(np.int64)  # at most 2**16 integers of at most 2**25: exact
    return {"center sum": total, "center count": np.array([rows.n_rows])}


def coarse_step(limit):
    """Step of a second moment, so coarse that int64 holds the sums: a power of two."""
    return max(1.0, 2.0 ** math.ceil(math.log2(limit / _MOMENT_LIMIT)))


def _moment(message, X):
    rows, limit = _rows(message, X), float(message["limit"][0])
    coarse = coarse_step(limit)
    total = np.zeros((rows.n_features,) * 2, dtype=np.int64)
    for part, x in rows.chunks():
        x = np.trunc(clip_integer_rows(x, limit, rows.squares[part]) * (1 / coarse))
        # Integers of at most 2**30, at most 2**16 of them: exact sums.
        total += (x.T @ x).astype(np.int64)
    return {"second moment": total[upper_triangle(rows.n_features)]}


def _weights(message, X):
    labels = _labels(message, _rows(message, X))
    return {"weights": np.bincount(labels, minlength=len(message["points"]))}


def _sums_and_counts(message, X):
    """Sums of residuals about the anchors, clipped row by row, and counts."""
    rows, anchors = _rows(message, X), message["anchors"]
    labels = _labels(message, rows)
    limits = np.full(len(anchors), float(message["limit"][0]))
    sums = clipped_sums(
        rows, anchors, labels, to_centers(rows, anchors, labels), limits, Units(rows.n_rows)
    )
    return sums, np.bincount(labels, minlength=len(anchors))


def _lift(message, X):
    sums, counts = _sums_and_counts(message, X)
    return {"lift sums": sums.ravel(), "lift counts": counts}


def _margin(message, X):
    """As a lift, of the rows that are three times nearer to one center than to all others."""
    # Whether a row counts is decided by that row and by releases; it counts in one cluster.
    sums, counts = _sums_and_counts(message, X[_clear(message, _rows(message, X))])
    return {"margin sums": sums.ravel(), "margin counts": counts}


def _clear(message, rows):
    """Which rows are at most a third as far from a center as from any other one."""
    points = message["points"].astype(np.int64)
    clear = [np.empty(0, dtype=bool)]
    for _, x in rows.chunks():
        flat = project(message, x).astype(np.int64)
        # Integers of norm at most 2**27: nine times a squared distance is below 2**59.
        square = np.stack([np.square(flat - point).sum(axis=1) for point in points], axis=1)
        square.sort(axis=1)
        clear.append(
            9 * square[:, 0] <= square[:, 1] if len(points) > 1 else np.ones(len(x), dtype=bool)
        )
    return np.concatenate(clear)


def _lloyd(message, X):
    sums, counts = _sums_and_counts(message, X)
    return {"lloyd sums": sums.ravel(), "lloyd counts": counts}


def _as_means(message, exact, n_rows):
    """The paper's step for clients: local means, and which clusters are present.

    Both are multiplied by the number of rows, which :func:`_clip_whole` divides by.
    """
    counts = exact["lift counts"]
    sums = exact["lift sums"].reshape(len(counts), -1)
    scaled = np.trunc(sums * (n_rows / np.maximum(counts, 1))[:, None])
    return {"client means": scaled.ravel(), "client presence": n_rows * (counts > 0)}


_STATISTICS = {
    "bound": _bound,
    "center": _center,
    "moment": _moment,
    "weights": _weights,
    "lift": _lift,
    "means": _lift,
    "margin": _margin,
    "lloyd": _lloyd,
}


# -- bounds ----------------------------------------------------------------------------------------


def row_bounds(kind, message):
    """How far one row moves each answer, in its steps: a bound of the l2 norm.

    Of a second moment the norm is Frobenius': entries off the diagonal count twice.
    """
    if kind in ("bound", "weights"):
        return {kind: 1.0}  # a row is in one bin, ties or not
    if kind == "center":
        # A row is in the ball about the first origin, and the sum is taken about it.
        return {"center sum": float(message["limit"][0]), "center count": 1.0}
    limit = float(message["limit"][0])
    if kind == "moment":
        # x x^T has the Frobenius norm |x|^2: the *square* of the radius.
        return {"second moment": (limit / coarse_step(limit)) ** 2}
    # A row is in one cluster, with a residual of length at most `limit` there.
    reach = math.nextafter(limit * 2.0**WEIGHT_BITS, math.inf)
    if kind == "means":
        # A mean for each of k clusters; presence bits.
        k = len(message["anchors"])
        return {
            "client means": reach * math.sqrt(k),
            "client presence": k if message["l1"].size else math.sqrt(k),
        }
    return {f"{kind} sums": reach, f"{kind} counts": 1.0}


def _clip_whole(name, value, n_rows, bound, share, message):
    """A client's statistic over its number of rows, clipped as a whole; zero without rows.

    Every client's vector has norm at most CLIENT_STEPS, so whatever a client holds, its coming or
    going moves the sum over clients by at most that. One factor for the whole vector: clipping
    its parts would let it grow with their number.
    """
    if n_rows == 0:
        return np.zeros(value.shape, dtype=np.int64)
    # The mean of vectors of norm at most `bound` has at most that norm: 2**26 steps, rounded
    # toward zero. Squares of these integers sum to at most 2**52: the norm is exact.
    fine = np.trunc(value * (_FINE_STEPS / (n_rows * bound)))
    limit = _FINE_STEPS * share
    factor = min(1.0, limit / max(norm_of(name, fine, message), 1.0)) * _MARGIN
    return np.trunc(fine * (factor * CLIENT_STEPS / limit)).astype(np.int64)


def client_rounding(share):
    """Bound of what the two roundings of a client's vector take from each entry, in its steps.

    Less than one fine step and one step, and a hundredth of it for the rounding of floats.
    """
    return 1.01 * (1 + CLIENT_STEPS / (_FINE_STEPS * share))
