"""Columns in comparable units: the origin and the scale of each, public or released.

Noise has the same size in all coordinates of a sum, so a table of ages and salaries is put into
comparable units before it is summed. With a box of public bounds the units are known: the middle
and half the width of each side. Without bounds they are released (:func:`look_at_columns`), from
histograms of single columns that zoom in:

1. A histogram of the sign and the octave of each entry, over public bins, for all columns at once.
2. Bins that stand out from the noise tell the mean, the standard deviation and the interval of the
   column.
3. A column whose standard deviation is less than its bins are wide is far from zero by its own
   standards. Its next histogram has equal bins in the interval; columns that are done take no part.
   At most `_LEVELS` such histograms follow: offsets of 10^9 standard deviations are resolved.
4. Columns of which nothing, or one value, has been seen have a last histogram of octaves about that
   value, for all that is left: nine rows in ten that are zero hide what the others are.

The widest bins that stand out decide, so a column that is mostly zero, or has two values far apart,
has the scale of its spread and not of its bulk. A column whose entries are all alike ends with a
scale that is tiny beside its value. All releases are Gaussian: no event of probability delta.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from ..._privacy._aggregates import weighted_bincount
from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from .rows import row_slices
from .table import Part, PartSource, Table

COLUMNS = "columns"
"""Name of the plan entry that pays for released columns."""

_Seen = tuple[float, float, bool, float, float, float, float]
_OCTAVES = 100  # bins of magnitudes from 2**-100 to 2**100
_BINS, _LEVELS = 64, 6
_WIDER = 4  # times an interval of several bins: the tails are seen too
_PARTS = 6.0  # bins that a column should fill and still be seen
_RUNS = (2, 4)  # octaves that are taken together where single ones are lost in the noise
_LEVELS_PAID = 3  # histograms that the entry can pay for if each is as dear as it may be
_CLEAR, _NEXT = 1e-3, 2.0  # chance of a false bin in a histogram; sds of a bin beside a clear one
_SEEN = 3.0  # standard deviations of its noise that a bin with rows to be counted exceeds
_ALL = 0.9  # of the rows: what a column that is told by one bin has in it
_STILL = 0.5  # the same in finer bins
_HEAP = 0.05  # of the rows: as many beside one value are what the column is wide by
_RESOLVED = 0.7  # standard deviation, in widths of bins, above which a column is done
_FARTHEST = 1e100  # scales, from the origin: no square overflows
_MAGNITUDES = 2.0 ** np.arange(-_OCTAVES, _OCTAVES + 1)
_OCTAVE_EDGES = np.concatenate(
    [-_MAGNITUDES[::-1], _MAGNITUDES]
)  # one bin about zero; the outermost octaves take all beyond


@dataclass(frozen=True)
class Columns:
    """Affine coordinates, column by column: ``(x - origin) / scale``."""

    origin: np.ndarray  # (d,)
    scale: np.ndarray
    scaled: bool  # whether columns of different units have become comparable
    box: Domain | None = None  # public bounds, in the units of the table

    @classmethod
    def of(cls, domain: Domain | None, n_features: int, *, scaled: bool = True) -> Self:
        """The middle of a public box, and half of its widths if `scaled`; else the units of the
        table."""
        origin, scale = np.zeros(n_features), np.ones(n_features)
        if domain is None or domain.low is None or not (domain.low < domain.high).any():
            return cls(origin, scale, False, domain)
        half = (domain.high - domain.low) / 2
        return cls(
            domain.center, np.where(half > 0, half, 1.0) if scaled else scale, scaled, domain
        )

    @cached_property
    def plain(self) -> bool:
        """Whether these are the units of the table."""
        return not self.origin.any() and bool(np.all(self.scale == 1.0))

    def about_origin(self) -> "Columns":
        """The same without a shift: where the mean is known to be the origin."""
        scale = self.scale + np.abs(self.origin) if self.scaled else self.scale
        return Columns(np.zeros(len(scale)), scale, self.scaled, self.box)

    @property
    def domain(self) -> Domain | None:
        """The public bounds in these coordinates."""
        if self.box is None or self.box.low is None:
            return self.box
        low, high = self.of_table(np.array([self.box.low, self.box.high]))
        return Domain.from_bounds((low, high), len(self.scale))

    def of_table(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the table in these coordinates: each a function of its row alone, elementwise."""
        rows = np.asarray(rows, dtype=np.float64)
        if self.box is not None:
            rows = self.box.clip_points(rows)
        if self.plain:
            return rows
        return np.clip((rows - self.origin) / self.scale, -_FARTHEST, _FARTHEST)

    def to_table(self, points: np.ndarray) -> np.ndarray:
        """Released points, back in the units of the table and within its box."""
        points = self.origin + self.scale * points
        return points if self.box is None else self.box.clip_points(points)

    def read(self, table: Table) -> Table:
        """The table with its rows in these coordinates."""
        if not self.plain:
            table.update(_in_columns, self)
        return table


class ColumnSource(PartSource):
    """Rows of a source in other coordinates."""

    def __init__(self, source: PartSource, columns: Columns) -> None:
        self.source, self.columns, self.number = source, columns, source.number
        self.in_memory, self.sparse = source.in_memory, source.sparse

    def read(self) -> Any:
        return _ColumnRows(self.source.read(), self.columns)

    def n_rows(self) -> int:
        return self.source.n_rows()


class _ColumnRows:
    """Rows that are put into other coordinates when they are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Any, columns: Columns) -> None:
        self.X, self.columns, self.shape = X, columns, X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def __getitem__(self, places: Any) -> np.ndarray:
        return self.columns.of_table(self.X[places])


def _in_columns(part: Part, columns: Columns) -> tuple[Part, tuple]:
    return part.reading(ColumnSource(part.source, columns)), ()


# -- released columns ------------------------------------------------------------------------------


def column_entries(rho: float, most: float | None = None) -> tuple[PlanEntry, ...]:
    """The plan entry that pays for :func:`look_at_columns`: `rho`, or up to `most` if it helps."""
    words, most = "a unit adds 1 to a histogram of each column", rho if most is None else most
    entry = PlanEntry.gaussian(COLUMNS, rho, words, uses=None, max_rho=most)
    return (entry,)


def columns_of(session: PrivacySession, table: Table, domain: Domain | None) -> Columns:
    """Those of a box; released ones where the plan pays for them, and they can be told."""
    public = Columns.of(domain, table.n_features)
    if COLUMNS not in session.plan:
        return public
    found = look_at_columns(session, table)
    return found.columns if found is not None and found.known.all() else public


class ReleasedColumns(NamedTuple):
    """What :func:`look_at_columns` tells of each column."""

    columns: Columns
    known: np.ndarray  # whether an origin and a scale stand out from the noise
    single: np.ndarray  # known, and all that stands out is one value

    @property
    def unseen(self) -> np.ndarray:
        """Whether there is no spread to be seen."""
        return ~self.known | self.single

    def coordinates(self, box: Domain | None) -> Columns:
        """Those that rows are summed in: of unseen columns by the side of a box, or all at zero."""
        if box is None:
            scale = np.where(self.unseen, np.inf, self.columns.scale)
            return Columns(self.columns.origin, scale, True)
        public = Columns.of(box, len(self.known))
        origin = np.where(self.known, self.columns.origin, public.origin)
        scale = np.where(self.unseen, public.scale, self.columns.scale)
        return Columns(origin, scale, True, box)


def look_at_columns(
    session: PrivacySession, table: Table, size: float | None = None
) -> ReleasedColumns | None:
    """The origin and the scale of each column; see the top of the module.

    At a released `size` only as much is spent as it takes, and nothing, with None for an answer,
    where it could not succeed. Columns of which nothing or one value is seen are looked at once
    more.
    """
    d, rho = table.n_features, _cost_of_a_look(session, table.n_features, size)
    if rho is None:
        return None
    columns, known = Columns(np.zeros(d), np.ones(d), True), np.zeros(d, dtype=bool)
    single, intervals = known.copy(), [(0.0, 1.0)] * d
    active, edges = np.arange(d), np.tile(_OCTAVE_EDGES, (d, 1))
    for step in range(_LEVELS + 2):
        last = step > _LEVELS or not len(active) or session.remaining(COLUMNS) < rho
        if last:
            active, rho = np.flatnonzero(~known | single), session.remaining(COLUMNS) * (1 - 1e-9)
            edges = np.tile(_OCTAVE_EDGES, (len(active), 1))
            if not len(active) or not rho > 0:
                break
        count = _octaves if step == 0 or last else _histograms
        (exact,) = table.sums(count, active, edges, columns.origin)
        # A unit has a weight of at most `scale` steps, in one bin of each of the active columns.
        limit, unit = round_up(table.units.scale * math.sqrt(len(active))), table.units.step
        counts = session.gaussian(COLUMNS, exact, sensitivity=limit, unit=unit, rho=rho)
        sd = math.sqrt(len(active) / (2 * rho))
        size = max(_number(counts, sd) if size is None else size, 1.0)
        further = []
        for place, (column, own) in enumerate(zip(active, edges, strict=True)):
            before = (0.0, 1.0) if count is _octaves else intervals[column]
            found = _moments(counts[place], own, sd, len(active), size, before)
            if count is _octaves and (found is None or _all_zero(found)):
                found = _spread_thin(counts[place], sd, len(active), size) or found
            # About one value, bins as narrow as its own have nothing else in them.
            wider = found is not None and found[2] and found[1] > 2 * _WIDER * columns.scale[column]
            if found is None or (last and known[column] and not wider):
                # What a level before has told stays: in finer bins the rows are spread thin.
                single[column] &= last
                continue
            origin, scale, resolved, low, high, *interval = found
            intervals[column] = interval[0], interval[1]
            columns.origin[column] = origin + (columns.origin[column] if last else 0.0)
            columns.scale[column], known[column], single[column] = scale, True, not resolved
            if not resolved and not _all_zero(found):
                further.append((column, np.linspace(low, high, _BINS + 1)))
        if last:
            break
        active = np.array([column for column, _ in further], dtype=np.intp)
        edges = np.array([own for _, own in further])
    return ReleasedColumns(columns, known, single)


def _number(counts: np.ndarray, sd: float) -> float:
    """About how many units there are. Each is in one bin of every column, and most bins hold none:
    their noise would add up to twenty times that of one."""
    return float(np.median(np.where(counts > _SEEN * sd, counts, 0.0).sum(axis=1)))


def _cost_of_a_look(session: PrivacySession, d: int, size: float | None) -> float | None:
    """What one histogram of each of d columns may cost; None if it could not succeed at `size`."""
    rho = session.remaining(COLUMNS) / _LEVELS_PAID
    if size is not None:
        # A histogram is told well where one of `_PARTS` parts of the rows stands clear in a bin.
        clear = math.sqrt(2 * math.log(len(_OCTAVE_EDGES) * d / _CLEAR))
        wanted = d / 2 * (_PARTS * clear / max(size, 1.0)) ** 2
        if wanted > rho:
            return None
        rho = min(max(4 * wanted, session.plan[COLUMNS].rho / (_LEVELS + 1)), rho)
    return rho * (1 - 1e-9)  # three of them are no more than there is


def _moments(
    counts: np.ndarray,
    edges: np.ndarray,
    sd: float | np.ndarray,
    n_columns: int,
    size: float,
    before: tuple[float, float] = (0.0, 1.0),
) -> _Seen | None:
    """Mean, standard deviation, whether they are resolved, and the interval, from noisy counts.

    Bins count that stand clear of the noise, and their neighbors as far as these are above it; None
    where there is none. Last come the width of their interval, and the part of the rows in it;
    `before` are those of an interval where rows are that are missing from them.
    """
    bins, (width_before, inside) = len(counts), before
    level = sd * math.sqrt(2 * math.log(bins * n_columns / _CLEAR)) + 0.5
    kept = counts > level
    if not kept.any():
        return None
    above = counts > _NEXT * sd + 0.5
    for i in [*range(1, bins), *range(bins - 2, -1, -1)]:
        near = (i > 0 and kept[i - 1]) or (i + 1 < bins and kept[i + 1])
        kept[i] |= near and above[i]
    places = np.flatnonzero(kept)
    weight = counts[places] / counts[places].sum()
    width = np.diff(edges)[places]
    middle = (edges[places] + edges[places + 1]) / 2
    mean = float(weight @ middle)
    spread = math.sqrt(float(weight @ np.square(middle - mean)))
    typical = float(weight @ width)
    low, high = float(edges[places[0]]), float(edges[places[-1] + 1])
    wide = high - low
    if len(places) > 2:
        margin = (_WIDER - 1) / 2 * (high - low)
        low, high = low - margin, high + margin
    # Rows are anywhere in their bins: where there is one bin, that is all there is to the spread.
    scale = max(spread, typical / math.sqrt(12))
    missing = 1 - float(counts[places].sum() + 2 * np.max(sd) * math.sqrt(len(places))) / size
    # Many have one value, as 40 hours: the others are somewhere in the interval.
    left = missing - (1 - inside)
    heap = len(places) == 1 and width_before > 0 and left > _HEAP
    if len(places) > 1 or heap:
        scale = math.hypot(scale, math.sqrt(max(left if heap else missing, 0.0)) * width_before / 4)
    held = min(float(counts[places].sum()) / size, 1.0)
    found = mean, scale, spread > _RESOLVED * typical, low, high, wide, held
    # One bin is a column of one value only if it holds the others too, wherever they hide.
    one = len(places) == 1 or _all_zero(found)
    found = (mean, scale, heap or (not one and found[2]), low, high, wide, held)
    least = (_STILL if width_before else _ALL) * size - 2 * np.max(sd)
    return None if one and counts[places].max() < least else found


def _all_zero(found: _Seen) -> bool:
    """Whether nothing but the bin about zero, and what is beside it, has been seen."""
    return max(-found[3], found[4]) <= _MAGNITUDES[2 * max(_RUNS)]


def _spread_thin(counts: np.ndarray, sd: float, n_columns: int, size: float) -> _Seen | None:
    """The same where an octave holds too few rows: of both signs together, twice the rows for 1.4
    times the noise; then of runs of octaves, where they tell the spread."""
    folded = counts + counts[::-1]
    found = _moments(folded, _OCTAVE_EDGES, math.sqrt(2) * sd, n_columns, 2 * size)
    if found is not None and not _all_zero(found):
        return found
    side = len(_MAGNITUDES) - 1
    for run in _RUNS:
        first = np.r_[np.arange(0, side, run), side, np.arange(side + 1, len(counts), run)]
        edges = np.append(_OCTAVE_EDGES[first], _OCTAVE_EDGES[-1])
        noise = sd * np.sqrt(np.diff(np.append(first, len(counts))))
        wider = _moments(np.add.reduceat(counts, first), edges, noise, n_columns, size)
        if wider is not None and wider[2]:
            return wider
    return found


def _octaves(part: Part, active: Any, edges: np.ndarray, origin: np.ndarray) -> tuple[Part, tuple]:
    """A pass: weights by sign and octave of the entries of each column, less its origin."""
    zero = 2 * _OCTAVES  # the bin about zero

    def bins(x: np.ndarray) -> np.ndarray:
        x = x - origin[active]
        exponents = np.frexp(x)[1] - 1  # |x| in [2**e, 2**(e + 1))
        octave = np.clip(exponents, -_OCTAVES - 1, _OCTAVES - 1) + _OCTAVES + 1
        octave[x == 0] = 0
        return exact_integers(np.sign(x)) * octave + zero

    return part, (_counted(part, active, len(edges[0]) - 1, bins),)


def _histograms(part: Part, active: Any, edges: np.ndarray, _: np.ndarray) -> tuple[Part, tuple]:
    """A pass: weights in equal bins of each column; entries outside are left out."""
    low, width = edges[:, 0], np.maximum(edges[:, 1] - edges[:, 0], 1e-300)

    def bins(x: np.ndarray) -> np.ndarray:
        found = exact_integers(np.floor(np.clip((x - low) / width, -1.0, _BINS)))
        return np.where(found < _BINS, found, -1)

    return part, (_counted(part, active, _BINS, bins),)


def _counted(part: Part, active: np.ndarray, n_bins: int, bins: Any) -> np.ndarray:
    """Weights in the bins of each active column, of shape (active, n_bins), as integers."""
    counts = np.zeros((len(active), n_bins), dtype=np.int64)
    X = part.source.read()
    for place in row_slices(part.units.n_rows, X.shape[1]):
        own, units = bins(np.asarray(X[place], dtype=np.float64)[:, active]), part.units.take(place)
        for column in range(len(active)):
            counts[column] += weighted_bincount(own[:, column], units, n_bins)
    return counts
