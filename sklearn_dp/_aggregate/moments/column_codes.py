"""Short codes for what released components say of their columns; post-processing.

* "ok".
* "constant": all rows that can be seen have one value.
* "variance": the mean can be relied on, the variance and the covariances cannot: long tails are
  clipped, or the noise hides them.
* "bound": the mean, or many rows, are at a public bound, and rows may lie beyond it.
* "noise": the noise hides the mean, or nothing was found.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..._privacy._domain import Domain
from ..shared.beyond import is_ok
from ..shared.bounds import near_bounds
from ..shared.remedies import listed
from .ellipsoid import Ellipsoid

__all__ = ["at_bound_codes", "codes_of", "cut_by_bounds", "told_of_cuts", "worst_codes"]

_CODES = ("ok", "constant", "variance", "bound", "noise")  # from good to bad
_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_VARIANCE = math.sqrt(2) * _HIDDEN  # the same of a variance: a square has that spread
_SURELY = 2.0  # standard deviations
_CUT = 1.25  # spreads from a bound, that the mean of a column has where many rows are at it
_TWO_VALUES = 0.8  # of the largest variance of a column in bounds
_TAILS = 0.5  # part of a variance that tails may take


def at_bound_codes(
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    errors: np.ndarray,
    spreads: np.ndarray,
) -> np.ndarray:
    """Codes, with columns at bounds; means, their errors and spreads in the units of the table."""
    near = near_bounds(domain, means, errors) | cut_by_bounds(domain, means, spreads)
    return np.where(near & ~np.isin(codes, ("constant", "noise")), "bound", codes)


def cut_by_bounds(domain: Domain | None, means: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """Whether the mean is so few spreads from a bound that many rows are at it; of shape (..., d).

    A uniform column is 1.7 of them from both of its ends, and one of which a third is at a bound
    about one. A column of the two bounds alone, whose variance is the largest that there may be,
    has them by nature, and any column may end at zero.

    >>> box = Domain.from_bounds((0.0, [60.0, 60.0, 1.0]), 3)
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
    status: str,
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    spreads: np.ndarray,
    names: Sequence,
) -> str:
    """A status that has nothing to complain of, with the columns of which many rows are at a bound.

    >>> box = Domain.from_bounds((0.0, [60.0, 90.0]), 2)
    >>> place = np.array([47.0, 30.0]), np.array([14.0, 17.0])
    >>> told_of_cuts("ok", np.array(["bound", "ok"]), box, *place, ["pay", "age"])
    'ok, but many rows are at a bound of these columns, and may lie beyond it: pay'
    """
    cut = cut_by_bounds(domain, means, spreads) & (codes == "bound")
    if not is_ok(status) or not cut.any():
        return status
    where = listed(names, np.flatnonzero(cut.reshape(-1, cut.shape[-1]).any(axis=0)))
    words = f"many rows are at a bound of these columns, and may lie beyond it: {where}"
    return f"ok, but {words}" if status == "ok" else f"{status}; {words}"


def worst_codes(codes: np.ndarray, axis: int) -> np.ndarray:
    """The worst of the codes along an axis.

    >>> worst_codes(np.array([["ok", "bound"], ["noise", "ok"]]), 0)
    array(['noise', 'bound'], dtype='<U8')
    """
    places = [np.where(codes == code, place, 0) for place, code in enumerate(_CODES)]
    return np.array(_CODES, dtype="<U8")[np.max(places, axis=0).max(axis=axis)]


def codes_of(ellipsoid: Ellipsoid) -> np.ndarray:
    """Those of one component, of shape (d,), bounds aside."""
    mean, second, taken = ellipsoid.noise_errors()
    # A column is at least as wide as what the noise of its variance leaves of that.
    least = np.sqrt(np.maximum(1 - _SURELY * second, 0.0))
    codes = np.where((second > _VARIANCE) | (taken > _TAILS), "variance", "ok").astype("<U8")
    codes[~(mean <= _HIDDEN * least) | (ellipsoid.least_weight <= 0)] = "noise"
    codes[ellipsoid.constant & np.isfinite(mean)] = "constant"
    if not ellipsoid.seen and not (codes == "noise").any():  # no direction of a single column
        codes[codes == "ok"] = "variance"
    return codes
