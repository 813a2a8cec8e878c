"""Short codes for what released components say of their columns; post-processing.

* "ok".
* "constant": all rows that can be seen have one value.
* "variance": the mean can be relied on, the variance and the covariances cannot: long tails are
  clipped, or the noise hides them.
* "bound": the mean, or many rows, are at a public bound, and rows may lie beyond it.
* "noise": the noise hides the mean, or nothing was found.
"""

import math

import numpy as np

from ..._privacy._domain import Domain
from ..shared.narrow_bounds import cut_by_bounds, near_bounds
from .ellipsoid import Ellipsoid

_CODES = ("ok", "constant", "variance", "bound", "noise")  # from good to bad
_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_VARIANCE = math.sqrt(2) * _HIDDEN  # the same of a variance: a square has that spread
_SURELY = 1.0  # standard deviations
_TAILS = 0.5  # part of a variance that tails may take


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
