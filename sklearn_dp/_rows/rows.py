"""Integer rows on a public grid, and exact sums of functions of them.

Rows are served in chunks. Everything here is a function of one row and of released values, bit for
bit: operands are integers whose products and sums stay within 2**53, or the operation is
elementwise (see `sklearn_dp._privacy._grid`). A floating-point matrix product may change in its
last bits when a row is appended: a near-tie could then send *other* rows to another center, and no
sensitivity covers that.

The numbers, in grid steps: a row and a center have a norm of at most 2**25 about the origin of the
rows. By Cauchy and Schwarz every product of two of them, and every partial sum of one, is at most
2**50; -2 x.c + |c|^2 is at most 2**51 + 2**50. All of them are exact in float64, in whatever order
BLAS adds them up. Chunks have at most 2**16 rows, so that sums over them stay below 2**53 too, and
are then added up as integers.

Rows of a source are made again in each pass, in dense chunks, or near one row. Both ways give the
same integers: which way a row goes does not show.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._grid import (
    MOST_COLUMNS,
    Domain,
    Grid,
    NearRows,
    Sphere,
    row_of_each_entry,
    rows_minus,
    safe_norms,
    sum_type,
)
from .._privacy._units import Units
from .single_rows import MOST_ROWS, CommonRows, SparseRows, row_slices
from .table import ROWS, ArraySource, Part, PartSource

_MOST_CLIPPED = 2**20  # entries of the clipped rows of a chunk: those of more rows are made dense


class Quantized:
    """Begins a pass over the rows of a source, on a grid."""

    def __init__(self, source: PartSource, domain: Domain, within: Domain | None) -> None:
        self.source, self.domain, self.within = source, domain, within

    def __call__(self) -> "QuantizedRows":
        return QuantizedRows(self.source.read(), self.domain, self.within)


class QuantizedRows:
    """Gives rows for slices; `width` is how many entries near rows have, or 0."""

    def __init__(self, X: np.ndarray | SparseRows, domain: Domain, within: Domain | None) -> None:
        self.X, self.domain, self.within = X, domain, within
        self.grid = Grid.for_radius(domain.radius)
        self.width = X.width if isinstance(X, SparseRows) else 0

    def __call__(self, part: slice) -> np.ndarray:
        """Dense rows."""
        return self._quantized(self.X[part])

    def _quantized(self, rows: np.ndarray) -> np.ndarray:
        rows = rows if self.within is None else self.within.move_rows(rows)
        return self.grid.quantize(self.domain.center_rows(rows), self.domain.radius)

    def near(self, part: slice) -> NearRows | None:
        """Near rows; None where many of them have to be dense."""
        assert isinstance(self.X, SparseRows)
        table = self.X.entries(part)
        moved, radius = moved_entries(table, self.within, self.domain), self.domain.radius
        if moved is None:
            return None
        zeros, table = moved
        if not zeros.any() and len(zeros) <= MOST_COLUMNS:
            quantize = partial(self.grid.quantize, radius=radius)
            table.data = without_zeros(table, quantize)
            few = table.copy()  # the places are not its own
            few.eliminate_zeros()
            return NearRows(zeros, few)
        quantized = self.grid.quantize_entries(zeros, table, radius)
        if quantized is None:
            return None
        rows, clipped = quantized[0], np.flatnonzero(quantized[1])
        if len(clipped) * table.shape[1] > _MOST_CLIPPED:
            return None
        if len(clipped):
            others = self._quantized(self.X.entries(part)[clipped].toarray()) - rows.base
            at, columns = np.nonzero(others)
            entries = others[at, columns], (clipped[at], columns)
            rows.few = rows.few + csr_array(entries, shape=table.shape)
        rows.few.eliminate_zeros()
        return rows


def moved_entries(
    table: csr_array, within: Domain | None, domain: Domain | None
) -> tuple[np.ndarray, csr_array] | None:
    """The result for a row of zeros and of the entries of sparse rows that are moved into `within`
    and taken about the center of a domain, bit for bit, or None."""
    d = table.shape[1]
    columns = np.append(np.arange(d), table.indices)
    line = np.append(np.zeros(d), table.data)
    for region, name in ((within, "move_rows"), (domain, "center_rows")):
        if region is None:
            continue
        if type(region) is not Sphere and (region.low is not None or name == "center_rows"):
            # Elementwise, so all entries may as well be one long row.
            line = getattr(region.at(columns), name)(line[None])[0]
        elif line[:d].any():
            return None
        else:
            line[d:] = without_zeros(_with(table, line[d:]), getattr(region, name))
    return line[:d], _with(table, line[d:])


def _with(table: csr_array, data: np.ndarray) -> csr_array:
    """Other entries in the same places."""
    return csr_array((data, table.indices, table.indptr), shape=table.shape)


def without_zeros(table: csr_array, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """New entries of sparse rows, by a function of dense ones to which zeros mean nothing and which
    leaves them what they are: it gets the entries of each row side by side."""
    ends, data = table.indptr, table.data
    nonzero, counts = np.empty(len(data)), np.diff(ends)
    step = max(1, 2**18 // max(1, int(counts.max(initial=0))))
    for start in range(0, len(counts), step):
        counts_of_rows = counts[start : start + step]
        held = np.arange(max(1, counts_of_rows.max())) < counts_of_rows[:, None]
        rows, place = np.zeros(held.shape), slice(ends[start], ends[start + len(counts_of_rows)])
        rows[held] = data[place]
        nonzero[place] = function(rows)[held]
    return nonzero


class About:
    """Rows minus an origin."""

    def __init__(self, read: Any, origin: np.ndarray) -> None:
        self._read, self._origin = read, origin
        self.width = getattr(read, "width", 0)

    def __call__(self, part: slice) -> np.ndarray:
        rows = self._read(part)
        return rows_minus(rows, self._origin, rows)

    def near(self, part: slice) -> NearRows | None:
        rows = self._read.near(part)
        return None if rows is None else NearRows(rows.base - self._origin, rows.few)


_STORED_ENTRIES = 2**24  # beyond this size rows are read and made anew in each pass
_NEAR_ENTRIES = 2**19  # the same, of rows near one row
_STORED_SPARSE = 2**21  # and rows that came sparse beyond this one, or entries of these that differ
_STORED_ARRAY = 2**25  # bytes of integers of a float32 array; float64 takes twice that itself
_STORED_OF_ARRAY = 2**20  # entries of the first rows of a larger one
_SERVED = 2**23  # entries of an array that is also kept about the origin: 64 MB
_Reader = Callable[[slice], np.ndarray]  # may have a method `near`, where it has a `width`
WHOLE = "whole rows"
"""Name of these before they were mapped."""


class GridGeometry:
    """The public geometry of integer rows: `ball` bounds their norms about the first origin,
    `limit` about the present one, an integer `origin`, in steps of `unit`, a power of two."""

    def __init__(self, n_features: int, ball: float, unit: float = 1.0) -> None:
        self.n_features, self.ball, self.limit, self.unit = n_features, ball, ball, unit
        self.origin = np.zeros(n_features)

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin, whose length adds to the limit."""
        self.origin = origin
        self.limit = self.ball + float(np.linalg.norm(origin))

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Released points (m, n_features) about the origin as integers in the ball of rows."""
        absolute = points + self.origin
        length = np.maximum(np.linalg.norm(absolute, axis=1, keepdims=True), 1e-300)
        return np.rint(absolute * np.minimum(1.0, self.ball / length)) - self.origin


class Rows(GridGeometry):
    """Integer rows about an origin, in memory or made again in each pass.

    Beyond 2**24 entries rows are quantized again whenever they are read; of an array in memory with
    more than 2**23 (2**24 of float64), all rows after the first 2**20 entries are. Up to 2**23
    entries are also kept as they are served.

    `begin`, called at the beginning of a pass, gives a function from a slice to a new array of
    integer-valued float64 rows; `ball` bounds their norms, in steps of length `unit`."""

    def __init__(
        self,
        begin: Callable[[], _Reader] | None,
        n_rows: int,
        n_features: int,
        ball: float,
        unit: float = 1.0,
    ) -> None:
        super().__init__(n_features, ball, unit)
        self._begin, self.n_rows = begin, n_rows
        self._stored: np.ndarray = np.empty((0, n_features), dtype=np.int32)  # the first of them
        self._few = False
        self._squares: np.ndarray | None = None
        self._keeps_squares = True
        self._common: CommonRows | None = None  # all of them

    @classmethod
    def quantize(cls, X: np.ndarray | SparseRows, domain: Domain) -> "Rows":
        """Rows of floats, clipped into a public domain and rounded to its grid, toward zero: no row
        becomes longer than the bound."""
        return cls.of_source(ArraySource(X), domain, X.shape[0])

    @classmethod
    def of_source(
        cls,
        source: PartSource,
        domain: Domain,
        n_rows: int,
        *,
        within: Domain | None = None,
        n_parts: int = 1,
        kept: bool = True,
    ) -> "Rows":
        """The rows of a part of a table, moved into `within` first. What is kept in memory is
        limited for all `n_parts` together; nothing is, unless `kept`."""
        grid, begin = Grid.for_radius(domain.radius), Quantized(source, domain, within)
        d = len(domain.center)
        rows = cls(begin, n_rows, d, grid.steps(domain.radius), grid.unit)
        most = _STORED_SPARSE if source.sparse else _STORED_ENTRIES
        entries = n_rows * d * n_parts
        rows._keeps_squares = source.in_memory or source.sparse or entries <= most
        if not kept:
            return rows
        if source.in_memory and not source.sparse:
            small = entries <= _STORED_ARRAY * source.read().dtype.itemsize // 16
            rows.store(n_rows if small else min(n_rows, _STORED_OF_ARRAY // (d * n_parts)))
            rows._few = small and entries <= _SERVED
        elif entries <= most:
            rows.store(n_rows)
        elif source.sparse:
            rows._common = CommonRows.of((x for _, x in rows.near_chunks()), most // n_parts)
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
        self._squares = None
        self.__dict__.pop("_served", None)

    def about(self, origin: np.ndarray) -> "Rows":
        """Return the same rows relative to another origin; what is in memory is shared."""
        rows = copy(self)
        rows.recenter(origin)
        return rows

    def map(
        self,
        function: Callable[[np.ndarray, np.ndarray], np.ndarray],
        n_features: int,
        most: int | None = None,
        limit: float | None = None,
    ) -> "Rows":
        """Rows of `n_features` integers, of norm at most `limit`, by a function of (rows, squared
        norms), row by row. Sparse ones may be `NearRows`. Up to `most` entries are kept."""
        ball = self.limit if limit is None else limit
        mapped = Rows(_Mapped(self, function), self.n_rows, n_features, ball, self.unit)
        mapped._keeps_squares = self._keeps_squares
        # A few coordinates of some rows are less than the rows, and are read several times.
        if self.n_rows * n_features <= (_STORED_SPARSE if most is None else most):
            mapped.store(self.n_rows)
        return mapped

    def store(self, n_rows: int) -> None:
        """Keep the first rows in memory: their entries are integers of at most 2**25, about."""
        assert self._begin is not None
        stored, read = np.empty((n_rows, self.n_features), dtype=np.int32), self._begin()
        for part in row_slices(n_rows, self.n_features):
            stored[part] = bounded_integers(read(part), np.int32)
        self._stored = stored

    @property
    def kept(self) -> bool:
        """True if all of them are in memory."""
        return len(self._stored) == self.n_rows

    def parts(self, width: int = 1) -> list[slice]:
        """Slices of so few rows that a row may have `width` entries."""
        return row_slices(self.n_rows, max(width, self.n_features))

    def chunks(self, width: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice, rows): callers must not write into the rows."""
        read = self.begin()
        for part in self.parts(width):
            yield part, read(part)

    def near_chunks(self, width: int = 1) -> Iterator[tuple[slice, Any]]:
        """Yield the rows in chunks; rows that came sparse may be `NearRows`."""
        return self.begin_near(width)(slice(0, self.n_rows))

    def begin_near(self, width: int = 1) -> Callable[[slice], Iterator[tuple[slice, Any]]]:
        """Begin a pass: a function from a slice to such chunks of it."""
        read: Any = self.begin()
        wide, few = max(width, self.n_features), getattr(read, "width", 0)

        def chunks(part: slice) -> Iterator[tuple[slice, Any]]:
            step = max(1, min(_NEAR_ENTRIES // max(width, few), MOST_ROWS)) if few else part.stop
            for start in range(part.start, part.stop, max(1, step)):
                place = slice(start, min(start + step, part.stop))
                if few and (rows := read.near(place)) is not None:
                    yield place, rows
                else:
                    yield from (
                        (piece, read(piece)) for piece in row_slices(place.stop, wide, start)
                    )

        return chunks

    def squared_chunks(
        self, width: int = 1, *, near: bool = False
    ) -> Iterator[tuple[slice, Any, np.ndarray]]:
        """Yield (slice, rows, squared norms), which the first pass keeps, but of a table beyond the
        memory. Where `near`, rows that came sparse may be `NearRows`."""
        known = self._squares  # another pass may find them before this one ends
        squares = np.empty(self.n_rows) if known is None else known
        for part, rows in self.near_chunks(width) if near else self.chunks(width):
            if known is None and isinstance(rows, NearRows):
                squares[part] = rows.squares()
            elif known is None:
                np.einsum("ij,ij->i", rows, rows, out=squares[part])
            yield part, rows, squares[part]
            del rows  # before the next are made
        if self._keeps_squares:
            self._squares = squares

    def begin(self) -> _Reader:
        """Begin a pass: a function from slices to rows about the origin."""
        return self._served.__getitem__ if self._few else self._begun()

    @cached_property
    def _served(self) -> np.ndarray:
        """All rows about the origin."""
        served, read = np.empty((self.n_rows, self.n_features)), self._begun()
        for part in self.parts():
            served[part] = read(part)
        served.flags.writeable = False  # every pass gets these: whoever writes would change them
        return served

    def _begun(self) -> _Reader:
        """Return a reader of rows that are computed again."""
        read = self._common or self._read()
        return About(read, self.origin) if self.origin.any() else read

    def _read(self) -> _Reader:
        """A function from slices to new arrays of rows about the first origin."""
        stored, held = self._stored, len(self._stored)
        if held == self.n_rows:
            return lambda part: stored[part].astype(np.float64)
        assert self._begin is not None
        anew = self._begin()
        if not held:
            return anew

        def read(part: slice) -> np.ndarray:
            if part.start >= held:
                return anew(part)
            rows = stored[part].astype(np.float64)
            if part.stop <= held:
                return rows
            return np.concatenate([rows, anew(slice(held, part.stop))])

        return read

    @property
    def squares(self) -> np.ndarray:
        """Squared norms, exact: at most 2**50."""
        if self._squares is not None:
            return self._squares
        parts = [squares for *_, squares in self.squared_chunks(near=True)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


class _Mapped:
    """Begins a pass over functions of rows."""

    def __init__(self, rows: Rows, function: Callable[[np.ndarray, np.ndarray], Any]) -> None:
        self.rows, self.function = rows, function

    def __call__(self) -> _Reader:
        rows, function = self.rows, self.function
        chunks, squares = rows.begin_near(), rows.squares

        def mapped(part: slice) -> np.ndarray:
            # A part of rows with few entries may be many rows of these.
            mapped_chunks = [function(x, squares[place]) for place, x in chunks(part)]
            return mapped_chunks[0] if len(mapped_chunks) == 1 else np.concatenate(mapped_chunks)

        return mapped


def map_rows(part: Part, function: Any, n_features: int, n_parts: int) -> Rows:
    """The rows of a part of `n_parts`, mapped to so many features by `Rows.map`."""
    # Of an array in memory they are kept whatever there are: they are less than the array.
    most = part.units.n_rows * n_features if part.source.in_memory else _STORED_ENTRIES // n_parts
    return part[ROWS].map(function, n_features, most)


# -- sums of functions of rows ---------------------------------------------------------------------


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


# -- rows beyond public bounds ---------------------------------------------------------------------


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
