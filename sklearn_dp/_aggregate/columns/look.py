"""Where the rows of columns are, by noisy histograms of single columns.

A column with a finite box needs no look: the box is where its rows are. Without one, or where the
box is so wide that noise hides the column in it, histograms zoom in:

1. Counts by sign and octave of the distance from a public anchor (zero, or the public end nearest
   to it), for all columns at once. Runs of one, two, four and eight bins that stand out from the
   noise hold the rows that are seen, however thin they are spread.
2. Columns whose rows are all in about one bin are far from the anchor by their own standards: their
   next histogram has equal bins there. Each level spends half of what is left, so offsets of 10^9
   standard deviations are resolved.

The reach of what is seen is not that of the column: noise hides rows farther out. So a column is
clipped at the distance where the noise of its squares and what a power law puts beyond them are
least together (:meth:`Profile.ends`). All releases are Gaussian: no event of probability delta.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.columns import OCTAVES, EqualBins, Octaves
from ..._queries.coordinates import Columns
from ..._queries.table_rows import TableRows

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
_MOST = 0.8  # of the rows, that have a single value for sure: the mean is within half a deviation
_OUTSIDE = {True: 3, False: 16}  # octaves, or equal bins, on either side that hidden rows may be in
# Standard deviations of noise: less than rows, and that rows are at the least. A later count shows
# more of them, if there are: see `Ends.widened`.
_HIDING = 2.0, 0.3
POWER, _STEEPEST, _HEAVIEST = 3.2, 5.0, 3.0  # of the tail beyond what is seen
_STEPS = 2.0 ** (np.arange(80) / 4)  # reaches that a column may be clipped at


class _Seen(NamedTuple):
    """What a histogram tells of a column."""

    center: float
    spread: float
    reach: float
    hidden: float
    power: float
    heavy: float
    single: bool
    held: float  # number of rows seen
    resolved: bool
    told: bool
    low: float  # edges of what is seen
    high: float


_NOTHING = _Seen(0.0, 1.0, 1.0, 0.0, POWER, POWER, False, 0.0, False, False, 0.0, 0.0)


@dataclass(frozen=True)
class Profile:
    """What looks tell of columns (d,), in units of the table."""

    center: np.ndarray
    spread: np.ndarray
    known: np.ndarray  # whether rows stand out from the noise
    told: np.ndarray  # known, and the spread is that of rows, not the width of a bin
    single: np.ndarray  # known, and nearly all rows are seen at one value
    reach: np.ndarray  # from the center, of the rows that are seen
    hidden: np.ndarray  # about the number of rows farther out, or what noise may hide
    power: np.ndarray  # that this number is likely to fall by, with the distance
    heavy: np.ndarray  # and by the rows that are seen, at the least

    @classmethod
    def of(cls, columns: list[_Seen]) -> Self:
        center, spread, reach, hidden, power, heavy, single, held, _, told, *_ = map(
            np.array, zip(*columns, strict=True)
        )
        known = held > 0
        return cls(center, spread, known, known & told, single, reach, hidden, power, heavy)

    @property
    def columns(self) -> Columns:
        """Coordinates in which the columns are alike."""
        return Columns(self.center, self.spread, True)

    @property
    def unseen(self) -> np.ndarray:
        """True where no spread is visible."""
        return ~self.known | self.single

    def ends(self, rho: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where columns are clipped, low and high, whose squares get so much of the budget; and the
        number of rows that may be beyond, as many as take what a heavy tail does of the mean."""
        times = tail_reach(self.hidden, rho, self.power)
        clip = self.reach * times
        beyond = self.hidden * times**-self.heavy * (POWER - 1) / (self.heavy - 1)
        return self.center - clip, self.center + clip, beyond


def tail_reach(hidden: np.ndarray, rho: float, power: Any = POWER) -> np.ndarray:
    """How many times as far as N hidden rows begin a column is clipped: of N x^-p of them farther
    out than x, squares exceed that of a clip at b by N b^(2-p) 2 / (p - 2) in all; noise is as many
    squares of b as the standard deviation of a count."""
    p = np.broadcast_to(np.asarray(power, dtype=np.float64), hidden.shape)[:, None]
    beyond = hidden[:, None] * _STEPS**-p * 2 / (p - 2)
    cost = _STEPS**2 * np.hypot(1 / math.sqrt(2 * rho), beyond)
    return _STEPS[np.argmin(cost, axis=1)]


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
    rows, d = table, table.n_features
    low, high = np.array([[-np.inf], [np.inf]]).repeat(d, axis=1) if ends is None else ends
    found, anchor = [_NOTHING] * d, np.clip(0.0, low, high)
    active = np.arange(d) if where is None else np.flatnonzero(where)
    edges = np.tile(_OCTAVE_EDGES, (len(active), 1))
    for level in range(_LEVELS):
        rho = _cost_of_a_level(session, len(active), size) if len(active) else None
        if rho is None:
            break
        about = anchor[active] if level == 0 else np.zeros(len(active))
        public = active, low[active], high[active]
        if level:
            width = np.maximum(edges[:, 1] - edges[:, 0], 1e-300)
            answer = rows.ask(EqualBins(*public, edges[:, 0], width, _BINS))
        else:
            answer = rows.ask(Octaves(*public, about))
        counts = session.release(COLUMNS, answer, rho=rho)
        sd, further = max(math.sqrt(len(active) / (2 * rho)), _WHOLE), []
        clear = _clear(len(active), len(_OCTAVE_EDGES))
        size = _number(counts, sd) if size is None else size
        for column, own, noisy in zip(active, edges + about[:, None], counts, strict=True):
            seen = _read(noisy, own, sd, clear, size, found[column])
            if seen is not None:
                found[column] = seen
                if not seen.resolved:
                    wide = (seen.high - seen.low) / 4
                    ends_of = seen.low - wide, seen.high + wide
                    further.append((column, np.linspace(*ends_of, _BINS + 1)))
        active = np.array([column for column, _ in further], dtype=np.intp)
        edges = np.array([own for _, own in further])
    alone = np.array([column for column in range(d) if found[column].single], dtype=np.intp)
    if rest and len(alone) and size is not None and session.remaining(COLUMNS) > 0:
        _look_about(session, rows, found, alone, size, low, high)
    return Profile.of(found)


def _look_about(
    session: PrivacySession,
    rows: TableRows,
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
    answer = rows.ask(Octaves(alone, low[alone], high[alone], center))
    counts = session.release(COLUMNS, answer, rho=rho)
    sd, clear = max(math.sqrt(len(alone) / (2 * rho)), _WHOLE), _clear(len(alone), counts.shape[1])
    for column, about, noisy in zip(alone, center, counts, strict=True):
        seen = _read(noisy, _OCTAVE_EDGES + about, sd, clear, size, found[column])
        if seen is not None and seen.high - seen.low > _DIGITS * abs(about):
            found[column] = seen


def _number(counts: np.ndarray, sd: float) -> float:
    """About how many units there are. Each is in one bin of every column, and most bins hold none:
    their noise would add up to twenty times that of one."""
    held = np.where(counts > _STANDS_OUT * sd, counts, 0.0).sum(axis=1)
    return max(float(np.median(held)), 1.0)


def _cost_of_a_level(session: PrivacySession, n_columns: int, size: float | None) -> float | None:
    """What one histogram of so many columns costs; None if it could not succeed at this size."""
    rho = session.remaining(COLUMNS) / 2 * (1 - 1e-9)
    if not rho > 0 or size is None:
        return rho if rho > 0 else None
    enough = n_columns / 2 * (_PRECISE / max(size, 1.0)) ** 2
    rho = min(rho, max(enough, session.plan[COLUMNS].rho / 8))
    clear = _clear(n_columns, len(_OCTAVE_EDGES)) * math.sqrt(n_columns / (2 * rho))
    return rho if clear <= size / _PARTS else None


def _clear(n_columns: int, n_bins: int) -> float:
    """Standard deviations of its noise that a run of bins has to exceed."""
    return -float(ndtri(_CHANCE / (n_columns * n_bins * len(_RUNS))))


def _read(
    counts: np.ndarray, edges: np.ndarray, sd: float, clear: float, size: float, before: _Seen
) -> _Seen | None:
    """What a histogram tells of a column; None where rows are spread too thin in its bins, so that
    what a level before has told stays."""
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
    single = one and narrow and held > max(_ALL * size - 2 * sd, _MOST * size + 2 * sd)
    # Some rows at the anchor do not tell where the others are.
    if not held > (_ALL if one else _STILL) * before.held or (at_anchor and not single):
        return None
    weight, width = np.maximum(counts[places], 0.0), np.diff(edges)[places]
    weight /= weight.sum()
    middle = (edges[places] + edges[places + 1]) / 2
    center, typical = float(weight @ middle), float(weight @ width)
    between = math.sqrt(float(weight @ np.square(middle - center)))
    reach, near = max(high - center, center - low), _OUTSIDE[octaves]
    outside = np.append(counts[max(first - near, 0) : first], counts[last : last + near])
    less, least = _HIDING
    hidden = max(float(outside.sum()) - less * sd * math.sqrt(len(outside)), least * sd)
    far = held * float(weight[np.abs(middle - center) > reach / 2].sum()) + hidden
    heavy = max(math.log2(far / hidden), _HEAVIEST)
    power = min(max(heavy, POWER), _STEEPEST)
    exact = at_anchor or high - low < _EXACT * max(abs(low), abs(high))
    resolved = exact or between > _RESOLVED * typical
    # Two bins may be those on both sides of rows in one place.
    told = resolved or (len(places) > 2 and between > _TOLD * typical)
    # Rows are anywhere in their bins, and those that are missing from them within the reach.
    missing = 1 - (held + _NEXT * sd * math.sqrt(len(places))) / size
    spread = math.hypot(between, typical / math.sqrt(12), math.sqrt(max(missing, 0.0)) * reach / 2)
    rows = center, spread, reach, hidden, power, min(heavy, POWER), single, held
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
