"""Where the rows of columns are, by noisy histograms, and how far their tails reach.

A column with a finite box needs no look: the box is where its rows are. Without one, or where the
box is so wide that noise hides the column in it, histograms zoom in:

1. Counts by sign and octave of the distance from a public anchor (zero, or the public end nearest
   to it), for all columns at once. Runs of one, two, four and eight bins that stand out from the
   noise hold the rows that are seen, however thin they are spread.
2. Columns whose rows are all in about one bin are far from the anchor by their own standards: their
   next histogram has equal bins there. That takes little to see, so these come first: an offset of
   10^6 standard deviations costs next to nothing.
3. Counts with less noise, for all columns at once, in the bins that those have ended with, and in
   nearer ones where rows are still in about one. Each level spends a quarter of what is left.

Noise hides rows farther out than what is seen: how far a column is clipped is told by their
numbers (:mod:`.reach`). All releases are Gaussian: no event of probability delta.

Tails are power laws, fitted to noisy numbers of rows beyond distances (:func:`laws_of`): a likely
one, by which a clip is chosen, and one that is as heavy as the numbers allow for, which says what
the clip may take.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.columns import OCTAVES, Columns, EqualBins, Octaves

COLUMNS = "columns"
"""Name of the plan entry that pays for looks at columns."""

_MAGNITUDES = 2.0 ** np.arange(-OCTAVES, OCTAVES + 1)
# One bin about zero; the outermost octaves take all beyond.
_OCTAVE_EDGES = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
_NIL = 2.0**-90  # magnitudes that are those of the anchor
_DIGITS, _EXACT = 1e-6, 1e-15  # of a value: bins that have no other one, and that tell it
_BINS, _LEVELS = 32, 12
_RUNS = (1, 2, 4, 8)  # bins that are taken together
_WHOLE = 0.35  # of a row: less noise is mostly none, and now and then one, as counts are whole
_CHANCE = 1e-3  # that noise alone makes any run of any column stand out
_STANDS_OUT = 3.0  # standard deviations of its noise that a bin with rows to be counted exceeds
_NEXT = 3.0  # standard deviations of its noise: a bin beside those that stand out
_PARTS = 3.0  # bins that the rows of a column may fill, and still stand out
_PRECISE = 3000.0  # standard deviations of a bin that make up all rows: more would help nobody
_RESOLVED = 0.7  # standard deviation, in widths of bins, above which a column is done
_TOLD = 0.4  # the same, above which three bins or more tell a spread
_STILL, _ALL = 0.6, 0.9  # of the rows seen before, in several bins and in one
_ENOUGH = 11.0  # standard deviations of noise: nearly all rows in one bin or two are clear of it
_AT_MOST, _AT_LEAST = 1 / 3, 1 / 24  # of what is left, that one look for that takes
_MOST_ONE_VALUE = (
    0.8  # of the rows, that have a single value for sure: the mean is within half a deviation
)
_HALF = 0.5  # of the rows, at one value: where these are more, looks for the others are about it


# -- looks -----------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """A column, as a histogram shows it."""

    center: float
    spread: float
    reach: float
    single: bool
    held: float  # number of rows seen
    bins: int  # in which they are
    resolved: bool
    told: bool
    low: float  # edges of what is seen
    high: float

    @property
    def nearer(self) -> np.ndarray:
        """Edges of equal bins about what is seen."""
        wide = (self.high - self.low) / 4
        return np.linspace(self.low - wide, self.high + wide, _BINS + 1)


_NOTHING = _Seen(0.0, 1.0, 1.0, False, 0.0, 0, False, False, 0.0, 0.0)


@dataclass(frozen=True)
class Profile:
    """Columns (d,), as looks show them, in units of the table."""

    center: np.ndarray
    spread: np.ndarray
    known: np.ndarray  # whether rows stand out from the noise
    told: np.ndarray  # known, and the spread is that of rows, not the width of a bin
    single: np.ndarray  # known, and nearly all rows are seen at one value
    reach: np.ndarray  # from the center, of the rows that are seen

    @classmethod
    def of(cls, columns: list[_Seen]) -> Self:
        center, spread, reach, single, held, _, _, told, *_ = map(
            np.array, zip(*columns, strict=True)
        )
        return cls(center, spread, held > 0, (held > 0) & told, single, reach)

    @property
    def columns(self) -> Columns:
        """Coordinates in which the columns are alike."""
        return Columns(self.center, self.spread, True)

    @property
    def unseen(self) -> np.ndarray:
        """True where no spread is visible."""
        return ~self.known | self.single


def column_entries(rho: float, most: float | None = None) -> tuple[PlanEntry, ...]:
    """The plan entry that pays for looks: `rho`, or up to `most` if it helps."""
    words, most = "a unit adds 1 to a histogram of each column", rho if most is None else most
    return (PlanEntry.gaussian(COLUMNS, rho, words, uses=None, max_rho=most),)


def columns_of(session: PrivacySession, table: TableRows, domain: Domain | None) -> Columns:
    """Those of a box; released ones where the plan pays for them, and they can be told."""
    if COLUMNS in session.plan:
        found = look_at_columns(session, table)
        if (found.told | found.single).all():
            return found.columns
    return Columns.of(domain, table.n_features)


def look_at_columns(
    session: PrivacySession,
    table: TableRows,
    size: float | None = None,
    ends: np.ndarray | None = None,
    where: np.ndarray | None = None,
    *,
    rest: bool = False,
) -> Profile:
    """The profile of columns, `where` they are to be looked at, between public `ends` (2, d) that
    may be infinite. At a released `size` only as much is spent as it takes, and nothing where it
    could not succeed; all of it, with `rest`, where nearly all rows of a column have one value."""
    d = table.n_features
    low, high = np.array([[-np.inf], [np.inf]]).repeat(d, axis=1) if ends is None else ends
    found, anchor = [_NOTHING] * d, np.clip(0.0, low, high)
    active = range(d) if where is None else np.flatnonzero(where).tolist()
    edges = {column: _OCTAVE_EDGES + anchor[column] for column in active}
    edges, before = _zoomed_in(session, table, size, (low, high, anchor), edges, found)
    for _ in range(_LEVELS):
        rho = _cost_of_a_level(session, len(edges), size) if edges else None
        if rho is None:
            break
        counts, sd = _counted(session, table, (low, high, anchor), edges, rho)
        clear, further = _clear(len(edges), len(_OCTAVE_EDGES)), {}
        size = _number(counts, sd) if size is None else size
        for column, own in edges.items():
            both = _together((counts[column], sd), before.pop(column, None))
            seen = _read(*both, own, clear, size, found[column], rest=rest)
            if seen is not None:
                found[column] = seen
                if not seen.resolved:
                    further[column] = seen.nearer
        edges = further
    alone = np.array([column for column in range(d) if found[column].single], dtype=np.intp)
    if rest and len(alone) and size is not None and session.remaining(COLUMNS) > 0:
        _look_about(session, table, found, alone, size, low, high)
    return Profile.of(found)


def _look_about(
    session: PrivacySession,
    table: TableRows,
    found: list[_Seen],
    alone: np.ndarray,
    size: float,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Look for rows that are elsewhere than nearly all, by octaves of the distance from those, with
    all that is left."""
    rho = session.remaining(COLUMNS) * (1 - 1e-9)
    center = np.array([found[column].center for column in alone])
    answer = table.ask(Octaves(alone, low[alone], high[alone], center))
    counts = session.release(COLUMNS, answer, rho=rho)
    sd, clear = max(math.sqrt(len(alone) / (2 * rho)), _WHOLE), _clear(len(alone), counts.shape[1])
    for column, about, noisy in zip(alone, center, counts, strict=True):
        seen = _read(noisy, sd, _OCTAVE_EDGES + about, clear, size, found[column])
        if seen is not None and seen.high - seen.low > _DIGITS * abs(about):
            found[column] = seen


def _zoomed_in(
    session: PrivacySession,
    table: TableRows,
    size: float | None,
    public: tuple[np.ndarray, np.ndarray, np.ndarray],
    edges: dict[int, np.ndarray],
    found: list[_Seen],
) -> tuple[dict[int, np.ndarray], dict[int, tuple[np.ndarray, float]]]:
    """Edges of columns to count between, after nearer and nearer looks at those that have nearly
    all rows in one bin or two; and what has been counted between them, with its noise."""
    wide: dict[int, np.ndarray] = {}
    shown: dict[int, tuple[np.ndarray, float]] = {}
    for level in range(_LEVELS):
        left = session.remaining(COLUMNS)
        least = 0.0 if size is None else len(edges) / 2 * (_ENOUGH / max(size, 1.0)) ** 2
        if not edges or not left > 0 or least > _AT_MOST * left:
            break
        rho = max(least, _AT_LEAST * left)
        counts, sd = _counted(session, table, public, edges, rho)
        size, clear = size or _number(counts, sd), _clear(len(edges), len(_OCTAVE_EDGES))
        near: dict[int, np.ndarray] = {}
        for column, own in edges.items():
            seen = _read(counts[column], sd, own, clear, size, found[column])
            # More than one octave needs no nearer look, and rows at the anchor are counted again.
            if (
                seen is None
                or seen.held + sd < _ALL * size
                or seen.bins > (2 if level else 1)
                or (seen.resolved and not level)
            ):
                wide[column], shown[column] = own, (counts[column], sd)
                continue
            found[column] = seen
            if not seen.resolved:
                near[column] = seen.nearer
        edges = near
    return wide | edges, shown


def _counted(
    session: PrivacySession,
    table: TableRows,
    public: tuple[np.ndarray, np.ndarray, np.ndarray],
    edges: dict[int, np.ndarray],
    rho: float,
) -> tuple[dict[int, np.ndarray], float]:
    """Noisy counts between the edges of columns, and the scale of their noise."""
    counts: dict[int, np.ndarray] = {}
    for octaves in (True, False):
        chosen = [c for c, own in edges.items() if (len(own) > _BINS + 1) == octaves]
        if not chosen:
            continue
        low, high, anchor = (each[chosen] for each in public)
        own, at = np.array([edges[column] for column in chosen]), np.array([*chosen], dtype=np.intp)
        width = np.maximum(own[:, 1] - own[:, 0], 1e-300)
        answer = table.ask(
            Octaves(at, low, high, anchor)
            if octaves
            else EqualBins(at, low, high, own[:, 0], width, _BINS)
        )
        noisy = session.release(COLUMNS, answer, rho=rho * len(chosen) / len(edges))
        counts |= dict(zip(chosen, noisy, strict=True))
    return counts, max(math.sqrt(len(edges) / (2 * rho)), _WHOLE)


def _together(
    one: tuple[np.ndarray, float], other: tuple[np.ndarray, float] | None
) -> tuple[np.ndarray, float]:
    """Two counts of the same bins, and scales of their noise, as one."""
    if other is None:
        return one
    part = one[1] ** 2 / (one[1] ** 2 + other[1] ** 2)
    return one[0] + part * (other[0] - one[0]), max(one[1] * math.sqrt(1 - part), _WHOLE)


def _number(counts: dict[int, np.ndarray], sd: float) -> float:
    """About how many units there are. Each is in one bin of every column, and most bins hold none:
    their noise would add up to twenty times that of one."""
    held = [float(own[own > _STANDS_OUT * sd].sum()) for own in counts.values()]
    return max(float(np.median(held)), 1.0)


def _cost_of_a_level(session: PrivacySession, n_columns: int, size: float | None) -> float | None:
    """The cost of one histogram of so many columns; None if it could not succeed at this size."""
    left = session.remaining(COLUMNS) * (1 - 1e-9)
    if not left > 0 or size is None:
        return left / 2 if left > 0 else None
    size, clear = max(size, 1.0), _clear(n_columns, len(_OCTAVE_EDGES))
    enough = n_columns / 2 * (_PRECISE / size) ** 2
    least = n_columns / 2 * (_PARTS * clear / size) ** 2
    rho = min(max(least, min(left / 4, max(enough, session.plan[COLUMNS].rho / 8))), left)
    return rho if rho >= least else None


def _clear(n_columns: int, n_bins: int) -> float:
    """Standard deviations of its noise that a run of bins has to exceed."""
    return -float(ndtri(_CHANCE / (n_columns * n_bins * len(_RUNS))))


def _read(
    counts: np.ndarray,
    sd: float,
    edges: np.ndarray,
    clear: float,
    size: float,
    before: _Seen,
    *,
    rest: bool = False,
) -> _Seen | None:
    """A column, as a histogram shows it; None where rows are spread too thin in its bins, so that
    what a level before has told stays. With a look for the `rest` to come, most rows at one value
    do for a single one."""
    octaves = len(counts) > _BINS
    stand_out = _standing_out(counts, sd, clear)
    places = np.flatnonzero(stand_out)
    held = float(counts[places].sum()) if len(places) else 0.0
    # Of rows in the outermost octaves nobody knows how far out they are.
    if not held > 0 or (octaves and (stand_out[0] or stand_out[-1])):
        return None
    first, last = int(places[0]), int(places[-1]) + 1
    low, high = float(edges[first]), float(edges[last])
    at_anchor = octaves and high - low < _NIL
    one = at_anchor or last - first == 1
    narrow = at_anchor or high - low < _DIGITS * max(abs(low), abs(high))
    most = _HALF * size if rest else max(_ALL * size - 4 * sd, _MOST_ONE_VALUE * size)
    single = one and narrow and held > most + 2 * sd
    exact = at_anchor or high - low < _EXACT * max(abs(low), abs(high))
    # Some rows at one value do not tell where the others are.
    still = (_ALL if last - first <= 2 else _STILL) * min(before.held, size)
    if not held > still or (exact and not single):
        return None
    weight, width = np.maximum(counts[places], 0.0), np.diff(edges)[places]
    weight /= weight.sum()
    middle = (edges[places] + edges[places + 1]) / 2
    center = float(weight @ middle)
    typical = max(float(weight @ width), 2 * _EXACT * abs(center))
    between = math.sqrt(float(weight @ np.square(middle - center)))
    reach = max(high - center, center - low)
    missing = size - held - _NEXT * sd * math.sqrt(len(places))  # wherever they are
    resolved = exact or between > _RESOLVED * typical
    # Two bins may be those on both sides of rows in one place.
    told = resolved or (len(places) > 2 and between > _TOLD * typical)
    # Rows are anywhere in their bins, and those that are missing from them within the reach.
    lost = math.sqrt(max(missing, 0.0) / size) * reach / 2
    spread = math.hypot(between, typical / math.sqrt(12), lost)
    rows = center, spread, reach, single, held, len(places)
    return _Seen(*rows, resolved, told, low, high)


def _standing_out(counts: np.ndarray, sd: float, clear: float) -> np.ndarray:
    """Which bins are in runs that stand out from the noise, or next to them and above it."""
    kept = np.zeros(len(counts), dtype=bool)
    sums = np.append(0.0, np.cumsum(counts))
    for length in _RUNS:
        held = sums[length:] - sums[:-length]
        for start in np.flatnonzero(held > clear * sd * math.sqrt(length)).tolist():
            run = kept[start : start + length]
            if not run.any():  # rows in longer runs are spread thinner than in those that are kept
                full = np.flatnonzero(counts[start : start + length] > held[start] / length / 2)
                run[full[0] : full[-1] + 1] = True
    above = counts > _NEXT * sd
    for i in [*range(1, len(counts)), *range(len(counts) - 2, -1, -1)]:
        near = (i > 0 and kept[i - 1]) or (i + 1 < len(counts) and kept[i + 1])
        kept[i] |= near and above[i]
    return kept


# -- tails -----------------------------------------------------------------------------------------


FREE = 0.2
"""Part of the sampling error that noise may be and add next to nothing to: 2% in all."""

UPPER = 2.0
"""Standard deviations that all numbers may be too small by."""

_HIDDEN = 1.5  # standard deviations of noise that points may hide in
_LEAST, _MOST = 1.25, 16.0  # powers of tails
_STEEPER = 2.0  # times the power of the last half octave that the likely one is at the most
_SPIKE = 0.85  # of the points, in a single bin: they tell of no law


# Standard deviations of noise: above which a number of points is none, and by which numbers farther
# out are too large, at the least and as a rule.
_CLEAR, _HEAVY, _LIKELY = 3.5, 0.5, 1.0


class PowerLaw(NamedTuple):
    """How many points are farther out than a distance: beyond * (distance / start) ** -power."""

    start: float
    beyond: float
    power: float
    end: float  # no point is farther out

    def excess(self, radius: Any, order: int = 1) -> Any:
        """By how much distances (or squares) exceed those of a radius: the integral of ``order *
        r**(order - 1)`` times the tail."""
        fall = self.power - order
        fall = math.copysign(max(abs(fall), 1e-6), fall)  # a logarithm at 0
        near, far = (
            (np.maximum(place, self.start) / self.start) ** -fall for place in (radius, self.end)
        )
        return order * self.beyond * self.start**order * (near - far) / fall


class Tail(NamedTuple):
    """The tail beyond the farthest distance where points stand out from the noise."""

    start: float
    spike: bool  # whether nearly all points are in one bin: they tell of no law
    likely: PowerLaw
    heavy: PowerLaw


class Laws(NamedTuple):
    """The result of :func:`laws_of`."""

    likely: PowerLaw
    heavy: PowerLaw
    spike: bool


def laws_of(beyond: np.ndarray, sd: np.ndarray, edges: np.ndarray) -> Laws | None:
    """The likely and the heavy law of :func:`tail_of`, and whether nearly all is in one bin. Where
    numbers tell that most of it ends before the next edge, as that of vectors of one length does,
    the likely one starts there, as steep as that is."""
    tail = tail_of(beyond, sd, edges)
    if tail is None:
        return None
    law, i = tail.likely, int(np.searchsorted(edges, tail.start, side="right"))
    if i < len(beyond):
        far, ratio = max(float(beyond[i]), _HIDDEN * float(sd[i])), float(edges[i]) / law.start
        power = math.log(max(law.beyond / far, 1.0)) / math.log(ratio)
        if power > law.power:
            law = PowerLaw(float(edges[i]), far, min(power, _MOST), law.end)
    return Laws(law, tail.heavy, tail.spike)


def tail_of(beyond: np.ndarray, sd: np.ndarray, edges: np.ndarray) -> Tail | None:
    """The tail by noisy numbers of points `beyond` edges; None if no point stands out.

    Its powers are those of the octave and of the half octave before its start. Tails of most laws
    are lighter farther out, so the likely one is bent by as much as that of the octave before; the
    heavy one is not. Neither is steeper than the numbers farther out allow for.
    """
    places = np.flatnonzero(beyond > _CLEAR * sd + 0.5)
    if not places.size:
        return None
    last = max(int(places[-1]), 1)
    start, end = float(edges[last]), max(float(edges[-1]), float(edges[last]))
    fallen = isotonic_regression(beyond, y_min=0.0, increasing=False)
    far = max(float(fallen[last]), _HIDDEN * float(sd[last]))

    def number(part: float, less: float = 0.0) -> float:
        """Binary logarithm of the number beyond a part of the start."""
        place = int(np.searchsorted(edges, start * part * (1 + 1e-9))) - 1
        place = min(max(place, 0), len(sd) - 1)
        return math.log2(max(float(fallen[place]) - less * float(sd[place]), far * 2.0**-_MOST))

    here = math.log2(far)
    octave = max(number(0.5) - here, 0.0)
    half = 2 * max(number(math.sqrt(0.5)) - here, 0.0)
    bent = max(octave - (number(0.25) - number(0.5)), 0.0)

    def allowed(sds: float) -> float:
        return min(here - number(2.0, sds), (here - number(4.0, sds)) / 2)

    heavy = min(octave, half, allowed(_HEAVY))
    likely = min(octave + bent, _STEEPER * half, allowed(_LIKELY))
    powers = (likely, 2.0), (heavy, _LEAST)
    laws = (PowerLaw(start, far, min(max(power, least), _MOST), end) for power, least in powers)
    spike = float(np.max(-np.diff(fallen), initial=0.0)) > _SPIKE * float(fallen[0])
    return Tail(start, spike, *laws)


def heaviest(
    law: PowerLaw, beyond: np.ndarray, edges: np.ndarray, radius: float, order: int
) -> float:
    """The excess of a tail that falls by a law from the edge on with which it is largest."""
    places = np.flatnonzero((edges[:-1] >= law.start) & (edges[:-1] <= 4 * law.start))
    laws = (law._replace(start=edges[i], beyond=max(beyond[i], 0.0)) for i in places)
    return min(float(each.excess(radius, order)) for each in (law, *laws))


def at_most(beyond: np.ndarray, edges: np.ndarray, radius: float, order: int) -> float:
    """The excess of `PowerLaw` for so many points beyond the lower edges of bins."""
    fallen = isotonic_regression(beyond, y_min=0.0, increasing=False)
    return float(fallen @ np.diff(np.maximum(edges, radius) ** order))


def tail_shares(fourths: np.ndarray, noise: float) -> np.ndarray:
    """Which part of what a clip takes is taken from each column: most where tails are longest, by
    noisy fourth powers that are positive. Noise cut off at zero adds 0.4 of its standard deviations
    for each to their sum; what is left of that is at least a quarter."""
    total = float(fourths.sum())
    total = max(total - 0.4 * len(fourths) * noise, total / 4, 1e-300)
    return np.sqrt(fourths / total).clip(max=1.0)
