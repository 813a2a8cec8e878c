"""Centers refined column by column, and the status of their coordinates.

Coordinates of centers have short codes:

* "ok".
* "constant": one value is all that can be seen of the column, and nothing bounds what else there
  may be.
* "noise": the standard error is as large as half of the spread of the column, or the cluster holds
  no more rows than the noise of their number.
* "bound": the coordinate is at a bound, or rows are seen to lie beyond one in this column.
* "unknown": the standard error may be larger than the column, whose unit is not known, or whose
  spread noise hides.

All of it follows from released values.

**Refinement.** The noise of a clustering is that of the column with the largest numbers in all
coordinates. So where the sides of public bounds differ by much (:func:`unequal`), or scales have
been released, the last releases refine the centers: rows as offsets in the units of the columns,
summed for each cluster, which follows from the released centers and the row. Of several centers
there are two releases; the first one also tells how wide the clusters are in each column, and where
that is far less than the column is, the second one clips offsets nearer.

A clip that bites is a bias where a column is skewed. In a box, offsets are first from its middle,
and none is clipped. Without one they are from the center (from the origin of the columns, where the
center is lost in its noise), and they are clipped farther out the more rows there are. Rows beyond
are counted, and what they may add to a mean is in its standard error.

A row moves the sums by a vector of length at most sqrt(d), the number of one cluster by one, and
the squares of the columns and the numbers of rows beyond by vectors of length at most sqrt(d).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.columns import Columns, OffsetSums
from ..._status import Code, Message, Status, extent, in_short, names_at

REFINEMENT = "columns of centers"
"""Name of the plan entry that pays for refined centers."""

_REACH = (4.0, 64.0)  # released standard deviations of a column that its rows reach
_FIRST = 0.3  # of the budget of several centers: to see how far their rows reach
_LEAST_REACH = 1e-9  # of the scale of a column: its inverse has a square
_PILED = 0.6  # of half a box, from its middle, that centers next to an end are
_KNOWN = 0.5  # of the reach: a center that is farther off is not refined by what is clipped to it
_SAMPLING = 0.7  # of the error from which rows were drawn: noise that a farther clip may cost
_UNEQUAL = 4.0  # times the shortest side of a box that the longest is; of scales, released, twice
_CONSTANT, _TINY = 1e-10, 1e-28  # standard deviations of no column: of its mean, and at all
_LOST = 1.0  # standard deviation of a column: a coordinate of a larger error tells nothing
_FEWEST_REFINED = (
    3.0  # standard deviations of its noise that the number of rows of a cluster exceeds
)
_BIAS = 0.1  # of the spread: what the clips of the clustering may have moved its centers by
_CLEARLY = 6.0  # standard deviations: the difference of two estimates that is a bias of the first
_EXCESS = 0.4  # of the reach: how far beyond it rows are on average
_SURELY = 2.0  # standard deviations of its noise that squares are larger than what is sure of them
_UNSEEN = 0.02  # of the rows: as many beyond the reach are what the scale has not seen
_STANDS_OUT = 4.0  # standard deviations of its noise that a number of rows beyond exceeds


# -- refinement ------------------------------------------------------------------------------------


class RefinedCenters(NamedTuple):
    """Centers and their standard errors, and what has been released of each column."""

    centers: np.ndarray  # (k, d)
    std_error: np.ndarray  # (k, d)
    spread: np.ndarray  # (d,), of the columns
    within: np.ndarray  # (d,), the same within the clusters; 0 where noise hides it
    beyond: np.ndarray  # (d,), share of the rows that are beyond a box, where it stands out
    at_bound: np.ndarray  # (k, d), whether a coordinate is exactly at a bound of the box
    constant: np.ndarray  # (d,), whether all that can be seen of a column is one value
    alike: bool = False  # whether the spread is one for all columns: nothing is known of each
    unknown: bool = False  # whether rows are too few to tell their units, where these may differ
    # numbers (k,) of the rows that are next to the centers before, and the noise of a number
    numbers: tuple[np.ndarray, float] | None = None
    # (d,), what the spread is at least, but for the noise; None where it is known
    least: np.ndarray | None = None


def unequal(units: Domain | Columns | None) -> bool:
    """True if a box has sides, or columns have scales, of such ratios that centers are refined."""
    if isinstance(units, Columns):  # where scales differ by less, a refinement has more noise
        return bool(units.scale.max() > 2 * _UNEQUAL * units.scale.min())
    if units is None or units.low is None:
        return False
    sides = (units.high - units.low)[units.high > units.low]
    return len(sides) > 1 and bool(sides.max() > _UNEQUAL * sides.min())


def unrefined_centers(
    columns: Columns, centers: np.ndarray, std_error: np.ndarray
) -> RefinedCenters:
    """Centers (k, d) with errors (k,) or (k, d), as they are: for :func:`told_by_column`."""
    (k, d), none = centers.shape, np.zeros(centers.shape[1])
    error = np.array(np.broadcast_to(std_error.reshape(k, -1), (k, d)))
    at_bound = np.zeros((k, d), dtype=bool)
    constant, same_scale = np.zeros(d, dtype=bool), not columns.scaled
    return RefinedCenters(centers, error, columns.scale, none, none, at_bound, constant, same_scale)


def refinement_entry(rho: float) -> PlanEntry:
    """The plan entry of :func:`refined_centers`."""
    words = "a unit adds an offset, clipped to the reach of the columns, to one center"
    share = math.nextafter(rho, 0.0)
    return PlanEntry.gaussian(REFINEMENT, share, words, uses=2)


def refined_centers(
    session: PrivacySession,
    table: TableRows,
    columns: Columns,
    known: RefinedCenters,
    square: float = 1.0,
    size: float = 0.0,
) -> RefinedCenters:
    """Known centers, refined; `size` is the released number of units."""
    k, d = known.centers.shape
    rho, mean_size = session.remaining(REFINEMENT), max(size, 0.0) / k
    # A mean of all rows may be that of a skewed column, which nothing but a wide clip leaves as is.
    part = rho if k == 1 else _FIRST * rho
    first = _first_frame(columns, known, _reach(mean_size, part, d))
    sums = _released(session, table, columns.box, known.centers, first, part)
    refined, most, shown = _combined(columns, known, first, sums, square)
    if k == 1:
        return refined
    part = session.remaining(REFINEMENT)
    second = _second_frame(columns, refined, _reach(mean_size, part, d) * most)
    sums = _released(session, table, columns.box, known.centers, second, part)
    # The rows of the centers before: what is near to the new ones may be other rows.
    last, *_ = _combined(columns, refined, second, sums, square, shown)
    return last._replace(beyond=refined.beyond, numbers=(sums.number, sums.number_sd))


def _reach(size: float, rho: float, d: int) -> float:
    """How many standard deviations of a column its rows reach, at the mean size of a cluster. Of m
    rows: noise of sqrt(d / (2 rho)) reaches over m, drawn with an error of 1 / sqrt(m)."""
    return float(np.clip(_SAMPLING * math.sqrt(size * 2 * rho / d), *_REACH))


class _Frame(NamedTuple):
    """Where offsets of rows are taken from, and how far they are clipped."""

    base: np.ndarray  # (k, d), of the sums
    about: np.ndarray  # (k, d), of the squares
    scale: np.ndarray  # (d,), the clip, and unit
    whole: np.ndarray  # (d,), whether a box holds all rows within that scale: no sum is clipped


def _first_frame(columns: Columns, centers: RefinedCenters, reach: float) -> _Frame:
    """About the middle of a box; else about the centers, or the origin where they are lost."""
    boxed = columns.box is not None
    known = centers.std_error < (_LOST / 4 if boxed else _LOST) * columns.scale
    whole = np.full(len(columns.scale), boxed)
    about = np.where(known, centers.centers, _middle(columns, centers, known))
    if not boxed:
        base = np.where(known, centers.centers, columns.origin)
        return _Frame(base, base, reach * columns.scale, whole)
    # Offsets are clipped to half of the box: about centers next to an end, few rows at the other
    # one, which may be most of the squares, would be lost.
    piled = np.abs(about - columns.origin).max(axis=0) > _PILED * columns.scale
    middle = np.broadcast_to(columns.origin, about.shape)
    return _Frame(middle, np.where(piled, middle, about), columns.scale, whole)


def _second_frame(columns: Columns, centers: RefinedCenters, reach: np.ndarray) -> _Frame:
    """About the refined centers, as far as their rows are likely to be; or all of the box."""
    reach = np.maximum(reach, _LEAST_REACH * columns.scale)
    whole = (reach >= columns.scale) & (columns.box is not None)
    base = np.where(whole, columns.origin, centers.centers)
    known = ~whole | (centers.std_error < _LOST * centers.spread)
    about = np.where(known, centers.centers, _middle(columns, centers, known))
    return _Frame(base, about, np.where(whole, columns.scale, reach), whole)


def _middle(columns: Columns, centers: RefinedCenters, known: np.ndarray) -> np.ndarray:
    """Where the rows of lost centers (k, d) are likely to be: with the `known`, by column."""
    errors = np.square(centers.std_error / columns.scale)
    weights = np.where(known, 1 / np.maximum(errors, 1e-30), 0.0)
    total = weights.sum(axis=0)
    mean = (weights * centers.centers).sum(axis=0) / np.maximum(total, 1e-300)
    return np.where(total > 0, mean, columns.origin)


def _combined(
    columns: Columns,
    known: RefinedCenters,
    frame: _Frame,
    sums: "_Sums",
    square: float,
    shown: np.ndarray | float = 0.0,
) -> tuple[RefinedCenters, np.ndarray, np.ndarray]:
    """Known centers (k, d) and a release, by inverse variance; at most how wide (d,) the clusters
    are in each column, as far as noise lets it be seen; and the variances that this release has
    `shown`, for the next one."""
    centers, before = known.centers, known.std_error
    (k, d), scale = centers.shape, frame.scale
    least = np.maximum(sums.number, _FEWEST_REFINED * sums.number_sd)[:, None]
    offset = np.clip(sums.total / least, -1.0, 1.0)
    refined, widest = frame.base + offset * scale, np.square(columns.scale / scale)
    noise = np.hypot(sums.total_sd, offset * sums.number_sd) / least * scale
    # The noise of a mean is in its square, too.
    moved = np.square((refined - frame.about) / scale) - np.square(noise / scale)
    # Of a center whose noise would rule the squares: they are about the middle of the others.
    near = ~frame.whole | (least * np.square(noise / scale) <= sums.squares_sd)
    within = sums.squares - (least * np.where(near, moved, 0.0)).sum(axis=0)
    spread = np.sqrt(np.clip(within / least.sum(), 0.0, widest))
    # What the noise of the squares may hide is drawn, too.
    most = np.sqrt(np.minimum(np.maximum(within, sums.squares_sd) / least.sum(), widest)) * scale
    drawn = most * np.sqrt(square / least)
    drawn = np.minimum(drawn, before * math.sqrt(d))  # which has the spread of all columns
    # Two estimates with noise of their own, the first one with a bias of its clips; where there are
    # no rows it stays, and where what is clipped depends on how far off it is.
    visible = (sums.number > _FEWEST_REFINED * sums.number_sd)[:, None]
    visible = visible & (frame.whole | (frame.base != centers) | (before < _KNOWN * scale))
    # A center that is surely outside of its frame stays: its rows were clipped, not seen.
    visible &= frame.whole | (np.abs(centers - frame.base) <= scale + _STANDS_OUT * before)
    clear = sums.beyond > _STANDS_OUT * sums.beyond_sd
    constant = columns.scale <= np.maximum(_CONSTANT * np.abs(columns.origin), _TINY)
    # What has been seen of the column is not its spread.
    visible &= frame.whole | ~(clear & (constant | (sums.beyond > _UNSEEN)))
    # Of y beyond a clip at r, (y - r) is at most (y^2 - r^2) / 2r: squares that a wider clip has
    # shown, and this one does not.
    squares = np.square(spread * scale)
    squares_sd = sums.squares_sd / least.sum() * np.square(scale)
    missing = np.maximum(shown - squares - squares_sd, 0.0) / (2 * scale)
    hidden = np.where(frame.whole, 0.0, np.maximum(missing, _EXCESS * scale * sums.beyond))
    noise = np.hypot(noise, hidden)
    bias = _bias(refined - centers, np.square(before) + np.square(noise), visible)
    # A standard error is at least that of drawing: the spread of the cluster is no larger.
    widths = np.minimum(most, before * np.sqrt(d * least))
    bias = np.maximum(bias, np.square(_BIAS * widths))
    first = np.square(before) + bias
    gain = np.where(visible, first / np.maximum(first + np.square(noise), 1e-300), 0.0)
    first = np.maximum(first - np.square(drawn), 0.0)
    error = np.square(drawn) + np.square(gain * noise) + np.square(1 - gain) * first
    error = np.where(gain > 0, np.sqrt(error), before)
    after, at_bound = centers + gain * (refined - centers), np.zeros((k, d), dtype=bool)
    column, at_least = columns.scale, None
    if columns.box is not None:
        after = columns.box.clip_points(after)
        parts = np.where(near, least / least.sum(), 0.0)
        mean = (parts * after).sum(axis=0) / np.maximum(parts.sum(axis=0), 1e-300)
        between = (parts * (np.square(after - mean) - np.square(error))).sum(axis=0)
        between = np.maximum(between, 0.0)
        column = np.minimum(np.sqrt(np.square(spread * scale) + between), column)
        assert columns.box.low is not None and columns.box.high is not None
        free = columns.box.low < columns.box.high
        at_bound = free & ((after <= columns.box.low) | (after >= columns.box.high))
        sure = np.sqrt(np.maximum(squares + between - _SURELY * squares_sd, 0.0))
        at_least = sure if known.least is None else np.maximum(sure, known.least)
    beyond = np.where(clear & frame.whole, np.minimum(sums.beyond, 1.0), 0.0)
    combined = RefinedCenters(after, error, column, spread * scale, beyond, at_bound, constant)
    combined = combined._replace(least=at_least)
    return combined, most, squares - squares_sd


def _bias(apart: np.ndarray, variance: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Squared bias of a column, where two estimates of its centers differ by more than by chance.
    The mean of m squares of standard normal numbers has the standard deviation sqrt(2 / m)."""
    number = np.maximum(visible.sum(axis=0), 1)
    ratio = np.where(visible, np.square(apart) / np.maximum(variance, 1e-300), 0.0).sum(axis=0)
    excess = np.where(visible, np.square(apart) - variance, 0.0).sum(axis=0) / number
    surely = ratio / number > 1.0 + _CLEARLY * np.sqrt(2.0 / number)
    return np.where(surely, np.maximum(excess, 0.0), 0.0)


class _Sums(NamedTuple):
    """The released sums, in units of the scale of its frame, with standard deviations."""

    total: np.ndarray  # (k, d)
    total_sd: float
    number: np.ndarray  # (k,)
    number_sd: float
    squares: np.ndarray  # (d,)
    squares_sd: float
    beyond: np.ndarray  # (d,), parts of all rows
    beyond_sd: float


def _released(
    session: PrivacySession,
    table: TableRows,
    box: Domain | None,
    centers: np.ndarray,
    frame: _Frame,
    rho: float,
) -> _Sums:
    """The release: sums, numbers, squares and numbers of rows beyond, in one Gaussian vector."""
    query = OffsetSums(box, centers, *frame)
    noisy = session.release(REFINEMENT, table.ask(query), rho=rho)
    (total, number, squares, beyond), moves = query.released(noisy, table.units)
    sd = [each / math.sqrt(2 * rho) for each in moves]
    n = max(float(number.sum()), _FEWEST_REFINED * math.sqrt(len(centers)) * sd[1])
    return _Sums(total, sd[0], number, sd[1], squares, sd[2], beyond / n, sd[3] / n)


# -- codes and statuses ----------------------------------------------------------------------------


_HIDDEN = 0.5  # part of a column's spread that is noise
_USELESS = 0.25  # of the centers: as many lost coordinates of a column are not "ok"
_FEWEST = 4.0  # standard deviations of its noise that the number of rows of a cluster exceeds
_RULES = 0.99  # of the spread, in one column
_SINGLE = "only a single value is visible in these columns"


def codes_of_centers(
    centers: RefinedCenters, numbers: np.ndarray, numbers_sd: np.ndarray
) -> np.ndarray:
    """A code for each coordinate (k, d) of each center; the numbers (k,) of rows are released."""
    codes = np.full(centers.centers.shape, "unknown" if centers.unknown else "ok", dtype="<U8")
    if centers.least is not None:
        codes[centers.std_error > _HIDDEN * centers.least] = "unknown"
    codes[:, centers.constant] = "constant"
    codes[centers.at_bound | (centers.beyond > 0)] = "bound"
    codes[_lost(centers) | (numbers < _FEWEST * numbers_sd)[:, None]] = "noise"
    return codes


def codes_by_column(codes: np.ndarray) -> np.ndarray:
    """A code for each column: what is said of more than a quarter of its coordinates, or "ok". Of
    several such codes it is the most common one."""
    combined = np.full(codes.shape[1], "ok", dtype=codes.dtype)
    most = np.full(codes.shape[1], _USELESS * len(codes))
    for code in ("noise", "bound", "constant", "unknown"):
        number = np.count_nonzero(codes == code, axis=0)
        combined[number > most], most = code, np.maximum(most, number)
    return combined


def told_by_column(
    status: Status, centers: RefinedCenters, codes: np.ndarray, names: Sequence[object]
) -> Status:
    """The status, with the columns that are lost in noise, clipped, or rule all: by name; and how
    many centers are nothing but noise, by the `codes` (k, d) of their coordinates. With more than
    half of them it is not trustworthy."""
    if not status and not centers.alike:
        status = _told_of_columns(centers, names)
    k, empty = len(codes), int(np.count_nonzero((codes == "noise").all(axis=1)))
    if not empty or not status.trustworthy:
        return status
    verb = "is" if empty == 1 else "are"
    text = f"{empty} of {k} centers {verb} mostly noise or nearly empty"
    severity = extent(empty, k) if 2 * empty > k else "caution"
    return status.add(Message("noisy_centers", text, severity=severity))


def told_of_single(status: Status, codes: np.ndarray, names: Sequence[object]) -> Status:
    """The status, with the columns (d,) that have one value."""
    return status.add_columns("single_value", _SINGLE, names, codes == "constant")


def _told_of_columns(centers: RefinedCenters, names: Sequence[object]) -> Status:
    """Return messages about the columns."""
    k, spread = len(centers.centers), centers.spread
    n_lost = np.count_nonzero(_lost(centers), axis=0)
    at_bound = np.count_nonzero(centers.at_bound, axis=0)
    rules = told_of_rule(spread, names, "clusters")
    useless = np.where(n_lost > _USELESS * k, n_lost, 0)
    if useless.any():
        severity = extent(int(useless.min()), k)
        text = f"mostly noise in some columns: {_numbered(useless, names)} of {k} centers"
        wrong = Message("mostly_noise", text, names_at(names, useless), severity=severity)
        return Status([wrong, *rules])
    cases: list[tuple[Code, np.ndarray, str]] = [
        ("noisy_columns", n_lost, f"too noisy to use: {{}} of {k} centers"),
        (
            "means_at_bound",
            at_bound,
            "coordinates are exactly at a bound, moved there by noise or distant rows: "
            f"{{}} of {k} centers",
        ),
    ]
    status = Status(
        Message(code, text.format(_numbered(number, names)), names_at(names, number))
        for code, number, text in cases
        if number.any()
    )
    if centers.beyond.any():
        cut = np.flatnonzero(centers.beyond).tolist()
        where = in_short([f"{names[i]} ({100 * centers.beyond[i]:.2g}%)" for i in cut])
        text = f"rows beyond the bounds are clipped to them: {where}"
        status = status.add(Message("rows_beyond_bounds", text, names_at(names, centers.beyond)))
    single = centers.constant & (n_lost == 0)
    return status.add_columns("single_value", _SINGLE, names, single).add(*rules)


def told_of_rule(spread: np.ndarray, names: Sequence[object], what: str) -> list[Message]:
    """That one column has nearly all of the spread (d,), if it does."""
    share = np.square(spread) / max(float(np.square(spread).sum()), 1e-300)
    first = int(np.argmax(share))
    if not share[first] > _RULES or len(share) < 2:
        return []
    text = (
        f"{names[first]} has {100 * min(share[first], 0.999):.1f}% of the spread, so the "
        f"other columns hardly affect the {what}"
    )
    action = "to change that, scale the columns first"
    return [Message("one_column_rules", text, (str(names[first]),), action)]


def _lost(centers: RefinedCenters) -> np.ndarray:
    """True where a coordinate is too noisy to use, of shape (k, d); not in columns with one
    value."""
    return (centers.std_error > _HIDDEN * centers.spread) & ~centers.constant


def _numbered(number: np.ndarray, names: Sequence[object]) -> str:
    """Columns by name with the least of their numbers."""
    return f"{in_short(names_at(names, number))} in {int(number[number > 0].min())}"
