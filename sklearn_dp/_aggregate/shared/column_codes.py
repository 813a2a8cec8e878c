"""Short codes and a status for the coordinates of centers.

* "ok".
* "constant": one value is all that can be seen of the column, and nothing bounds what else there
  may be.
* "noise": the standard error is as large as half of the spread of the column, or the cluster holds
  no more rows than the noise of their number.
* "bound": the coordinate is at a bound, or rows are seen to lie beyond one in this column.
* "unknown": the standard error may be larger than the column, whose unit is not known, or whose
  spread noise hides.

All of it follows from released values.
"""

from collections.abc import Sequence

import numpy as np

from ..._status import Code, Message, Status, extent, in_short, names_at
from .column_means import RefinedCenters

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
