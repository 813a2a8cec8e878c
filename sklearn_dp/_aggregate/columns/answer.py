"""What is said of the moments of columns: short codes, and a status in words, of released values.

* "ok".
* "constant": nearly all rows have one value, as far as can be seen.
* "noise": the standard error of the mean is at least half of the spread, or nothing was found.
* "unknown": it may be, as noise hides the spread. This is no "ok", either.
* "scale": noise hides the standard deviation alone.
* "bound": many rows are beyond the public bounds, so that they were moved.

Errors are compared with the spread of the rows as far as it has been seen, never with a box.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtri

from ..shared.advice import Budget, advice, hidden_in_noise, listed
from .moments import FEWEST, Moments
from .outside import beyond_in_words

_HIDDEN = 0.5  # part of its spread that a standard error of a mean is, at most
_LOST = 0.2  # part of a standard deviation that its standard error is, at most
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
    """What is said of both: where noise hides the spread, it is compared with the most there is."""
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


def status_of(moments: Moments, codes: np.ndarray, names: Sequence[object], budget: Budget) -> str:
    """The status: "ok", or what there is to say of columns, by name."""
    names = names or range(len(codes))
    wrong: dict[str, Callable[..., str]] = {
        "noise": _noise,
        "unknown": _unknown,
        "bound": told_beyond,
        "scale": _scale,
    }
    told = [
        words(moments, np.flatnonzero(codes == code), names, budget)
        for code, words in wrong.items()
        if (codes == code).any()
    ]
    if told:
        return "; ".join(told)
    status = moments.weights.told("ok")
    if status != "ok":
        return status
    single = np.flatnonzero(codes == "constant")
    words = f"only a single value is visible in these columns: {listed(names, single)}"
    return f"ok, but {words}" if len(single) else "ok"


def _noise(moments: Moments, lost: np.ndarray, names: Sequence[object], budget: Budget) -> str:
    unknown = lost[_lost(moments)[lost]]
    if len(unknown):
        return (
            f"no spread found in these columns: {listed(names, unknown)}; use more rows, a "
            "larger epsilon or bounds"
        )
    what = "the rows" if len(lost) == len(moments.mean) else f"these columns: {listed(names, lost)}"
    # Where noise hides the spread, the most that it may be is what an error is compared with.
    part = moments.error[lost] / np.maximum(moments.spread[lost], 1e-300)
    worst, least = max(float(part.max()), _HIDDEN * (1 + 1e-9)), moments.size - 2 * moments.size_sd
    return hidden_in_noise(what, worst, 1.0, budget, moments.size, least)


def _unknown(moments: Moments, hidden: np.ndarray, names: Sequence[object], budget: Budget) -> str:
    return (
        "noise hides the spread of these columns, so their errors may be large compared with it: "
        f"{listed(names, hidden)}; use more rows, a larger epsilon or narrower bounds"
    )


def told_beyond(
    moments: Moments, cut: np.ndarray, names: Sequence[object], budget: object = None
) -> str:
    """Which columns have many rows beyond the bounds."""
    return beyond_in_words(moments.beyond, cut, names)


def _scale(moments: Moments, lost: np.ndarray, names: Sequence[object], budget: Budget) -> str:
    part = moments.spread_error[lost] / moments.spread[lost] / _LOST
    return f"noise hides the standard deviations of these columns: {listed(names, lost)}" + advice(
        float(part.max()), budget, moments.size
    )
