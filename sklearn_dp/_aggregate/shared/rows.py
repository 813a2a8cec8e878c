"""Integer rows on a public grid, served in chunks, and exact functions of each row.

Everything here is a function of one row and of released values, bit for bit: operands are
integers whose products and sums stay within 2**53, or the operation is elementwise. So nothing
that is decided about a row depends on the other rows, on their order or on the size of the chunks
(see `sklearn_dp._privacy._grid`).

Why this matters: a floating-point matrix product may change in its last bits when a row is
appended. A near-tie could then send *other* rows to another center, and no sensitivity covers that.

The numbers, in grid steps: a row and a center have a norm of at most 2**25 about the origin of the
rows. By Cauchy and Schwarz every product of two of them, and every partial sum of one, is at most
2**50; -2 x.c + |c|^2 is at most 2**51 + 2**50. All of them are exact in float64, in whatever order
BLAS adds them up. Chunks have at most 2**16 rows, so that sums over them stay below 2**53 too, and
are then added up as integers.

The rows themselves are unreleased. Nothing here releases anything: :func:`clipped_sums` and
:func:`square_sums` are the exact statistics that callers hand to the session, with what a unit adds
to them.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from ..._privacy._domain import Domain
from ..._privacy._grid import Grid, sum_type
from ..._privacy._units import Units
from .frame import Frame
from .sparse_rows import Table
from .table import ArraySource, PartSource

__all__ = [
    "ERROR_STEPS",
    "Rows",
    "clipped_sums",
    "nearest",
    "row_slices",
    "square_sums",
    "to_centers",
]

_CHUNK_ENTRIES = 2**18  # entries of a chunk, and of what is computed from it
_MOST_ROWS = 2**16  # rows of a chunk: 2**16 terms of at most 2**37 sum exactly in float64
_STORED_ENTRIES = 2**24  # beyond this size rows are made anew in each pass
_STORED_SPARSE = 2**21  # and rows that came sparse beyond this one
WEIGHT_BITS = 10  # clip factors are multiples of 2**-10, rounded down
ERROR_STEPS = 2.0**26  # that a row adds to a sum of squares over their caps, at the most


_Reader = Callable[[slice], np.ndarray]


class Rows(Frame):
    """Integer rows about an origin, in memory or made anew in each pass.

    Large tables are not kept twice: beyond 2**24 entries, rows are quantised again whenever they
    are read, chunk by chunk.

    Parameters
    ----------
    begin : callable
        Called at the beginning of a pass; gives a function from a slice to a new array of
        integer-valued float64 rows.
    n_rows, n_features : int
    ball : float
        Bound of the norms of what is read, in steps.
    unit : float, default=1.0
        Length of a step.
    """

    def __init__(
        self,
        begin: Callable[[], _Reader] | None,
        n_rows: int,
        n_features: int,
        ball: float,
        unit: float = 1.0,
    ) -> None:
        super().__init__(n_features, ball, unit)
        self._stored: np.ndarray | None
        self._begin, self._stored, self.n_rows = begin, None, n_rows

    @classmethod
    def quantise(cls, X: Table, domain: Domain) -> "Rows":
        """Rows of floats, clipped into a public domain and rounded to its grid, toward zero.

        Toward zero, because a row must not become longer than the bound. Sparse rows are kept as
        they are, and made dense chunk by chunk in each pass.
        """
        return cls.of_source(ArraySource(X), domain, X.shape[0])

    @classmethod
    def of_source(
        cls, source: PartSource, domain: Domain, n_rows: int, *, within=None, n_parts: int = 1
    ) -> "Rows":
        """The rows of a part of a table, as :meth:`quantise` makes them.

        Parameters
        ----------
        source : PartSource
        domain : Domain
        n_rows : int
        within : Domain, optional
            Public bounds that the rows are moved into first.
        n_parts : int
            What is kept in memory is limited for all parts together.
        """
        grid, begin = Grid.for_radius(domain.radius), _Quantised(source, domain, within)
        d = len(domain.center)
        rows = cls(begin, n_rows, d, grid.steps(domain.radius), grid.unit)
        most = _STORED_SPARSE if source.sparse else _STORED_ENTRIES
        if n_rows * d * n_parts <= most:
            rows.store()
        return rows

    @classmethod
    def of(cls, array: np.ndarray, ball: float, unit: float = 1.0) -> "Rows":
        """Rows that are integers already, of norm at most `ball`; not copied."""
        rows = cls(None, array.shape[0], array.shape[1], ball, unit)
        rows._stored = array
        return rows

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin from now on."""
        super().recenter(origin)
        self.__dict__.pop("squares", None)

    def about(self, origin: np.ndarray) -> "Rows":
        """The same rows about another origin; what is in memory is shared."""
        rows = copy(self)
        rows.recenter(origin)
        return rows

    def map(
        self, function: Callable[[np.ndarray, np.ndarray], np.ndarray], n_features: int
    ) -> "Rows":
        """Rows made of these by a function of (rows, squared norms), each row on its own.

        Parameters
        ----------
        function : callable
            Gives integers, of about the same norms at the most: `limit` is passed on.
        n_features : int
            Of the result.
        """
        mapped = Rows(_Mapped(self, function), self.n_rows, n_features, self.limit, self.unit)
        # A few coordinates of many rows are less than the rows, and are read many times.
        if self._stored is not None or self.n_rows * n_features <= _STORED_SPARSE:
            mapped.store()
        return mapped

    def store(self) -> None:
        """Keep the rows in memory: their entries are integers of at most 2**25, about."""
        stored = np.empty((self.n_rows, self.n_features), dtype=np.int32)
        for part, rows in self.chunks():
            stored[part] = rows
        self._stored = stored

    def parts(self, width: int = 1) -> list[slice]:
        """Slices of so few rows that a row may have `width` entries."""
        return row_slices(self.n_rows, max(width, self.n_features))

    def chunks(self, width: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice, rows): callers must not write into the rows."""
        read = self.begin()
        for part in self.parts(width):
            yield part, read(part)

    def begin(self) -> _Reader:
        """Begin a pass: a function from slices to rows about the origin."""
        if self._stored is None:
            assert self._begin is not None
            read, moved = self._begin(), self.origin.any()
            return (lambda part: read(part) - self.origin) if moved else read
        stored = self._stored
        if self.origin.any():
            return lambda part: stored[part] - self.origin  # the origin is of floats
        return lambda part: stored[part].astype(np.float64, copy=False)

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared norms, exact: at most 2**50."""
        squares = np.empty(self.n_rows)
        for part, rows in self.chunks():
            np.einsum("ij,ij->i", rows, rows, out=squares[part])
        return squares


class _Quantised:
    """Begins a pass over the rows of a source, on a grid."""

    def __init__(self, source: PartSource, domain: Domain, within: Domain | None) -> None:
        self.source, self.domain, self.within = source, domain, within

    def __call__(self) -> _Reader:
        X, domain, within = self.source.read(), self.domain, self.within
        grid = Grid.for_radius(domain.radius)

        def read(part):
            rows = X[part] if within is None else within.move_rows(X[part])
            return grid.quantise(domain.center_rows(rows), domain.radius)

        return read


class _Mapped:
    """Begins a pass over functions of rows."""

    def __init__(self, rows: Rows, function: Callable[[np.ndarray, np.ndarray], Any]) -> None:
        self.rows, self.function = rows, function

    def __call__(self) -> _Reader:
        rows, function = self.rows, self.function
        read = rows.begin()

        def mapped(part):
            # A part of rows with few entries may be many rows of these.
            places = row_slices(part.stop, rows.n_features, part.start)
            return np.concatenate([function(read(place), rows.squares[place]) for place in places])

        return mapped


def row_slices(n_rows: int, width: int, first: int = 0) -> list[slice]:
    """Slices of so few rows, of `width` entries each, that a chunk fits into the caches.

    >>> row_slices(5, 2**17)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = min(_CHUNK_ENTRIES // max(1, min(_CHUNK_ENTRIES, width)), _MOST_ROWS)
    return [slice(start, min(start + step, n_rows)) for start in range(first, n_rows, step)]


def nearest(rows: Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of some integer centers, and the squared distance to it, exactly.

    Parameters
    ----------
    rows : Rows
    centers : ndarray of shape (k, d), integer-valued, of norm at most 2**25

    Returns
    -------
    labels : ndarray of int of shape (n,); the lowest index among equals
    squared : ndarray of float of shape (n,)
        Both unreleased.
    """
    labels, squared = np.empty(rows.n_rows, dtype=np.int32), rows.squares.copy()
    # |x - c|^2 = |x|^2 + (|c|^2 - 2 x.c), every term an integer of at most 2**51.
    lengths, directions = np.einsum("ij,ij->i", centers, centers), -2.0 * centers
    for part, x in rows.chunks(len(centers)):
        # A row of scores for each center: whole rows are compared faster than short columns.
        scores = directions @ x.T
        scores += lengths[:, None]
        best = scores.min(axis=0)
        # From the last center to the first, so that the lowest index among equals stays.
        for j in range(len(centers) - 1, -1, -1):
            np.copyto(labels[part], j, where=scores[j] == best)
        squared[part] += best
    return labels, squared


def to_centers(rows: Rows, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Squared distance of each row to the center of its label, exactly; 0 for a negative label.

    Parameters
    ----------
    rows : Rows
    centers : ndarray of shape (k, d), integer-valued
    labels : ndarray of int of shape (n,)

    Returns
    -------
    squared : ndarray of shape (n,)
        Unreleased.
    """
    squared = np.zeros(rows.n_rows)
    for part, x in rows.chunks():
        residual = x - centers[labels[part]]
        squared[part] = np.where(labels[part] < 0, 0.0, np.einsum("ij,ij->i", residual, residual))
    return squared


def clipped_sums(
    rows: Rows,
    centers: np.ndarray,
    labels: np.ndarray,
    squared: np.ndarray,
    limits: np.ndarray,
    units: Units,
) -> np.ndarray:
    """Exact sums, for each label, of the rows' residuals clipped to a norm.

    Parameters
    ----------
    rows : Rows
    centers : ndarray of shape (k, d), integer-valued
    labels : ndarray of int of shape (n,); negative ones are left out
    squared : ndarray of shape (n,), squared lengths of the residuals
    limits : ndarray of shape (k,), in steps
    units : Units

    Returns
    -------
    sums : ndarray of integers of shape (k, d), in steps of 2**-WEIGHT_BITS of the grid
        A unit adds to it residuals of total length, each over its limit, of at most
        2**WEIGHT_BITS.
    """
    # f (x - c) is at most 2**36, and so are f x and f c.
    exact = sum_type(rows.n_rows, 36)
    sums, mass = np.zeros(centers.shape, dtype=exact), np.zeros(len(centers), dtype=exact)
    for part, x in rows.chunks():
        inside = np.flatnonzero(labels[part] >= 0)
        whole = len(inside) == len(x)
        label = labels[part] if whole else labels[part][inside]
        square = squared[part] if whole else squared[part][inside]
        x = x if whole else x[inside]
        # Rounded down by more than the errors of the square root and the division: the factor
        # times the length of the residual is at most limit 2**WEIGHT_BITS.
        shrink = np.minimum(1.0, limits[label] * (1 - 2.0**-48) / np.sqrt(np.maximum(square, 1.0)))
        factor = np.floor(shrink * 2.0**WEIGHT_BITS)
        if units.weights is None:
            # sum f (x - c) = sum f x - c sum f; integers of at most 2**36, 2**16 of them.
            mass += np.bincount(label, factor, minlength=len(centers)).astype(np.int64)
        else:
            weight = units.weights[part] if whole else units.weights[part][inside]
            shrink *= weight * (units.step * 2.0**WEIGHT_BITS)
            x = np.trunc((x - centers[label]) * shrink[:, None])
            factor = np.ones(len(x))
        pick = csc_array((factor, label, np.arange(len(x) + 1)), shape=(len(centers), len(x)))
        sums += (pick @ x).astype(np.int64)
    return sums - mass[:, None] * centers.astype(np.int64)


def square_sums(
    labels: np.ndarray,
    squared: np.ndarray,
    cap: float | np.ndarray,
    n_labels: int,
    units: Units,
) -> np.ndarray:
    """Exact sums of min(squared, cap) / cap for each label.

    Parameters
    ----------
    labels : ndarray of int of shape (n,), not negative
    squared : ndarray of shape (n,)
    cap : float or ndarray of shape (n_labels,)
        Public or released, positive.
    n_labels : int
    units : Units

    Returns
    -------
    sums : ndarray of integers of shape (n_labels,)
        In steps of which a unit adds `ERROR_STEPS` at the most, all of them to one label if its
        rows have one. Rows of a unit with several labels share them out, as their weights sum to
        one at most.
    """
    cap = np.broadcast_to(np.asarray(cap, dtype=np.float64), n_labels)
    scale = ERROR_STEPS / cap * (1 - 2.0**-50)
    sums = np.zeros(n_labels, dtype=sum_type(len(labels), 26))
    for start in range(0, len(labels), _MOST_ROWS):
        part = slice(start, start + _MOST_ROWS)
        label = labels[part]
        steps = np.minimum(squared[part], cap[label]) * scale[label]
        if units.weights is not None:
            steps *= units.weights[part] * units.step
        # Integers of at most 2**26, at most 2**16 of them: exact sums.
        sums += np.bincount(label, np.floor(steps), minlength=n_labels).astype(np.int64)
    return sums
