"""The answers of clients in a round, and how far one unit moves the sums of these answers.

A client answers a message of the server, arrays of public facts and earlier releases, by a vector
of integers on a public grid for each release of the round, so that sums over clients are exact and
can be taken under secure aggregation, in any order. Every statistic is a sum over rows of something
that depends on one row and on the message alone, so answers add up to that of the pooled rows, bit
for bit; and how far one row moves a statistic is known beforehand (:func:`row_bounds`).

1. A row is taken about the center of the public domain, clipped into it and rounded toward zero to
   the grid: an integer vector of norm at most 2**24, or 2**25 about a released origin.
2. Its nearest point, in the released subspace where there is one, is found in exact arithmetic: it
   must not depend on what other rows there are. Ties go to the first point.
3. Sums are of integers so small that a block of 2**16 rows is exact in a float.
4. Where clients are the unit (the message has ``shares``), the statistic is divided by the number
   of rows, and the *whole* vector is clipped to a norm and rounded toward zero to 2**-20 of it. The
   sum over clients then moves by at most 2**20 steps for a client more or less. No step looks at
   another client, and none depends on who else is there.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._grid import Domain, Grid, clip_integer_rows, norm_places
from .._privacy._units import Claim, Sealed, UnitFacts, Units
from .._rows.rows import WEIGHT_BITS, Rows, clipped_sums, nearest, to_centers
from .._rows.table import Part
from ._query import Facts, Query

Arrays = dict[str, np.ndarray]
"""A message, an answer, or a sum of answers."""
CLIENT_STEPS = 2**20
"""Norm of the answer of a client, in steps, where clients are the unit."""
NORM_EDGES = np.concatenate([[0.0], 2.0 ** (np.arange(-200, 201) / 2)])
"""Public bins for the norms of rows, where no bound is known."""
LARGEST_ENTRY = 2**61
"""Entries of answers, and of their sums, saturate here, unless clients add the noise."""
ANSWERS = {
    "bound": ("bound",),
    "center": ("center sum", "center count"),
    "moment": ("second moment",),
    "weights": ("weights",),
    "lift": ("lift sums", "lift counts"),
    "means": ("client means", "client presence"),
    "lloyd": ("lloyd sums", "lloyd counts"),
    "moment reach": ("moment reach",),
    "lift reach": ("lift reach",),
}
"""The vectors that a client sends in each kind of round."""

REACHES = {"moment reach": "second moment", "lift reach": "lift sums"}
"""Rounds that ask how long a vector of the next round would be, and the name of that vector."""

BASIS_BITS = 20
"""Entries of a released basis are integers in steps of 2**-20."""
HALF_REACH = 2.0
"""Half of the range of reaches, in powers of two: shares from a sixteenth to one."""

_MOMENT_LIMIT = 2**15  # norm of a row in a second moment, in coarse steps
_BLOCK = 2**16  # rows at a time; sums of so many are exact in floats
_FINE_STEPS = 2.0**26  # of the norm of a client's vector before its clip
_MARGIN = 1 - 2.0**-40  # of a clip factor: far more than the rounding of what it is made of


def is_count(name: str) -> bool:
    """True if a vector holds counts: what the paper gives Laplace noise.

    >>> [name for name in ("bound", "lift sums", "lift counts") if is_count(name)]
    ['bound', 'lift counts']
    """
    return name in ("bound", "weights", "client presence") or name.endswith(("count", "counts"))


@lru_cache(maxsize=8)
def upper_triangle(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the upper triangle of a d x d matrix; the same for every client.

    >>> np.array(upper_triangle(2)).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return np.triu_indices(d)


def norm_of(name: str, value: np.ndarray, message: Arrays) -> float:
    """The norm that the vector `name`, of integers, is clipped in.

    Entries are at most 2**26, so that squares and their sums are exact. The norm is Frobenius' for
    the upper triangle of a moment, l1 for counts that get Laplace noise (the ``l1`` of the message
    says whether they do), else l2."""
    value = np.asarray(value, dtype=np.float64)
    if message["l1"].size and is_count(name):
        return float(np.abs(value).sum())
    squares = np.square(value)
    if name == "second moment":
        d = (math.isqrt(8 * len(value) + 1) - 1) // 2  # len(value) = d (d + 1) / 2
        # An entry off the diagonal stands for two of the matrix.
        squares *= np.where(np.equal(*upper_triangle(d)), 1.0, 2.0)
    return math.sqrt(float(squares.sum()))


def clamped(value: np.ndarray) -> np.ndarray:
    """Integers (int64, uint64 or Python's) of at most 2**61, as int64; no two are farther apart.

    >>> clamped(np.array([7, 2**64 - 1], dtype=np.uint64)).tolist() == [7, 2**61]
    True
    """
    if value.dtype == np.uint64:
        return bounded_integers(np.minimum(value, LARGEST_ENTRY), np.int64)
    return bounded_integers(np.clip(value, -LARGEST_ENTRY, LARGEST_ENTRY), np.int64)


def exact_sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of two arrays of integers, which never wraps: as Python integers where it could. So
    sums do not depend on what is added first: clamped on the way, how far single rows move the sum
    could depend on who holds them.

    >>> exact_sum(np.array([2**62]), np.array([2**62])).tolist() == [2**63]
    True"""
    largest = (max(int(x.max(initial=0)), -int(x.min(initial=0))) for x in (one, other))
    return (one.astype(object) if sum(largest) >= 2**63 else one) + other


# -- one function for each kind of round -----------------------------------------------------------


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
    in steps of 2**-20; empty: points stay what they are."""
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
    coarse steps a row has a norm of at most 2**15, and the products of 2**32 rows fit."""
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
    "lloyd": _lloyd,
    "moment reach": _moment,
    "lift reach": _lift,
}
"""For each kind of round, a function of the message and of finite rows.

`_client` makes local means and reaches of the statistics of a lift and of a moment.
"""


# -- how far a row moves them, and a client -------------------------------------------------------


def row_bounds(kind: str, message: Arrays) -> dict[str, float]:
    """How far one row moves each vector of an answer, in its steps: a bound of the l2 norm.

    `kind` is a key of :data:`~sklearn_dp.federated._clients.ANSWERS`. Only ``limit``, the number of
    ``anchors`` and ``l1`` of the message are looked at: public facts and releases. A second moment
    counts in Frobenius norm: entries off the diagonal count twice."""
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


def exact_update(kind: str, message: Arrays, X: np.ndarray) -> Arrays:
    """The answer without noise, to rows that can be used."""
    statistic = STATISTICS[kind]
    total = statistic(message, X[:_BLOCK])
    for start in range(_BLOCK, len(X), _BLOCK):
        part = statistic(message, X[start : start + _BLOCK])
        total = {name: exact_sum(total[name], part[name]) for name in total}
    # Clamped once, where the sum is complete: a clamp on the way would depend on the order.
    exact = {name: clamped(value) for name, value in total.items()}
    if kind == "means":
        # The paper's step for clients: local means, and which clusters are present. Both are
        # multiplied by the number of rows, which `_clip_whole` divides by.
        counts = exact["lift counts"]
        sums = exact["lift sums"].reshape(len(counts), -1)
        scaled = np.trunc(sums * (len(X) / np.maximum(counts, 1))[:, None])
        exact = {"client means": scaled.ravel(), "client presence": len(X) * (counts > 0)}
    if kind in REACHES:
        return {kind: _reach(kind, exact[REACHES[kind]], len(X), message)}
    if not message["shares"].size:
        return exact
    bounds = row_bounds(kind, message)
    return {
        name: _clip_whole(name, value, len(X), bounds[name], share, message)
        for (name, value), share in zip(exact.items(), message["shares"], strict=True)
    }


def _clip_whole(
    name: str, value: np.ndarray, n_rows: int, bound: float, share: float, message: Arrays
) -> np.ndarray:
    """A client's statistic over its number of rows, clipped as a whole; zero without rows.

    `value` is a sum over `n_rows` rows; `bound` is how far one row moves it, in the norm of
    :func:`norm_of`: its mean over rows is no longer. The vector is clipped to ``share * bound``, of
    a public share, in steps of ``share * bound / CLIENT_STEPS``. It has norm at most CLIENT_STEPS,
    so whatever a client holds, its coming or going moves the sum over clients by at most that. One
    factor for the whole vector: clipping its parts would let it grow with their number."""
    if n_rows == 0:
        return np.zeros(value.shape, dtype=np.int64)
    # The mean of vectors of norm at most `bound` has at most that norm: 2**26 steps, rounded
    # toward zero. Squares of these integers sum to at most 2**52: the norm is exact.
    fine = np.trunc(value * (_FINE_STEPS / (n_rows * bound)))
    limit = _FINE_STEPS * share
    factor = min(1.0, limit / max(norm_of(name, fine, message), 1.0)) * _MARGIN
    return exact_integers(np.trunc(fine * (factor * CLIENT_STEPS / limit)))


def _reach(kind: str, value: np.ndarray, n_rows: int, message: Arrays) -> np.ndarray:
    """How long a client's vector is before any clip: its logarithm, as one integer, (1,), up to
    CLIENT_STEPS: 1 for all of a row's bound, 0 for 2**-2, -1 for 2**-4 or less; 0 without rows."""
    if n_rows == 0:
        return np.zeros(1, dtype=np.int64)
    name = REACHES[kind]
    bound = row_bounds(kind.removesuffix(" reach"), message)[name]
    # As in `_clip_whole`: the mean over the rows, in integers whose norm is exact.
    fine = np.trunc(value * (_FINE_STEPS / (n_rows * bound)))
    share = max(norm_of(name, fine, message), 1.0) / _FINE_STEPS
    level = min(max(math.log2(share) / HALF_REACH + 1, -1.0), 1.0)
    return np.array([math.trunc(level * CLIENT_STEPS)])


def client_rounding(share: float) -> float:
    """Bound of what the two roundings of a client's vector take from each entry, in its steps: less
    than one fine step and one step, and a hundredth of it for the rounding of floats. A rounded
    second moment need not be positive semidefinite (see `_bound_of_a_swap`)."""
    return 1.01 * (1 + CLIENT_STEPS / (_FINE_STEPS * share))


# -- the question ----------------------------------------------------------------------------------


class Bound(NamedTuple):
    """The proved bound of the sum of a vector over clients."""

    # how far one unit moves the sum, in l2 (in l1 where counts get Laplace noise), in steps
    bound: float
    pattern: float | np.ndarray  # what the bound is multiplied by in each entry
    step: float  # length of a step of the sum, in grid steps (counts: in units)

    @property
    def sensitivity(self) -> float | np.ndarray:
        """Bound of each entry, rounded up."""
        sensitivity = np.nextafter(self.bound * np.asarray(self.pattern), np.inf)
        return sensitivity if sensitivity.ndim else float(sensitivity)


class ClientRound(Query):
    """The vectors of a round, by its kind and the arrays of its message, in grid steps of length
    `unit`. `swap`: neighbors have one unit in the place of another."""

    kind: str
    center: np.ndarray
    radius: np.ndarray
    low: np.ndarray
    high: np.ndarray
    origin: np.ndarray
    limit: np.ndarray
    basis: np.ndarray
    points: np.ndarray
    anchors: np.ndarray
    l1: np.ndarray
    shares: np.ndarray
    unit: float
    swap: bool

    @classmethod
    def of(cls, kind: str, message: Arrays, unit: float, swap: bool) -> Self:
        """The question that a message asks."""
        arrays = {name: message[name] for name in cls.__annotations__ if name in message}
        return cls(kind=kind, unit=float(unit), swap=swap, **arrays)

    @property
    def _message(self) -> Arrays:
        return vars(self)

    def share_of(self, name: str) -> float:
        """The bound of a client's vector over that of a row."""
        return float(self.shares[ANSWERS[self.kind].index(name)])

    def on(self, part: Part) -> tuple[Part, tuple]:
        X = np.asarray(part.source.read(), dtype=np.float64)
        clients: Any = [slice(None)]
        if self.shares.size or self.kind in REACHES:
            of: Any = np.arange(len(X)) if part.units.index is None else part.units.index
            clients = [of == client for client in np.unique(of)]
        answers = [exact_update(self.kind, self._message, X[rows]) for rows in clients]
        nothing = exact_update(self.kind, self._message, X[:0])
        return part, tuple(
            exact_integers(sum(each[name] for each in answers) + value)
            for name, value in nothing.items()
        )

    def bounds(self) -> dict[str, Bound]:
        """For each vector what :class:`Bound` says: a row moves the sum by at most its bound, and a
        client by CLIENT_STEPS, in steps of a share of that bound (:func:`_clip_whole`)."""
        bounds_of_parts = {}
        for name, bound in row_bounds(self.kind, self._message).items():
            step = 2.0**-WEIGHT_BITS  # of residuals
            if is_count(name) or name == "center sum" or name in REACHES:
                step = 1.0
            elif name == "second moment":
                step = coarse_step(float(self.limit[0])) ** 2
            if self.shares.size:
                bound, step = CLIENT_STEPS, step * self.share_of(name) * bound / CLIENT_STEPS
            if self.swap:
                bound = _bound_of_a_swap(name, bound, self)
            bounds_of_parts[name] = Bound(bound, _pattern(name, len(self.center)), step)
        return bounds_of_parts

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """As :meth:`bounds` proves, in units, lengths and squared lengths; l1 where counts get
        Laplace noise: rows are in one bin, and clients are clipped in that norm."""
        if facts.units.grouped and not self.shares.size:
            raise TypeError("a row must be all of its unit here.")
        claims_of_parts = []
        for name, bound in self.bounds().items():
            length = 1.0
            if not (is_count(name) or name in REACHES):
                length = self.unit ** (2 if name == "second moment" else 1)
            l1 = float(bound.bound) if self.l1.size and is_count(name) else None
            claims_of_parts.append(Claim(bound.sensitivity, bound.step * length, l1=l1))
        return tuple(claims_of_parts)

    def sealed_sums(self, total: Arrays, unit: str) -> dict[str, Sealed]:
        """Sums over clients, who are each of them, or hold rows that are, a "group" or a "row"."""
        names, facts = ANSWERS[self.kind], Facts(UnitFacts(unit=unit), len(self.center))
        claims = zip(names, self.claims(facts), strict=True)
        return {name: self._seal(total[name], claim, facts.units) for name, claim in claims}


_ROOT_2 = math.nextafter(math.sqrt(2), 2.0)


def _bound_of_a_swap(name: str, bound: float, asked: ClientRound) -> float:
    """How far a sum moves where a unit that adds v gives place to one that adds w.

    |v|, |w| <= bound =: b, so |v - w| <= 2 b, which opposite vectors attain, and so do counts in
    l1. In l2, |v - w|^2 <= 2 b^2 - 2 v.w. For counts v.w >= 0, and for second moments too: the
    trace of a product of positive semidefinite matrices. Those of clients are rounded: for P and Q
    before, p = P - v and q = Q - w with entries up to e, of Frobenius norm up to d e,
    v.w = P.Q - p.w - v.q - p.q >= -2 b d e - (d e)^2, so |v - w|^2 <= 2 (b + d e)^2."""
    if is_count(name):
        return 2 * bound if asked.l1.size else _ROOT_2 * bound
    if name != "second moment":
        return 2 * bound
    if asked.shares.size:
        rounded = len(asked.center) * client_rounding(asked.share_of(name))
        return min(2 * bound, _ROOT_2 * (bound + rounded))
    return _ROOT_2 * bound


def _pattern(name: str, n_features: int) -> float | np.ndarray:
    """1, or for the upper triangle of a matrix what makes its norm Frobenius'.

    For the change M of a moment, |M|_F^2 = sum_a M_aa^2 + 2 sum_{a<b} M_ab^2 is at most bound^2.
    With s = bound on the diagonal and bound / sqrt(2) off it, sum (M_ab / s_ab)^2 is at most 1: so
    much may a vector move that gets noise in proportion to s. The noise is isometric in Frobenius
    norm then, and turns no axis of the released subspace more than another."""
    if name != "second moment":
        return 1.0
    diagonal = np.equal(*upper_triangle(n_features))
    return np.where(diagonal, 1.0, math.nextafter(math.sqrt(0.5), 1.0))
