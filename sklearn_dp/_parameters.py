"""Parameters of estimators: their checks, `bounds`, and values that name columns.

Errors have types, name the parameter and say what it may be. `bounds` are a public region, or the
ends of columns; a dict that names columns becomes values in the order of the names.

No row comes here: a mistake clips rows to another region than the one that was meant, no more.
Tables, targets and weights are checked in :mod:`sklearn_dp._door`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ._aggregate.one_cluster import MOST_POINTS
from ._columns import places_of
from ._costs.budget import PrivacyBudget
from ._costs.numbers import check_delta, check_number, is_integer, is_real, real_array
from ._door import frame_of
from ._privacy._grid import LARGEST, SMALLEST, Domain, reach

# More centers or columns are rejected as typos.
MOST_CLUSTERS = 2**14
MOST_FEATURES = 2**24

DEFAULT_EPSILON = 1.0
"""That of all signatures; a search has to know it to see that a step was left alone."""

SQUARABLE = {"low": 1e-140, "high": 1e140}
"""Limits of a length whose square, in the steps of a grid, is a normal float."""

# Less is rejected, too: the answer would be nothing but noise.
_LEAST_RHO = 1e-8  # shares of a few percent of it still have noise below 2**50 grid steps
_LEAST_SHARE = 1e-9  # of any budget, for one step


# -- checks ----------------------------------------------------------------------------------------


def check_integer(value: Any, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """An integer parameter within public limits, which are allowed, or an error that names it."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer.")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = ("at least", low), ("at most", high)
        words = " and ".join(f"{side} {limit}" for side, limit in limits if limit is not None)
        raise ValueError(f"{name} must be {words}.")
    return int(value)


def check_auto(value: Any, name: str, *, low: int, high: int) -> None:
    """Refuse anything but "auto" and an integer within public limits."""
    if not isinstance(value, str):
        check_integer(value, name, low=low, high=high)
    elif value != "auto":
        raise ValueError(f"{name} must be 'auto' or an integer.")


def check_options(kinds: Mapping[str, type], parameter: str, choice: Any, options: Any) -> None:
    """Refuse options that are not those of the choice of a parameter, and bad values in them."""
    if options is None:
        return
    if choice not in kinds:
        raise ValueError(
            f"options must be None for {parameter}={choice!r}; only these have options: "
            f"{', '.join(kinds)}."
        )
    kind: Any = kinds[choice]
    if not isinstance(options, kind):
        raise TypeError(f"options must be a {kind.__name__} for {parameter}={choice!r}.")
    options.check()


def check_pair(value: Any, high: int, words: str) -> tuple[int, int]:
    """The least and the largest of some numbers, integers from 1 to `high`, or an error in `words`.

    >>> check_pair([2, 5], 9, "n_components must be a pair.")
    (2, 5)
    """
    if not isinstance(value, tuple | list):
        raise TypeError(words)
    if len(value) != 2 or not all(is_integer(each) for each in value):
        raise ValueError(words)
    least, most = int(value[0]), int(value[1])
    if not 1 <= least <= most <= high:
        raise ValueError(words)
    return least, most


def check_real(value: Any, name: str, *, low: float = 0.0, high: float = np.inf) -> float:
    """A finite number in the open interval (low, high), or an error that names it."""
    if not is_real(value):
        raise TypeError(f"{name} must be a number.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the floats
        number = np.inf
    if not low < number < high:
        raise ValueError(f"{name} must be greater than {low:g} and less than {high:g}.")
    return number


def check_sklearn_seed(random_state: Any, name: str = "random_state") -> Any:
    """A `random_state` for randomness of scikit-learn, which draws no noise."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return random_state
    if not is_integer(random_state):
        raise TypeError(f"{name} must be None, an int or a RandomState.")
    return check_integer(random_state, name, low=0, high=2**32 - 1)


def shares_of_one(numbers: Any, name: str) -> dict[str, float]:
    """Positive numbers in proportion, with a sum of one: what each step gets of a budget."""
    numbers = {step: check_real(number, name) for step, number in numbers.items()}
    most = max(numbers.values())  # numbers near the largest float would add up to infinity
    total = sum(number / most for number in numbers.values())
    shares = {step: number / most / total for step, number in numbers.items()}
    if min(shares.values()) < _LEAST_SHARE:
        raise ValueError(f"{name} must give each step at least {_LEAST_SHARE:g} of the whole.")
    return shares


def names_of(names: Any, parameter: str) -> tuple[str, ...]:
    """Names of steps as a tuple, or an error; a text is not a collection of names."""
    several = isinstance(names, Collection) and not isinstance(names, str | bytes | Mapping)
    entries = tuple(names) if several and getattr(names, "ndim", 1) == 1 else (None,)
    if not all(isinstance(name, str) for name in entries):
        raise TypeError(f"{parameter} must be a collection of step names.")
    return entries


def check_steps(steps: list[tuple[Any, ...]]) -> None:
    """Raise unless these are steps of a composition: named, with names of their own, instances."""
    if not isinstance(steps, list | tuple) or not all(
        isinstance(step, list | tuple) and len(step) > 1 and isinstance(step[0], str)
        for step in steps
    ):
        raise TypeError("estimator: steps must be tuples of a name and an estimator.")
    names = [name for name, *_ in steps]
    if len(set(names)) < len(names) or any("__" in name for name in names):
        raise ValueError("estimator: names of steps must differ, and must not contain '__'.")
    for name, step, *_ in steps:
        if isinstance(step, type):
            raise TypeError(f"estimator: step {name!r} is a class; give an instance.")


def check_n_points(value: Any) -> int | float:
    """A count of at least one below the public cap, or a fraction."""
    if not is_real(value):
        raise TypeError("n_points must be an integer or a fraction.")
    if is_integer(value):
        return check_integer(value, "n_points", low=1, high=MOST_POINTS)
    fraction = check_number("n_points", value)
    if not 0 < fraction < 1:
        raise ValueError("n_points must be a positive integer, or a fraction between 0 and 1.")
    return fraction


def budget_of(epsilon: Any, delta: Any, rho: Any) -> PrivacyBudget:
    """The budget of the parameters: that of `rho`, where it is set and `epsilon` is not."""
    if is_real(delta) and delta != 0:
        check_delta("delta", delta)  # whose limits are those without zero
    if rho is None and epsilon is None:
        raise ValueError("epsilon and rho: set one of them; the default is epsilon=1.0.")
    if rho is None:
        budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    elif epsilon is None or (is_real(epsilon) and epsilon == DEFAULT_EPSILON):
        budget = PrivacyBudget(rho=rho, delta=delta)
    else:
        raise ValueError("epsilon and rho: set only one of them.")
    # Gaussian noise has no guarantee at delta = 0, whatever its scale; zCDP alone would have one.
    if budget.delta <= 0:
        raise ValueError(
            "delta must be greater than 0, because the noise is Gaussian. Use delta=1e-6, the "
            "default."
        )
    check_not_too_small(budget, f"{'epsilon' if rho is None else 'rho'} is too small")
    return budget


def check_not_too_small(budget: PrivacyBudget, reason: str) -> None:
    """Raise unless the noise of all releases that a budget pays for fits the grid."""
    if budget.to_rho() < _LEAST_RHO:
        raise ValueError(f"{reason}: the noise would not fit the integer grid.")


# -- bounds ----------------------------------------------------------------------------------------


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


# -- values by names of columns --------------------------------------------------------------------


def by_name(values: Any, names: Sequence[str] | None, name: str) -> Any:
    """Put values for columns, given in `name`, in the order of the columns' names.

    The columns of a data frame, or the entries of a Series, have texts for labels; or those of a
    pair, or of a dict of pairs, which becomes a pair. Other names, or none of `X` (`names` is
    None), are an error. Without labels, positions decide."""
    if isinstance(values, tuple | list) and len(values) == 2:
        return tuple(by_name(side, names, name) for side in values)
    frame = frame_of(values)
    labels, take = _labels(values) if frame is None else (frame.labels, frame.take)
    if names is None:
        if labels and all(isinstance(label, str) for label in labels):
            raise ValueError(
                f"{name} names columns, and X has no names to tell which is which. Give X as a "
                f"data frame, or {name} as an array in the order of its columns."
            )
        return values
    places = places_of(labels, names, name)
    if labels and isinstance(values, Mapping):
        places = list(range(len(labels))) if places is None else places
    return values if places is None else take(places)


def in_one_order(values: Any, name: str) -> Any:
    """Values in the order of the names of the first of a pair that has some, for plans."""
    names = names_in(values)
    return values if names is None else by_name(values, names, name)


def names_in(values: Any) -> list[str] | None:
    """The names of columns in what is given for columns, or in the first of a pair that has any."""
    for side in values if isinstance(values, tuple | list) and len(values) == 2 else (values,):
        frame = frame_of(side)
        labels = _labels(side)[0] if frame is None else frame.labels
        if labels and all(isinstance(label, str) for label in labels):
            return labels
    return None


def matrix_by_name(matrix: Any, names: Sequence[str] | None, name: str) -> Any:
    """A square matrix for the columns of `X`, with rows and columns in the order of their names."""
    if names is None:
        return matrix
    matrix = by_name(matrix, names, name)
    labels, take = _labels(matrix)
    places = places_of(labels, names, name)
    return matrix if places is None else take(places)


def _labels(values: Any) -> tuple[list[Any], Callable[[list[int]], Any]]:
    """Those of the entries of a Series or a dict of pairs, or of the rows of a data frame, and how
    to take some: of a dict, as a pair."""
    named = values.items() if isinstance(values, Mapping) else ()
    if named and all(
        isinstance(label, str) and isinstance(pair, tuple | list) and len(pair) == 2
        for label, pair in named
    ):
        pairs = [pair for _, pair in named]
        return list(values), lambda places: tuple(zip(*(pairs[i] for i in places), strict=True))
    if not hasattr(type(values), "iloc") or not hasattr(values, "index"):
        return [], list
    return list(values.index), lambda places: values.iloc[places]
