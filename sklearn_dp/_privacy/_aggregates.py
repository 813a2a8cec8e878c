"""Releases that the algorithms are made of, each with the proof of its sensitivity.

Every function takes the session and the name of the plan entry that pays. Data arrive as integer
rows on a public grid (see `_grid`), with `Units` (see `_units`) that say which rows belong to one
unit. Neighboring data sets differ by one unit; its rows together carry a weight of at most one,
so by the triangle inequality whatever bounds the contribution of a row bounds that of a unit.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from ._grid import clip_integer_rows, sum_type
from ._products import MOST_SUMMED, NearRows, Products
from ._rounding import exact_integers
from ._sealed import Sealed
from ._session import PrivacySession
from ._units import UnitFacts, Units

GRAM_LIMIT = 2**15  # norm of a row in a second moment
_LONGEST = 1e308  # norm of a row
_CHUNK = 2**16  # rows; float64 sums of a chunk stay below 2**53
_CHUNK_ENTRIES = 2**18
# Public bins of norms: 2**-100 .. 2**100, two edges an octave, and one down to 0.
_FAR = 1000.0  # times the radius of the fullest bin: more than rows of one kind differ by
_NORMS = np.concatenate([[0.0], 2.0 ** (-100 + np.arange(401) / 2)])


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


def count(session: PrivacySession, entry: str, units: Units, rho: float | None = None) -> float:
    """A noisy number of units, of shape ()."""
    # One unit adds between 0 and `scale` steps of weight.
    weight = int(units.totals[0])
    return float(session.gaussian(entry, weight, sensitivity=units.scale, unit=units.step, rho=rho))


def noisy_count_and_totals(
    session: PrivacySession,
    entry: str,
    number: int,
    totals: np.ndarray,
    units: Units | UnitFacts,
) -> tuple[float, np.ndarray]:
    """A noisy number of units, and their noisy `Units.totals`, in units, of the exact ones. All
    that the entry has left is spent. The number is the weight where rows have none of their own;
    else each of the four has twice the noise of one release."""
    if not units.own_weights:
        # The weights of a unit sum to between 0 and `scale` steps, nearly as many: its number.
        weight = int(totals[0])
        noisy = session.gaussian(entry, weight, sensitivity=units.scale, unit=units.step)
        return float(noisy), np.array([noisy])
    # A unit adds one to the number and at most `scale` steps to each of the three totals. Each over
    # its claim: four quarters, whose sum is the square of the length of the change.
    noisy = session.gaussian(
        entry,
        np.append(number, totals),
        sensitivity=2.0 * np.array([1, units.scale, units.scale, units.scale]),
        unit=np.array([1.0, units.step, units.step, units.step]),
    )
    return float(noisy[0]), noisy[1:]


def noisy_counts(
    session: PrivacySession,
    entry: str,
    counts: np.ndarray,
    units: Units | UnitFacts,
    rho: float | None = None,
) -> np.ndarray:
    """Noisy weights (n_cells,) of disjoint cells. `counts` are those of :func:`weighted_bincount`,
    of one part of the rows or added up over parts."""
    # A row is in at most one cell, so a unit adds a non-negative vector of l1 norm at most
    # `scale`, and the l2 norm is no larger.
    return session.gaussian(entry, counts, sensitivity=units.scale, unit=units.step, rho=rho)


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


def vector_sum(
    session: PrivacySession,
    entry: str,
    rows: np.ndarray,
    limit: float,
    units: Units,
    unit: float = 1.0,
) -> np.ndarray:
    """Noisy sum (d,) of integer rows, clipped here to norm `limit`. `limit` is in steps of length
    `unit`, public or released."""
    rows = units.weigh(clip_integer_rows(rows, limit))
    # A row has norm at most limit; a unit is a combination of rows with weights of sum at most one,
    # so the sum moves by at most limit.
    total = label_sums(rows, np.zeros(len(rows), dtype=np.int64), 1)[0]
    return session.gaussian(entry, total, sensitivity=float(limit), unit=unit)


def exact_gram(
    parts: Iterable[tuple[slice, Any, np.ndarray | None]],
    n_features: int,
    limit: float,
    coarse: float,
    units: Units,
) -> np.ndarray:
    """X^T W X as integers, in squared coarse steps; rounding to them toward zero lengthens no row.

    A part is at most 2**16 integer-valued rows, clipped here to norm `limit`, which is at most
    2**15 coarse steps: where they are among all rows, the rows, and their squared norms where these
    are known. Without weights the rows may also be `NearRows`.
    """
    total = np.zeros((n_features, n_features), dtype=sum_type(units.n_rows, 30))
    products = Products(n_features)
    for place, rows, squares in _near_apart(parts, limit):
        if isinstance(rows, NearRows):
            rows = rows.in_steps(1 / coarse)
        else:
            rows = clip_integer_rows(rows, limit, squares) * (1 / coarse)
            np.trunc(rows, out=rows)
        if units.weights is not None:
            # The root of the weight scales the row, rounded toward zero: the rows of a unit then
            # have squared norms of sum at most limit^2.
            root = np.floor(np.sqrt(units.weights[place] * units.step) * 2.0**20) * 2.0**-20
            rows = np.trunc(rows * root[:, None])
        if products.n_rows + len(rows) > MOST_SUMMED:
            total += products.total()
            products = Products(n_features)
        products.add(rows)
    total += products.total()
    return total


def _near_apart(
    parts: Iterable[tuple[slice, Any, np.ndarray | None]], limit: float
) -> Iterator[tuple[slice, Any, np.ndarray | None]]:
    """The parts, of near rows those that a clip leaves as they are; the others dense."""
    for place, rows, squares in parts:
        if not isinstance(rows, NearRows):
            yield place, rows, squares
            continue
        squares = rows.squares() if squares is None else squares
        # As in `clip_integer_rows`. Entries of the common row are bounded like those of the rows.
        over = squares > limit**2 * (1 - 2.0**-50)
        over |= rows.long() | (np.abs(rows.base).max() > limit)
        if not over.all():
            yield place, rows[~over] if over.any() else rows, None
        others, step = np.flatnonzero(over), max(1, _CHUNK_ENTRIES // len(rows.base))
        for start in range(0, len(others), step):
            own = others[start : start + step]
            yield place, rows[own].dense(), squares[own]


def quantile_from_histogram(
    counts: np.ndarray, edges: np.ndarray, noise_sd: float, target: float
) -> float | None:
    """The point above which about `target` units lie, from a noisy histogram (post-processing).

    Bin i is [edges[i], edges[i+1]), its noise has the standard deviation `noise_sd`. From the top
    bin down; the limit is max(target, 1.5 sd sqrt(bins summed)), so that noise alone seldom stops
    the search; log-linear interpolation inside the bin that crosses it. None when the histogram is
    nothing but noise: no prefix from the top ever exceeds the limit.
    """
    above = np.cumsum(counts[::-1])[::-1]
    summed = len(counts) - np.arange(len(counts))
    limit = np.maximum(target, 1.5 * noise_sd * np.sqrt(summed))
    crossing = np.flatnonzero(above > limit)
    if crossing.size == 0:
        return None
    i = crossing[-1]
    over = above[i + 1] if i + 1 < len(counts) else 0.0
    share = np.clip((limit[i] - over) / max(above[i] - over, 1e-300), 0.0, 1.0)
    low = edges[i] if edges[i] > 0 else edges[i + 1] / 2
    return float(edges[i + 1] * (low / edges[i + 1]) ** share)


def norm_counts(
    X: Any, units: Units, prepared: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Exact weights in 400 public bins of the norms of rows: what :func:`private_radius` releases.
    `X` holds finite rows, or is what gives such rows for a slice, and has a length and a shape.
    `prepared` is done to rows first, to each on its own."""
    bins = np.empty(len(X), dtype=np.int32)
    step = max(1, min(_CHUNK, _CHUNK_ENTRIES // max(1, X.shape[1])))
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        rows = rows if prepared is None else prepared(rows)
        bins[start : start + step] = norm_places(rows, _NORMS[1:-1], "right", _octave_halves)
    return weighted_bincount(bins, units, len(_NORMS) - 1)


class NoisyNorms(NamedTuple):
    """Released weights of units in public bins of norms."""

    # (b,), noisy, in whole units; bin i is [edges[i], edges[i + 1]), the last one all beyond
    counts: np.ndarray
    edges: np.ndarray  # (b + 1,), increasing from 0
    sd: float  # standard deviation of the noise of one bin


def private_radius(
    session: PrivacySession,
    entry: str,
    counts: Sealed,
    *,
    rho: float | None = None,
    fraction: float = 0.99,
) -> tuple[float | None, NoisyNorms]:
    """A radius about the origin that holds most of the rows, with no public bound at all.

    `fraction` is the share of the units that should lie inside. `counts` are those of
    :func:`norm_counts`. Releases a noisy histogram of the norms over disjoint public bins, which is
    returned too; the end bins take everything beyond. None when there are too few units to see any,
    or they are beyond the last edge.
    """
    rho = session.remaining(entry) if rho is None else rho
    norms = NoisyNorms(session.release(entry, counts, rho=rho), _NORMS, 1 / math.sqrt(2 * rho))
    return radius_from_bins(*norms, fraction), norms


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
    """The bins of `_NORMS` that norms of such squares are in, next to edges or beyond the ends
    perhaps another one: the exponent of a square between 2**(e-1) and 2**e tells the bin."""
    return np.clip(np.frexp(squares)[1] + 200, 0, len(_NORMS) - 2)


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


def radius_from_bins(
    noisy: np.ndarray, edges: np.ndarray, noise_sd: float, fraction: float
) -> float | None:
    """A radius (or None) from noisy bins of norms: those that stand out from the noise, and the
    quantile among them. Post-processing."""
    # Noise is rounded to whole units: half a unit more, or little noise would show as one. One bin
    # of noise in 200 histograms exceeds the first level. Where it is a thousand times as far out
    # as the fullest bin, all rows would lie in one step of the grid: the second level, which is
    # exceeded in one of 100,000.
    near, far = (noise_sd * math.sqrt(2 * math.log(q * len(noisy))) + 0.5 for q in (20, 1e4))
    beyond = edges[:-1] > _FAR * edges[np.argmax(noisy[1:]) + 2]  # zeros have no scale
    seen = np.where(noisy > np.where(beyond, far, near), noisy, 0.0)
    if not seen.any():
        return None
    above = np.cumsum(seen[::-1])[::-1]
    last = np.flatnonzero(above > (1 - fraction) * seen.sum())[-1]
    # The last bin has no end: rows in it may be at any distance.
    return float(edges[last + 1]) if last + 1 < len(noisy) else None
