"""The status of the moments of columns: short codes and messages, from released values.

* "ok".
* "constant": nearly all rows have one value, as far as can be seen.
* "noise": the standard error of the mean is at least half of the spread, or nothing was found.
* "unknown": it may be, as noise hides the spread. This is no "ok", either.
* "scale": noise hides the standard deviation alone.
* "bound": many rows are beyond the public bounds, so that they were moved.

Errors are compared with the spread of the rows as far as it has been seen, never with a box.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from ..._status import Status, extent, in_short, names_at
from ..shared.advice import CLIPPED, Budget, advice, hidden_in_noise
from ..shared.column_codes import told_of_single
from .moments import FEWEST, Moments
from .outside import beyond_in_words

_HIDDEN = 0.5  # part of its spread that a standard error of a mean is, at most
_LOST = 0.3  # part of a standard deviation that its standard error is, at most
_BEYOND, _CHANCE = 0.02, 1e-4  # of the rows, beyond bounds; that noise alone is taken for more


def codes_of_means(moments: Moments) -> np.ndarray:
    """A code for the mean of each column."""
    known = moments.error <= _HIDDEN * moments.least
    return _told_before(moments, np.where(known, "ok", "unknown").astype("<U8"))


def codes_of_scales(moments: Moments) -> np.ndarray:
    """A code for the mean and the standard deviation of each column."""
    lost = moments.spread_error > _LOST * moments.spread
    return _told_before(moments, np.where(lost, "scale", "ok").astype("<U8"))


def _told_before(moments: Moments, codes: np.ndarray) -> np.ndarray:
    """The limits of both: where noise hides the spread, it is compared with the most there is."""
    codes[(moments.error > _HIDDEN * moments.spread) | _lost(moments)] = "noise"
    codes[moments.public & (moments.low == moments.high)] = "ok"  # public values
    if not moments.size > FEWEST * moments.size_sd:
        codes[:] = "noise"
    codes[moments.single & (moments.spread_error > _LOST / 2 * moments.spread)] = "constant"
    codes[beyond_bounds(moments) > 0] = "bound"
    return codes


def _lost(moments: Moments) -> np.ndarray:
    """Columns without a spread: all that is known is a range that their rows are in, if that."""
    unseen = (moments.least == 0) | (moments.spread_error > _LOST * moments.spread)
    return ~moments.known | (~moments.told & unseen)


def beyond_bounds(moments: Moments) -> np.ndarray:
    """Shares of the rows (d,) that are beyond public ends, where these are many."""
    # A share is the sum of those on both sides; no column of many is told by chance.
    surely = -math.sqrt(2) * float(ndtri(_CHANCE / len(moments.beyond)))
    many = moments.beyond > max(_BEYOND, surely * moments.beyond_sd)
    return np.where(many, moments.beyond, 0.0)


def status_of(
    moments: Moments, codes: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The status: what there is to say of columns, by name."""
    names = names or range(len(codes))
    status = _of_noise(moments, codes == "noise", names, budget)
    words = (
        "the spread of these columns is mostly noise, and their errors may be large relative to it"
    )
    action = "use more rows, a larger epsilon or narrower bounds"
    status = status.add_columns("hidden_spreads", words, names, codes == "unknown", action, "part")
    status = told_beyond(status, moments, codes == "bound", names)
    if (lost := codes == "scale").any():
        part = float((moments.spread_error[lost] / moments.spread[lost]).max()) / _LOST
        words = "the standard deviations of these columns are mostly noise"
        action = advice(part, budget, moments.size)
        status = status.add_columns("noisy_columns", words, names, lost, action, "part")
    status = status or moments.weights.told(status)
    return told_of_ranges(status or told_of_single(status, codes, names), moments, names)


def _of_noise(
    moments: Moments, lost: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The columns of which noise hides the means."""
    if not lost.any():
        return Status()
    unknown = lost & _lost(moments)
    if unknown.any():
        words = "no spread found in these columns"
        action = "use more rows, a larger epsilon or bounds"
        return Status().add_columns("no_spread", words, names, unknown, action, "part")
    where = () if lost.all() else names_at(names, lost)
    what = f"these columns: {in_short(where)}" if where else "the rows"
    # Where noise hides the spread, the most that it may be is what an error is compared with.
    part = moments.error[lost] / np.maximum(moments.spread[lost], 1e-300)
    worst, least = max(float(part.max()), _HIDDEN * (1 + 1e-9)), moments.size - 2 * moments.size_sd
    return hidden_in_noise(what, worst, 1.0, budget, moments.size, least, columns=where)


def told_beyond(
    status: Status, moments: Moments, cut: np.ndarray, names: Sequence[object]
) -> Status:
    """The status, with columns that have many rows beyond the bounds."""
    if not cut.any():
        return status
    severity = extent(int(cut.sum()), len(cut))
    return status.add(beyond_in_words(moments.beyond, cut, names, severity))


def told_of_ranges(status: Status, moments: Moments, names: Sequence[object]) -> Status:
    """The status, with a note on columns whose bounds gave way to ranges that were found: no look
    shows a few rows outside of these."""
    found = ~moments.public & np.isfinite(moments.ends.outer).all(axis=0)
    action = "use narrower bounds to avoid this"
    return status.add_columns("outside_bound", CLIPPED, names, found, action, "note")
