"""Short codes for what is seen of columns in released components: post-processing.

* "ok".
* "constant": all rows that can be seen have one value.
* "variance": the mean can be relied on, the variance and the covariances cannot: the noise hides
  them.
* "covariance": the mean and the variance can be relied on: the noise hides covariances.
* "bound": the mean, or many rows, are at a public bound, and rows may lie beyond it.
* "noise": the noise hides the mean, or nothing was found.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..._privacy._domain import Domain
from ..._status import Status, extent
from ..shared.advice import Budget
from ..shared.column_codes import told_of_single
from ..shared.narrow_bounds import cut_by_bounds, near_bounds
from .ellipsoid import DOUBTED, Ellipsoid

_CODES = ("ok", "constant", "covariance", "variance", "bound", "noise")  # from good to bad
_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_VARIANCE = math.sqrt(2) * _HIDDEN  # of the least of a variance: a square has that spread
_SURELY = 1.0  # standard deviations
_PART = 0.2  # of a column, along directions that are hidden, above which it is


def at_bound_codes(
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    errors: np.ndarray,
    spreads: np.ndarray,
) -> np.ndarray:
    """Codes, with columns at bounds; means, their errors and spreads in the units of the table."""
    near, cut = near_bounds(domain, means, errors), cut_by_bounds(domain, means, spreads)
    near = near & (codes != "noise")  # one value at a bound is a sign that rows lie beyond it
    return np.where(near | cut & ~np.isin(codes, ("constant", "noise")), "bound", codes)


def worst_codes(codes: np.ndarray, axis: int) -> np.ndarray:
    """The worst of the codes along an axis."""
    places = [np.where(codes == code, place, 0) for place, code in enumerate(_CODES)]
    return np.array(_CODES, dtype="<U8")[np.max(places, axis=0).max(axis=axis)]


def codes_of(ellipsoid: Ellipsoid, known: np.ndarray | bool = False) -> np.ndarray:
    """Those of one component, of shape (d,), bounds aside. `known`: columns whose spread has been
    seen in all rows."""
    mean, second, taken = ellipsoid.noise_errors()
    # A column is at least as wide as what the noise of its variance leaves of that.
    least = np.sqrt(np.maximum(1 - _SURELY * second, 0.0))
    # So is a variance that the noise has made too large, with an error that looks small beside it.
    hidden = second > _VARIANCE * least**2
    codes = np.where(hidden | (taken > DOUBTED), "variance", "ok").astype("<U8")
    least = np.where(known, 1.0, least)
    codes[~(mean <= _HIDDEN * least) | (ellipsoid.least_weight <= 0)] = "noise"
    codes[ellipsoid.constant & np.isfinite(mean)] = "constant"
    part = ellipsoid.hidden_in
    if part is None:  # no direction of a single column
        part = np.full(len(codes), 0.0 if (codes == "noise").any() else 1.0)
    if not ellipsoid.seen:
        codes[(part > min(_PART, float(part.max()) / 2)) & (codes == "ok")] = "variance"
    return codes


def is_lost(codes: np.ndarray) -> bool:
    """True if noise hides half of the columns (d,) that have more than one value: of two, both."""
    hidden = np.count_nonzero(np.isin(codes, ("noise", "variance")))
    number = int(np.count_nonzero(codes != "constant"))
    return bool(hidden and 2 * hidden >= max(number, min(number + 1, 3)))


def told_of_codes(status: Status, codes: np.ndarray, names: Sequence[object]) -> Status:
    """The status, with the columns (d,) that noise hides, by name."""
    for code, words in (
        ("noise", "the means of these columns are mostly noise"),
        ("variance", "noise may hide much of the variances and covariances of these columns"),
        ("covariance", "the covariances of these columns are mostly noise"),
    ):
        status = status.add_columns("noisy_columns", words, names, codes == code)
    return told_of_single(status, codes, names)


def status_of_joint(
    end: Ellipsoid, codes: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The status of a covariance, of columns that the noise hides or that have one value by name.

    Where nothing is seen of half of the columns, that is all there is to say.
    """
    hidden = np.isin(codes, ("noise", "variance", "covariance"))
    several = int(np.count_nonzero(codes != "constant"))
    if not end.seen and 2 * np.count_nonzero(hidden) >= several:
        few = f"too few {budget.units} for this budget"
        words = f"{few}: the covariances of these columns are mostly noise"
        severity = extent(int(np.count_nonzero(hidden)), several)
        action = f"use more {budget.units} or a larger epsilon"
        return Status().add_columns("few_rows", words, names, hidden, action, severity)
    return told_of_codes(end.told("the rows in some direction", budget), codes, names)
