"""What users may give for a parameter, with typed errors that name it and say what it may be.

Tables, weights and targets are in :mod:`sklearn_dp._tables`.
"""

from collections.abc import Collection, Mapping

import numpy as np

from ._aggregate.kmeans.candidates import CRITERIA, MOST_CHOICES, Candidates
from ._privacy._budget import PrivacyBudget
from ._privacy._checks import check_choice, is_integer, is_real

__all__ = [
    "DEFAULT_EPSILON",
    "MOST_CLUSTERS",
    "MOST_FEATURES",
    "SQUARABLE",
    "budget_of",
    "check_integer",
    "check_number_of_clusters",
    "check_pair",
    "check_real",
    "check_sklearn_seed",
    "check_steps",
    "names_of",
    "shares_of_one",
]

MOST_CLUSTERS = 2**14
"""More of anything that a table of centers has a row for is a slip of the pen."""

MOST_FEATURES = 2**24
"""The same of columns."""

DEFAULT_EPSILON = 1.0
"""That of all signatures; a search has to know it to see that a step was left alone."""

SQUARABLE = {"low": 1e-140, "high": 1e140}
"""Limits of a length whose square, in the steps of a grid, is a normal float."""

# Less is a slip too: the answer would be nothing but noise.
_LEAST_RHO = 1e-8  # shares of a few per cent of it still have noise below 2**50 grid steps
_LEAST_SHARE = 1e-9  # of any budget, for one step


def check_integer(value, name, *, low=None, high=None):
    """An integer parameter within public limits, or an error that names it.

    Parameters
    ----------
    value : object
        What the user has set. A bool is no integer, and neither is 3.0.
    name : str
        Of the parameter.
    low, high : int, optional
        Both are allowed.

    Returns
    -------
    value : int
        A Python integer also for one of NumPy, whose arithmetic could wrap.

    Examples
    --------
    >>> check_integer(np.int8(7), "n_clusters", low=1)
    7
    >>> check_integer(0, "n_clusters", low=1, high=9)
    Traceback (most recent call last):
      ...
    ValueError: n_clusters must be at least 1 and at most 9.
    """
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer.")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = " and ".join(
            text
            for text in (
                f"at least {low}" if low is not None else "",
                f"at most {high}" if high is not None else "",
            )
            if text
        )
        raise ValueError(f"{name} must be {limits}.")
    return int(value)


def check_number_of_clusters(value, name, criterion="auto", *, high=MOST_CLUSTERS):
    """A number of clusters, or the range that one is to be chosen from; an error names it.

    Parameters
    ----------
    value : object
        What the user has set: an integer, "auto", or a pair of the least and the largest number.
    name : str
        Of the parameter.
    criterion : object
        What a number is to be chosen by.
    high : int
        The largest number that may be given.

    Returns
    -------
    n_clusters : int or Candidates

    Examples
    --------
    >>> check_number_of_clusters("auto", "n_clusters")
    Candidates(low=1, high=30, criterion='auto')
    >>> check_number_of_clusters((3, 2), "n_clusters")
    Traceback (most recent call last):
      ...
    ValueError: n_clusters must be an integer, 'auto' or a pair 1 <= low <= high <= 200.
    """
    check_choice("criterion", criterion, CRITERIA)
    if is_integer(value):
        return check_integer(value, name, low=1, high=high)
    words = f"{name} must be an integer, 'auto' or a pair 1 <= low <= high <= {MOST_CHOICES}."
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(words)
        return Candidates(criterion=criterion)
    least, most = check_pair(value, MOST_CHOICES, words)
    return least if least == most else Candidates(least, most, criterion)


def check_pair(value, high, words):
    """The least and the largest of some numbers, integers from 1 to `high`, or an error.

    Parameters
    ----------
    value : object
        What the user has set: a tuple or a list.
    high : int
    words : str
        What the error says.

    Returns
    -------
    least, most : int

    Examples
    --------
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


def check_real(value, name, *, low=0.0, high=np.inf):
    """A finite number in the open interval (low, high), or an error that names it.

    Parameters
    ----------
    value : object
        What the user has set; NaN lies in no interval.
    name : str
        Of the parameter.
    low, high : float
        Neither is allowed.

    Returns
    -------
    value : float

    Examples
    --------
    >>> check_real(1, "diameter"), check_real(0.5, "fraction", high=1)
    (1.0, 0.5)
    """
    if not is_real(value):
        raise TypeError(f"{name} must be a number.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the floats
        number = np.inf
    if not low < number < high:
        raise ValueError(f"{name} must be greater than {low:g} and less than {high:g}.")
    return number


def check_sklearn_seed(random_state, name="random_state"):
    """A `random_state` for randomness of scikit-learn, which draws no noise."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return random_state
    if not is_integer(random_state):
        raise TypeError(f"{name} must be None, an int or a RandomState.")
    return check_integer(random_state, name, low=0, high=2**32 - 1)


def shares_of_one(numbers, name):
    """Positive numbers in proportion, with a sum of one: what each step gets of a budget.

    Parameters
    ----------
    numbers : mapping of str to float
        As the user gave them, by the names of the steps.
    name : str
        Of the parameter.

    Returns
    -------
    shares : dict of str to float

    Raises
    ------
    TypeError, ValueError
        For what is no positive number, and where a step would get next to nothing.

    Examples
    --------
    >>> shares_of_one({"reduce": 1, "cluster": 3}, "shares")
    {'reduce': 0.25, 'cluster': 0.75}
    """
    numbers = {step: check_real(number, name) for step, number in numbers.items()}
    most = max(numbers.values())  # numbers near the largest float would add up to infinity
    total = sum(number / most for number in numbers.values())
    shares = {step: number / most / total for step, number in numbers.items()}
    if min(shares.values()) < _LEAST_SHARE:
        raise ValueError(f"{name} must give each step at least {_LEAST_SHARE:g} of the whole.")
    return shares


def names_of(names, parameter):
    """Names of steps as a tuple, or an error; a text is one name and no collection of names.

    Parameters
    ----------
    names : collection of str
    parameter : str
        That holds them.

    Returns
    -------
    names : tuple of str
    """
    several = isinstance(names, Collection) and not isinstance(names, str | bytes | Mapping)
    found = tuple(names) if several and getattr(names, "ndim", 1) == 1 else (None,)
    if not all(isinstance(name, str) for name in found):
        raise TypeError(f"{parameter} must be a collection of names of steps.")
    return found


def check_steps(steps):
    """Raise unless these are steps of a composition: named, with names of their own, instances.

    Parameters
    ----------
    steps : list of tuple
        Of a ``Pipeline``, or the transformers of a ``FeatureUnion`` or ``ColumnTransformer``.
    """
    if not isinstance(steps, list | tuple) or not all(
        isinstance(step, list | tuple) and len(step) > 1 and isinstance(step[0], str)
        for step in steps
    ):
        raise TypeError("estimator: steps must be tuples of a name and an estimator.")
    names = [name for name, *_ in steps]
    if len(set(names)) < len(names) or any("__" in name for name in names):
        raise ValueError("estimator: names of steps must differ, and must not hold '__'.")
    for name, step, *_ in steps:
        if isinstance(step, type):
            raise TypeError(f"estimator: step {name!r} is a class; give an instance.")


def budget_of(epsilon, delta, rho):
    """The budget that the parameters ask for: that of `rho`, where it is set.

    `epsilon` shows its default, 1.0, in signatures; beside `rho` that default, or None, means that
    it was left out, and any other number is a contradiction.

    Parameters
    ----------
    epsilon, delta, rho : object
        What the user has set.

    Returns
    -------
    budget : PrivacyBudget
        With a positive delta; of epsilon and rho one is set.

    Raises
    ------
    ValueError, TypeError
        With the name of the parameter.
    """
    if rho is None:
        budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    elif epsilon is None or (is_real(epsilon) and epsilon == DEFAULT_EPSILON):
        budget = PrivacyBudget(rho=rho, delta=delta)
    else:
        raise ValueError("epsilon and rho: set only one of them.")
    # Gaussian noise has no guarantee at delta = 0, whatever its scale; zCDP alone would have one.
    if budget.delta <= 0:
        raise ValueError("delta must be greater than 0: the noise is Gaussian.")
    if budget.to_rho() < _LEAST_RHO:
        name = "epsilon" if rho is None else "rho"
        raise ValueError(f"{name} is too small: the noise would not fit the integer grid.")
    return budget
