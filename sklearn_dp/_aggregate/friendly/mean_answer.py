"""What a mean says of its columns: short codes, and a status in words, of released values.

* "ok".
* "constant": one value is all that can be seen, and nothing bounds what else there may be.
* "noise": the standard error is as large as half of the spread, or nothing was found.
* "bound": the mean is at a bound other than 0, or within its error of it: rows may lie beyond.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import chdtri

from ..._privacy._session import PrivacySession
from ..shared.columns import Columns, ReleasedColumns
from ..shared.remedies import hidden_in_noise, listed
from .mean_facts import Facts, FriendlyMeanResult
from .refine import BIAS, Refined

__all__ = ["answer"]

_MORE = "more rows, a larger epsilon or bounds"
_HIDDEN = 0.5  # part of its spread that a standard error is, above which little can be seen
_WIDEST = 30.0  # spreads of a column that half a side of a box is taken to be at the most
_NEAR = 2.0  # standard errors
_MOSTLY = 0.9  # of a standard error that the bias of a clip is, above which it is told
_SEEN = 3.0  # standard deviations of noise: a variance of no column
_LEFT_OUT = 0.05  # of the rows: what may be missing from the counts without a word


def answer(
    session: PrivacySession,
    end: Refined,
    size: float,
    size_sd: float,
    diameter: float,
    method: str,
    columns: Columns,
    facts: Facts,
    seen: ReleasedColumns | None = None,
) -> FriendlyMeanResult:
    """The result, and what is to be said of its columns.

    Where no spread was `seen` of a column and no box has a side for it, the one value is its mean;
    where the side has not helped to see one, there is an upper bound of it.
    """
    mean, error, spread, spread_error = end.mean, end.std_error, end.spread, end.spread_error
    codes = _codes(end, columns, facts)
    if seen is not None and np.isinf(columns.scale).any():
        columns = replace(columns, scale=seen.columns.scale)
        codes = np.where(seen.single, "constant", np.where(seen.known, codes, "noise"))
        mean = np.where(seen.unseen, 0.0, mean)
        error = np.where(seen.known, np.where(seen.single, 1.0, error), math.inf)
        spread = np.where(seen.unseen, 1.0, spread)
        spread_error = np.where(seen.unseen, math.inf, spread_error)
    elif seen is not None:
        flat = seen.unseen & (end.variance < _SEEN * end.variance_noise)
        most = np.sqrt(np.maximum(end.variance, 0.0) + _SEEN * end.variance_noise)
        codes = np.where(flat, np.where(seen.single, "constant", "noise"), codes)
        spread, spread_error = np.where(flat, most, spread), np.where(flat, most, spread_error)
    end = end._replace(std_error=error, spread=spread)
    status = _in_words(codes, end, facts, session.plan.epsilon)
    ends = error, spread, spread_error
    return FriendlyMeanResult(
        mean, end.clip, size, diameter, status, method, size_sd, *ends, columns, codes
    )


def _codes(end: Refined, columns: Columns, facts: Facts) -> np.ndarray:
    """A code for each column."""
    # What a tail may add has nothing to do with how small a spread may be.
    error = np.sqrt(np.maximum(np.square(end.std_error) - BIAS * end.excess**2 / facts.d, 0.0))
    least = _least_spread(end, columns, facts)
    seen = (end.std_error <= _HIDDEN * end.spread) & (error <= _HIDDEN * least) & (end.least > 0)
    codes = np.where(seen, "ok", "noise").astype("<U8")
    box = columns.box
    if box is not None and box.low is not None and box.high is not None:
        mean, off = columns.to_table(end.mean), _NEAR * columns.scale * end.std_error
        below, above = (mean - off <= box.low) & (box.low != 0), mean + off >= box.high
        codes[seen & (below | above & (box.high != 0))] = "bound"
        codes[box.low == box.high] = "ok"
    return codes


def _least_spread(end: Refined, columns: Columns, facts: Facts) -> np.ndarray:
    """The spread of each column: the released one, or what can be relied on where it is noise.

    At most that of a normal blob that has 99 % of its pairs within the diameter: where counts of
    distances were no use, nothing else is known. The sides of a box say next to nothing of spreads.
    """
    spread = end.spread
    if facts.reach is not None and columns.scaled:
        seen = np.sqrt(np.maximum(end.variance - end.variance_noise, 0.0))
        spread = np.minimum(np.maximum(seen, 1 / _WIDEST), 1.0)
    return np.minimum(spread, facts.diameter / math.sqrt(2 * float(chdtri(facts.d, 0.01))))


def _in_words(codes: np.ndarray, end: Refined, facts: Facts, epsilon: float) -> str:
    """The status: "ok", or what there is to say of columns, by name."""
    names = facts.names or range(facts.d)
    lost = np.flatnonzero(codes == "noise")
    if len(lost):
        part = end.std_error[lost] / np.maximum(end.spread[lost], 1e-300)
        what = "the rows" if len(lost) == facts.d else f"these columns: {listed(names, lost)}"
        if np.isinf(part).any() and end.least > 0:
            where = listed(names, lost[np.isinf(part)])
            return f"no spread of these columns found: {where}; {_MORE} would help"
        worst = max(float(part.max()), _HIDDEN * (1 + 1e-9))
        return hidden_in_noise(what, worst, 1.0, epsilon, end.size, end.least, power=1 / 3)
    if (codes == "bound").any():
        where = listed(names, np.flatnonzero(codes == "bound"))
        return (
            f"the means of these columns are at a bound, and rows may lie beyond it: {where} "
            "(wider bounds would tell)"
        )
    status = facts.weights.told("ok")
    if status == "ok" and end.hidden > _LEFT_OUT:
        status = (
            f"the mean of about {100 * (1 - end.hidden):.0f} % of the rows at most: the others are "
            "so spread out that the noise hides them, and count as if they were nearer"
        )
    bias = end.excess / math.sqrt(facts.d)
    if status == "ok" and math.sqrt(BIAS) * bias > _MOSTLY * float(np.min(end.std_error)):
        part = f"{100 * bias / float(np.max(end.spread)):.0f} % of a spread"
        status = (
            f"ok, but the noise hides long tails, which may shift means by up to {part} inside the "
            "radius: standard errors allow for that; medians (DPQuantiles) have no such error"
        )
    if status == "ok" and (codes == "constant").any():
        where = listed(names, np.flatnonzero(codes == "constant"))
        status = f"ok, but one value is all that can be seen of these columns: {where}"
    return status
