"""Checks of parameters, with typed errors that name them and say what they may be.

Tables and targets are in :mod:`sklearn_dp._door`, weights in :mod:`sklearn_dp._weights`.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ._aggregate.one_cluster import MOST_POINTS
from ._costs.budget import PrivacyBudget
from ._costs.checks import check_delta, check_number, is_integer, is_real

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
        raise ValueError("delta must be greater than 0: the noise is Gaussian.")
    check_not_too_small(budget, f"{'epsilon' if rho is None else 'rho'} is too small")
    return budget


def check_not_too_small(budget: PrivacyBudget, reason: str) -> None:
    """Raise unless the noise of all releases that a budget pays for fits the grid."""
    if budget.to_rho() < _LEAST_RHO:
        raise ValueError(f"{reason}: the noise would not fit the integer grid.")
