"""Short codes and a status for the columns of a mean, from released values.

* "ok".
* "constant": one value is all that can be seen, and nothing bounds what else there may be.
* "noise": the standard error is as large as half of the spread, or nothing was found.
* "unknown": the noise hides the spread beside those of wider columns in equal bounds.
* "bound": the mean, or many rows, are at a bound other than 0: rows may lie beyond it.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from ..._privacy._session import PrivacySession
from ..._queries.coordinates import Columns
from ..._status import Message, Status, in_short, names_at
from ..columns.answer import codes_of_means, status_of
from ..columns.moments import Moments
from ..shared.advice import Budget, hidden_in_noise
from ..shared.column_codes import told_of_single
from ..shared.narrow_bounds import cut_by_bounds, near_bounds, told_at_bounds, told_of_cuts
from .mean_facts import FriendlyMeanResult, PointFacts, PublicFacts
from .refine import Refined

_NO_SPREAD = "no spread found in these columns"
_MORE = "use more rows, a larger epsilon or bounds"
_HIDDEN = 0.5  # part of its spread that a standard error is, above which little can be seen
_WIDEST = 30.0  # spreads of a column that half a side of a box is taken to be at the most
_MOSTLY = 0.95  # of a standard error that the bias of a clip is, above which it is told
_LEFT_OUT = 0.05  # of the rows: what may be missing from the counts without a word


def of_columns(result: Moments, names: Sequence[object], budget: Budget) -> FriendlyMeanResult:
    """The result of means that were measured column by column."""
    codes = codes_of_means(result)
    return FriendlyMeanResult(
        mean=result.mean,
        radius=result.radius,
        size=result.size,
        size_sd=result.size_sd,
        diameter=math.nan,
        method="columns",
        status=status_of(result, codes, names, budget),
        std_error=result.error,
        spread=np.maximum(result.least, 1e-300),  # days are compared with what is surely there
        columns=Columns(result.mean, result.reach, True),
        codes=codes,
        bias=result.bias,
    )


def answer(
    session: PrivacySession,
    end: Refined,
    outcome: PointFacts,
    columns: Columns,
    facts: PublicFacts,
) -> FriendlyMeanResult:
    """The result, and what is to be said of its columns."""
    mean, error, spread = end.mean, end.std_error, end.spread
    codes, near = _codes(end, columns, facts)
    place = columns.to_table(mean), columns.scale * spread
    names = facts.names or range(facts.d)
    status = _in_words(codes, near & (codes == "bound"), end, facts, names, session.budget_for)
    if status.trustworthy:
        status = told_of_cuts(status, codes, columns.box, *place, names)
        codes = codes if status.trustworthy else np.full(facts.d, "bound", dtype="<U8")
    return FriendlyMeanResult(
        mean=mean,
        radius=end.clip,
        **outcome._asdict(),
        status=status,
        std_error=error,
        spread=spread,
        columns=columns,
        codes=codes,
        bias=end.bias,
        moments=(end.size, end.variance, end.variance_noise),
        hidden=bool(end.hidden > _LEFT_OUT),
    ).in_table()


def _codes(end: Refined, columns: Columns, facts: PublicFacts) -> tuple[np.ndarray, np.ndarray]:
    """A code for each column, and whether its mean is within its error of a bound."""
    # What a tail may add has nothing to do with how small a spread may be.
    error = np.sqrt(np.maximum(np.square(end.std_error) - np.square(end.bias), 0.0))
    least = _least_spread(end, facts)
    precise = (end.std_error <= _HIDDEN * end.spread) & (error <= _HIDDEN * least) & (end.least > 0)
    codes = np.where(precise, "ok", "noise").astype("<U8")
    box, near = columns.box, np.zeros(facts.d, dtype=bool)
    if box is not None and box.low is not None and box.high is not None:
        mean, spread = columns.to_table(end.mean), columns.scale * end.spread
        near = near_bounds(box, mean, columns.scale * end.std_error)
        codes[precise & (near | cut_by_bounds(box, mean, spread))] = "bound"
        codes[box.low == box.high] = "ok"
    return codes, near


def _least_spread(end: Refined, facts: PublicFacts) -> np.ndarray:
    """The spread of each column: the released one, or, where it is noise, at most that of a normal
    blob that has 99% of its pairs within the diameter. Where that is the width of the bounds, it
    tells nothing of the rows: what stands out of the noise does."""
    spread, variance, noise = end.spread, end.variance, end.variance_noise
    if facts.reach is not None and facts.diameter >= 2 * facts.reach:
        # Columns of a ball are alike.
        half, variance = facts.reach / math.sqrt(facts.d), variance.mean()
        noise /= math.sqrt(facts.d)
        least = np.sqrt(np.maximum(variance - facts.surely * noise, 0.0))
        spread = np.minimum(np.maximum(least, half / _WIDEST), half)
    return np.minimum(spread, facts.diameter / math.sqrt(2 * float(chdtri(facts.d, 0.01))))


def _in_words(
    codes: np.ndarray,
    near: np.ndarray,
    end: Refined,
    facts: PublicFacts,
    names: Sequence,
    budget: Budget,
) -> Status:
    """The status: what there is to say of columns, by name; of those `near` a bound."""
    noisy = np.flatnonzero(codes == "noise")
    if len(noisy):
        part = end.std_error[noisy] / np.maximum(end.spread[noisy], 1e-300)
        where = names_at(names, codes == "noise") if len(noisy) < facts.d else ()
        what = f"these columns: {in_short(where)}" if where else "the rows"
        if np.isinf(part).any() and end.least > 0:
            unseen = (codes == "noise") & np.isinf(end.std_error / np.maximum(end.spread, 1e-300))
            return Status().add_columns("no_spread", _NO_SPREAD, names, unseen, _MORE, "part")
        worst = max(float(part.max()), _HIDDEN * (1 + 1e-9))
        known = budget, end.size, end.least
        return hidden_in_noise(what, worst, 1.0, *known, power=1 / 3, columns=where)
    if near.any():
        return told_at_bounds(Status(), near, names)
    status = facts.weights.told(Status())
    if not status:
        status = Status(_of_tails(end, facts, codes == "constant"))
    return told_of_single(status, codes, names)


def _of_tails(end: Refined, facts: PublicFacts, single: np.ndarray) -> list[Message]:
    """Return messages about rows far out, of columns that are not `single` values."""
    if end.hidden > _LEFT_OUT:
        text = (
            f"the mean covers at most about {100 * (1 - end.hidden):.0f}% of the rows: the "
            "others are so spread out that the noise hides them, and were clipped"
        )
        return [Message("rows_left_out", text, severity="part")]
    if (end.bias > _MOSTLY * end.std_error)[~single].any():
        part = f"{100 * float(np.max((end.bias / end.spread)[~single])):.0f}% of a spread"
        text = (
            f"the noise may hide long tails, which could shift means by up to {part} inside the "
            "radius, and standard errors allow for this"
        )
        return [Message("long_tails", text, action="use medians (DPQuantiles) to avoid it")]
    return []
