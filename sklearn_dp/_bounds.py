"""The public region, or the ends of columns, of the `bounds` parameter; its errors name `bounds`.

No row comes here: a mistake clips rows to another region than the one that was meant, no more.
"""

from typing import Any

import numpy as np

from ._costs.checks import is_real, real_array
from ._privacy._domain import LARGEST, SMALLEST, Domain, reach


def domain_of(bounds: Any, n_features: int) -> Any:
    """The region of a `bounds` parameter: None, a radius, or a box of scalars or (n_features,)."""
    if bounds is None:
        return None
    if is_real(bounds):
        return _ball(bounds, n_features)
    pair = isinstance(bounds, (tuple, list)) or (isinstance(bounds, np.ndarray) and bounds.ndim)
    if pair and _by_columns(bounds, n_features):
        raise ValueError(
            "bounds look like a pair (low, high) for each column; give all lower ends, then "
            "all upper ends: (lows, highs). Leave out a column that is known to be constant."
        )
    if not pair or len(bounds) != 2:
        raise TypeError(
            "bounds must be None, a positive radius, a pair (low, high) of numbers or of arrays "
            'with one number for each column, or a dict such as {"age": (0, 120)} with a pair for '
            "each column of a data frame."
        )
    low, high = bounds
    return _box(low, high, n_features)


def _ball(radius: Any, n_features: int) -> Domain:
    """A ball about the origin whose squared radius is a normal float."""
    try:
        radius = float(radius)
    except OverflowError:  # an integer beyond the floats
        radius = np.inf
    if not 0 < radius < np.inf:
        raise ValueError("bounds: the radius must be positive and finite.")
    if not SMALLEST <= radius <= LARGEST:
        raise ValueError(
            f"bounds: the radius must be at least {SMALLEST:g} and at most {LARGEST:g}."
        )
    return Domain.about_origin(radius, n_features)


def _box(low: Any, high: Any, n_features: int) -> Domain:
    """A box; sides of length zero are allowed, for columns that are known."""
    try:
        low, high = _sides((low, high), n_features)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"bounds: low and high must be numbers or arrays of {n_features} numbers."
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("bounds: low and high must be finite.")
    if (low > high).any():
        several = " Give all lower ends, then all upper ends: (lows, highs)." * (n_features > 1)
        raise ValueError(f"bounds: low must not exceed high.{several}")
    if np.abs([low, high]).max(initial=0.0) > LARGEST or not reach(low, high) <= LARGEST:
        raise ValueError(f"bounds: no entry or width may exceed {LARGEST:g}.")
    if reach(low, high) < SMALLEST:
        raise ValueError(f"bounds: low and high must differ by at least {SMALLEST:g}.")
    return Domain.within(low, high)


def column_ends(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends (d,) of columns that are clipped one by one: a box, of which sides may be missing
    (infinite), the largest magnitude of all values, or None for no ends. Errors name `bounds`.

    >>> [end.tolist() for end in column_ends(([0, 0], [120, np.inf]), 2)]
    [[0.0, 0.0], [120.0, inf]]
    """
    nowhere = np.full(n_features, np.inf)
    if bounds is None:
        return -nowhere, nowhere
    missing = None if is_real(bounds) else _missing(bounds, n_features)
    if missing is None or not missing.any():
        domain = domain_of(bounds, n_features)
        if domain.low is None:
            return -np.full(n_features, domain.radius), np.full(n_features, domain.radius)
        return domain.low, domain.high
    # What is there is checked as a box is, and put back between what is missing.
    low, high = _sides(bounds, n_features)
    there = ~missing
    closed = np.where(there, [low, high], np.where(there[::-1], [high, low], 0.0))
    if (missing[0] & (low > 0)).any() or (missing[1] & (high < 0)).any():
        raise ValueError("bounds: low must not exceed high: only low may be -inf, only high inf.")
    if (there[0] & there[1]).any():
        both = (there[0] & there[1]).nonzero()[0]
        domain_of((low[both], high[both]), len(both))
    if not np.abs(closed).max(initial=0.0) <= LARGEST:
        raise ValueError(f"bounds: no entry or width may exceed {LARGEST:g}.")
    return low, high


def _missing(bounds: Any, n_features: int) -> np.ndarray | None:
    """Mask of the infinite ends (2, d) of a pair; None if it is not a pair of numbers."""
    try:
        sides = _sides(bounds, n_features)
    except (OverflowError, TypeError, ValueError):
        return None
    return np.isinf(sides) if len(sides) == 2 else None


def _sides(bounds: Any, n_features: int) -> list[np.ndarray]:
    return [np.array(np.broadcast_to(real_array(side), (n_features,))) for side in bounds]


def _by_columns(bounds: Any, n_features: int) -> bool:
    """True if bounds are a pair (low, high) for each column, in place of all lows, then all highs.
    Two pairs that may be either are one of each column if only that gives both sides a length."""
    try:
        ends = real_array(bounds)
    except (OverflowError, TypeError, ValueError):
        return False
    if ends.shape != (n_features, 2):
        return False
    return n_features != 2 or bool((ends[:, 0] < ends[:, 1]).all() and (ends[0] == ends[1]).any())
