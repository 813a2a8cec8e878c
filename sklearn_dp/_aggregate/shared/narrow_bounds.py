"""Messages about public bounds that are too narrow, from released means and centers.

Rows beyond bounds are clipped to them, and then no mean is that of the rows. Most
releases do not show how many there are, but what is next to a bound tells that there may be many:

* a mean within its error of a bound: all rows may be there, and it is no answer;
* a mean that is few spreads from a bound: many rows are at it, or next to it, which is told.

Some columns are like that by nature: many end at zero, which is no sign; some have two values, and
some rows have one length. Where rows beyond the bounds have been counted, their number decides.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..._privacy._domain import Domain
from ..._status import Message, Severity, Status, in_short, names_at
from .advice import plain

_NEAR, _SMALL = 2.0, 0.02  # standard errors from a bound, if they are small parts of the side
_EQUAL = 1e-5  # of a side: what grids and whitening round by
_CUT = 1.3  # spreads from a bound, that the mean of a column has where many rows are at it
_TWO_VALUES = 0.8  # of the largest variance of a column in bounds
_OF_BALL = 0.25  # of the radius of a ball: the spread of its rows in a column
_FILLED = 0.9, 0.98  # of the radius of a ball: typical lengths of rows that may be cut, or are
_STANDS_OUT = 4.0  # standard deviations of its noise that a number of rows beyond exceeds
_MANY, _FEW = 0.25, 0.01  # of the rows, beyond bounds: no mean is left, and nothing to speak of
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
    if not share > max(_STANDS_OUT * sd, _FEW):
        if not at.any() or share + _NEAR * sd < _MANY:
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
    severity: Severity = "all" if share > _MOST else "part" if share > _MANY else "caution"
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
