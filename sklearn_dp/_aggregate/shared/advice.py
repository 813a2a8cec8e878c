"""Messages with a remedy: answers that are too noisy, and bounds that are too narrow.

The remedy for too much noise has numbers. A standard error falls about in proportion to the number
of units, and to epsilon, as long as the noise is most of it. All of it is made of released values.

Rows beyond public bounds are clipped to them, and then no mean is that of the rows. Most releases
do not show how many there are, but what is next to a bound tells that there may be many:

* a mean within its error of a bound: all rows may be there, and it is no answer;
* a mean that is few spreads from a bound: many rows are at it, or next to it, which is told.

Some columns are like that by nature: many end at zero, which is no sign; some have two values, and
some rows have one length. Where rows beyond the bounds have been counted, their number decides.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..._privacy._grid import Domain
from ..._status import Message, Severity, Status, in_short, names_at

_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_ENOUGH = 0.2  # the part that a remedy leads to
_KNOWN = 5.0  # standard deviations of its noise that a number of units is told by

CLIPPED = "a few rows far outside of the ranges that were found may have been clipped"
"""The note of a fit that has found ranges of columns."""

_NARROW = 0.15  # of the bounds: a radius below is a fact of the rows, which says nothing of others
_PART = 0.25  # of the units, outside of a released radius: a few of them leave the answer as it is
_MANY = 1e9  # above it, people no longer write all digits
_MOST_TIMES = 1000.0  # what is asked for at most: more would be no advice


# -- too much noise --------------------------------------------------------------------------------


class Budget(Protocol):
    """The parameter at which noise is so many times smaller, or "" where that would protect hardly
    anybody, and what is protected: `PrivacySession.budget_for`."""

    units: str

    def __call__(self, times: float, /) -> str: ...


def advice(
    times: float, budget: Budget, size: float | None = None, *other: str, units: str = ""
) -> str:
    """So many times the units (of `size`, which is all of them), as much more budget, or what
    `other` says: what to do. Only the latter where more than a thousand times is needed,
    or what is needed is not known; without a size that is known well, it is more than is known."""
    ways = list(other)
    if times < _MOST_TIMES:
        times = max(times, 1.1)  # "about 1 times as many" would be no advice
        number = "" if size is None else f" ({plain(times * size)} in all)"
        least = "at least " if size is None else "about "
        rows = f"{least}{plain(times)} times as many {units or budget.units}{number}"
        ways = list(filter(None, [rows, budget(times), *ways]))
    return f"use {either(ways)}" if ways else ""


def is_known(size: float, sd: float) -> bool:
    """True if a noisy number of units stands out of its noise by so much that it may be told."""
    return size > _KNOWN * sd


def either(ways: Sequence[str]) -> str:
    """One of several, in a sentence.

    >>> either(["a"]), either(["a", "b"]), either(["a", "b", "c"])
    ('a', 'a or b', 'a, b or c')
    """
    return " or ".join([*([", ".join(ways[:-1])] if len(ways) > 1 else []), ways[-1]])


def hidden_in_noise(
    what: str,
    error: float,
    spread: float,
    budget: Budget,
    size: float,
    least: float,
    power: float = 1.0,
    units: str = "",
    total: float | None = None,
    columns: Sequence[object] = (),
) -> Status:
    """The status of an answer whose standard error is about as large as what it is to tell.

    It is empty where the error is less than half of the spread of `what`, both released. `size` is
    the number of units that the error was divided by, `least` what there is at least, by its noise;
    `total` of all units, where these are a part of them; `columns` those that alone are hidden.
    `power`: an error of several spreads falls with this root of the number of units: less than one
    where clips follow the noise of earlier steps.
    """
    part, total = error / spread if spread > 0 else math.inf, size if total is None else total
    units = units or budget.units
    if not least > 0:
        text = f"too few {units} for this budget: even their number is mostly noise"
        # Error times size does not depend on the size as long as it is noise. What an error was
        # divided by is no less than two standard deviations of the noise of a number.
        times, number = max(part, 1.0) / _ENOUGH, max(total, size - least)
        more = f"use about {plain(times * number)} {units}" if times < _MOST_TIMES else ""
        return Status([Message("few_rows", text, action=more, severity="all")])
    if not part > _HIDDEN:
        return Status()
    words = f"about {100 * part:.0f}% of" if part < 10 else "many times"
    text = f"mostly noise: the standard error is {words} the spread of {what}"
    more = advice(
        min(part, part**power) / _ENOUGH,
        budget,
        total if is_known(size, (size - least) / 2) else None,
        units=units,
    )
    names = tuple(map(str, columns))
    return Status([Message("mostly_noise", text, names, more, "part" if names else "all")])


def listed(names: Sequence[object], places: Sequence[int] | np.ndarray) -> str:
    """The names at some places, in a sentence.

    >>> listed(["age", "pay", "hours"], [0, 2])
    'age, hours'
    """
    return in_short([names[place] for place in places])


def plain(number: float, digits: int = 2) -> str:
    """A number in a sentence, as people write it; more digits are seldom known.

    >>> plain(1234.5), plain(0.256), plain(100.4), plain(1234.5, 3), plain(7.2e11)
    ('1,200', '0.26', '100', '1,230', '7.2e+11')
    """
    rounded = f"{number:.{digits}g}"
    return f"{float(rounded):,.12g}" if abs(number) < _MANY else rounded


def is_far_inside(domain: Domain, radius: float, scale: Any) -> bool:
    """True if a released radius, of columns in units (d,), is far narrower than the bounds."""
    half = domain.radius if domain.low is None else np.subtract(*domain.ends[::-1]) / 2
    reach = np.max(half / scale) if domain.low is None else np.linalg.norm(half / scale)
    return bool(radius < _NARROW * reach)


def outside(most: float, size: float, unit: str, name: str, action: str) -> Message:
    """Return a message about units outside of a released radius: up to `most` units, of
    `upper_bound_outside`, which are fewer than the noise. `name` is the attribute that holds the
    radius. Where they may be a quarter of all (`size`), the answer may be that of the others
    alone."""
    return Message(
        "outside_bound",
        f"up to {math.ceil(most):,} {unit}s (95% confidence) may lie outside of {name} and were "
        "clipped",
        action=action,
        severity="note" if most <= _PART * size else "caution",
    )


# -- bounds that are too narrow --------------------------------------------------------------------


_NEAR, _SMALL = 2.0, 0.02  # standard errors from a bound, if they are small parts of the side
_EQUAL = 1e-5  # of a side: what grids and whitening round by
_CUT = 1.3  # spreads from a bound, that the mean of a column has where many rows are at it
_TWO_VALUES = 0.8  # of the largest variance of a column in bounds
_OF_BALL = 0.25  # of the radius of a ball: the spread of its rows in a column
_FILLED = 0.9, 0.98  # of the radius of a ball: typical lengths of rows that may be cut, or are
_STANDS_OUT = 4.0  # standard deviations of its noise that a number of rows beyond exceeds
_MANY_BEYOND, _FEW_BEYOND = (
    0.25,
    0.01,
)  # of the rows, beyond bounds: no mean is left, and nothing to speak of
_MOST = 0.5  # of the rows, beyond bounds: the bounds are in the wrong place
_WIDER = "use wider bounds"
_CLIPPED = "rows beyond the bounds are clipped to them"


def at_bounds(
    status: Status, domain: Domain | None, means: np.ndarray, errors: np.ndarray, names: Sequence
) -> Status:
    """The status, or that means of shape (..., d) are within their errors of public bounds.

    Such a mean is a sign that the bounds are too narrow, and no answer. Zero is a bound that many
    columns have by nature.

    >>> box = Domain.within(np.zeros(2), np.array([80.0, 400.0]))
    >>> means, errors = np.array([[40.0, 400.0], [1.0, 90.0]]), np.ones((2, 2))
    >>> print(at_bounds(Status(), box, means, errors, ["age", "pay"]))
    the means of these columns are at a bound, and rows may lie beyond it: pay; use wider bounds
    """
    near = near_bounds(domain, means, errors)
    if domain is None or not near.any():
        return status
    places = None if domain.low is None else _any_row(near)
    return told_at_bounds(status, places, names)


def told_at_bounds(status: Status, near: np.ndarray | None, names: Sequence) -> Status:
    """The status, with columns (d,) whose means are at a bound; None for the mean in a ball."""
    if near is None:
        text = "the mean is at the bound, and rows may lie beyond it"
        return status.add(Message("means_at_bound", text, (), _WIDER, "all"))
    words = "the means of these columns are at a bound, and rows may lie beyond it"
    return status.add_columns("means_at_bound", words, names, near, _WIDER, "part")


def ends_of(box: Domain | None, origin: np.ndarray, unit: float) -> np.ndarray | None:
    """The ends (2, d) of a public box, in grid steps about an origin; None: there is no box."""
    if box is None or box.low is None or box.high is None:
        return None
    return (np.array([box.low, box.high]) - origin) / unit


def near_bounds(domain: Domain | None, means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Which of the coordinates (..., d) are within their errors of public bounds, or means of a
    ball."""
    if domain is None or not np.isfinite(errors).all():
        return np.zeros(means.shape, dtype=bool)
    side = domain.radius if domain.low is None else domain.high - domain.low
    off = np.where(errors < _SMALL * side, _NEAR * errors, 0.0) + _EQUAL * side
    if domain.low is None or domain.high is None:
        near = np.linalg.norm(means, axis=-1) + np.linalg.norm(off, axis=-1) >= domain.radius
        return np.broadcast_to(near[..., None], means.shape)
    below, above = means - off <= domain.low, means + off >= domain.high
    return (below & (domain.low != 0) | above & (domain.high != 0)) & (side > 0)


def cut_by_bounds(domain: Domain | None, means: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """True where the mean is so few spreads from a bound that many rows are at it; of shape (...,
    d).

    A uniform column is 1.7 of them from both of its ends, and one of which a third is at a bound
    about one. A column of the two bounds alone, whose variance is the largest that there may be,
    has them by nature, and any column may end at zero.

    >>> box = Domain.within(np.zeros(3), np.array([60.0, 60.0, 1.0]))
    >>> cut_by_bounds(box, np.array([47.0, 30.0, 0.7]), np.array([14.0, 17.0, 0.46]))
    array([ True, False, False])
    """
    if domain is None or domain.low is None or domain.high is None:
        return np.zeros(means.shape, dtype=bool)
    below, above = means - domain.low, domain.high - means
    several = np.square(spreads) < _TWO_VALUES * below * above
    near = (below < _CUT * spreads) & (domain.low != 0)
    return several & (near | (above < _CUT * spreads) & (domain.high != 0))


def told_of_cuts(
    status: Status,
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    spreads: np.ndarray,
    names: Sequence,
    *,
    wrong: bool = False,
) -> Status:
    """A trustworthy status, with the columns of which many rows are at a bound.
    Where all rows are of interest, and no others have been counted, this is `wrong`.

    Means and spreads (..., d) are of columns, in the units of the table. Of a ball it is told where
    a typical row is that long: rows of one length have that by nature, but these do not all point
    the same way.

    >>> box = Domain.within(np.zeros(2), np.array([60.0, 90.0]))
    >>> place = np.array([47.0, 30.0]), np.array([14.0, 17.0])
    >>> told_of_cuts(Status(), np.array(["bound", "ok"]), box, *place, ["pay", "age"])[0].text
    'many rows are at or next to a bound of these columns, and may lie beyond it: pay'
    >>> ball = Domain.about_origin(60.0, 2)
    >>> place = np.array([40.0, 20.0]), np.array([30.0, 14.0])
    >>> print(told_of_cuts(Status(), np.array(["ok", "ok"]), ball, *place, ["pay", "age"]))
    a typical row reaches 100% of the bound, so longer rows may have been clipped; use wider bounds
    """
    if domain is None or not status.trustworthy:
        return status
    severity: Severity = "caution"
    if domain.low is None:
        least, most = _FILLED
        along = float(np.linalg.norm(means, axis=-1).min()) / domain.radius
        part = math.sqrt(float(np.square(means).sum(-1).max() + np.square(spreads).sum(-1).max()))
        part = max(part / domain.radius, _weighted_length(domain.radius, means, spreads))
        if not part > least:
            return status
        text = (
            f"a typical row reaches {plain(100 * min(part, 1.0))}% of the bound, so longer rows "
            "may have been clipped"
        )
        severity = "all" if part > most and along > least else severity
        return status.add(Message("rows_at_bound", text, (), _WIDER, severity))
    cut_columns = np.broadcast_to(codes == "bound", means.shape)
    cut = cut_by_bounds(domain, means, spreads) & cut_columns
    if not cut.any():  # such rows have been counted
        return status.add_columns("rows_beyond_bounds", _CLIPPED, names, _any_row(cut_columns))
    words = "many rows are at or next to a bound of these columns, and may lie beyond it"
    severity = "part" if wrong else severity
    return status.add_columns("rows_at_bound", words, names, _any_row(cut), _WIDER, severity)


def _weighted_length(radius: float, means: np.ndarray, spreads: np.ndarray) -> float:
    """The mean length of rows in parts of a ball, weighted by length, or less than that; 0 if the
    rows are about the origin, or have several means.

    Along the mean m, rows in the ball have t in [-R, R], and E t^2 / (R E t) is one where all are
    at 0 or at R. Columns that go together have more of a variance along m than is counted here.
    """
    length = float(np.linalg.norm(means))
    if means.ndim > 1 or not length > np.linalg.norm(spreads):
        return 0.0
    along = length**2 + float(np.square(means / length) @ np.square(spreads))
    return along / (radius * length)


def told_of_centers(
    status: Status,
    domain: Domain,
    centers: np.ndarray,
    errors: np.ndarray,
    means: np.ndarray,
    spread: np.ndarray,
    names: Sequence,
) -> tuple[Status, np.ndarray]:
    """A status of centers (k, d), and which columns (d,) the bounds cut, where no rows are counted.
    Centers that are all at a side of a box are no answer."""
    at = _at_sides(domain, centers, errors)
    if at.any():
        return told_at_bounds(status, at, names), at
    if not len(centers):
        return status, at
    cut = cut_by_bounds(domain, means, spread)
    status = told_of_cuts(status, np.where(cut, "bound", "ok"), domain, means, spread, names)
    return status, _any_row(cut)


def told_of_balls(
    status: Status,
    domain: Domain | None,
    centers: np.ndarray,
    hidden: np.ndarray,
    radius: float,
    names: Sequence,
) -> tuple[Status, np.ndarray]:
    """Add messages about narrow bounds for balls of a typical radius about centers (k, d), of
    columns not `hidden`."""
    if domain is None or not status.trustworthy:  # what is lost in noise may be anywhere
        return status, np.zeros(len(names), dtype=bool)
    centers = np.where(hidden, domain.center, centers)
    spread, none = np.full(len(names), _OF_BALL * radius), np.zeros(centers.shape)
    messages, cut = told_of_centers(status, domain, centers, none, centers, spread, names)
    if domain.low is None:  # a dense ball may well be at the end of a larger one
        messages = Status(replace(each, severity="caution") for each in messages)
    return messages, cut


def told_of_outside(
    status: Status,
    domain: Domain,
    centers: np.ndarray,
    errors: np.ndarray,
    spread: np.ndarray,
    beyond: np.ndarray,
    outside: tuple[float, float],
    names: Sequence,
) -> tuple[Status, np.ndarray]:
    """A status that knows of rows beyond public bounds, and the columns (d,) that they are in.

    The `centers`, with standard `errors`, are those of clusters that surely have rows; `spread` is
    one of all columns at least; `beyond` the share of rows in each column that has been seen beyond
    the bounds; `outside` that of all rows, with its sd. Centers that are all at a bound are no
    answer, unless as many rows are surely within the bounds.
    """
    share, sd = outside
    at = _at_sides(domain, centers, errors)
    none = np.zeros(len(at), dtype=bool)
    if not share > max(_STANDS_OUT * sd, _FEW_BEYOND):
        if not at.any() or share + _NEAR * sd < _MANY_BEYOND:
            return status, none
        return told_at_bounds(Status(), at, names), at
    columns = at | (beyond > 0)
    if not columns.any() and len(centers):
        columns = cut_by_bounds(domain, centers.mean(axis=0), spread)
    where = names_at(names, columns) if domain.low is not None else ()
    columns = columns if where else none | (domain.low is None)  # all columns of a ball
    text = (
        f"about {plain(100 * min(share, 1.0))}% of the rows are beyond the bounds and are clipped "
        f"to them{': ' if where else ''}{in_short(where)}"
    )
    severity: Severity = "all" if share > _MOST else "part" if share > _MANY_BEYOND else "caution"
    if severity == "caution" and (beyond.any() or not status.trustworthy):
        return status, columns
    message = Message("rows_beyond_bounds", text, where, _WIDER, severity)
    if severity == "all":  # whatever else is wrong is so within the wrong bounds
        return Status([message]), columns
    others = (each for each in status if each.code != message.code)  # of single columns
    return Status([message, *others]), columns


def _at_sides(domain: Domain, centers: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Columns (d,) in which all centers are at a side of a box, and no noise has put them there.
    Rows of one length fill a ball: nothing is said of one."""
    if domain.low is None or domain.high is None or not len(centers):
        return np.zeros(centers.shape[1], dtype=bool)
    known = errors < _SMALL * (domain.high - domain.low)
    return np.asarray((near_bounds(domain, centers, errors) & known).all(axis=0))


def _any_row(flags: np.ndarray) -> np.ndarray:
    """Columns (d,) that are found (..., d) in any place."""
    return np.asarray(flags.reshape(-1, flags.shape[-1]).any(axis=0))
