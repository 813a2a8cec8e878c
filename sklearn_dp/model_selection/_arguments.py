"""What a search may be given: the estimator, the grid, the names of steps; errors that name them.

All of it is public, and checked before the ledger is charged and before a row is read. Scikit-learn
finds most of these mistakes too, in words of its code ("object is not iterable"). Here an error
begins with the parameter.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._base import BaseDPEstimator

__all__ = ["NOT_PRIVATE", "check_final", "listed", "same", "set_values"]

MOST_CANDIDATES = 10_000
NOT_PRIVATE = (
    "estimator must be a private estimator of sklearn_dp, or a Pipeline that ends with one."
)


def listed(name: str, space: Any, make: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The candidates of a grid or of a sample, as a list; an error names the parameter.

    `space` is what the user has set. A generator is refused: it could be read only once, and a
    search lists its candidates for each plan and for each fit. ``make(space)`` gives scikit-learn's
    collection of candidates.

    >>> from sklearn.model_selection import ParameterGrid
    >>> listed("param_grid", {"n_clusters": [2, 3]}, ParameterGrid)
    [{'n_clusters': 2}, {'n_clusters': 3}]
    """
    spaces = [space] if isinstance(space, dict) else space
    if not isinstance(spaces, list | tuple) or not all(isinstance(each, dict) for each in spaces):
        raise TypeError(f"{name} must be a dict or a list of dicts.")
    if not all(isinstance(key, str) for each in spaces for key in each):
        raise TypeError(f"{name} must have names of parameters as keys.")
    try:
        found = make(space) if spaces else ()
        few = 1 <= len(found) <= MOST_CANDIDATES
        candidates = list(found) if few else []
    except Exception as error:  # also of a distribution, which is the user's code
        raise ValueError(f"{name}: {error}") from error
    if not few:
        raise ValueError(f"{name} must hold between 1 and {MOST_CANDIDATES} candidates.")
    return candidates


def check_final(estimator: Any) -> None:
    """Raise unless this is a private estimator, and an instance."""
    if isinstance(estimator, type):
        raise TypeError("estimator must be an instance, not a class.")
    if not isinstance(estimator, BaseDPEstimator):
        raise TypeError(NOT_PRIVATE)


def set_values(estimator: Any, params: dict[str, Any], grid: str) -> Any:
    """Set parameters of a candidate in place, or raise in the name of the grid."""
    try:
        return estimator.set_params(**params)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{grid}: {error}") from error


def same(one: Any, two: Any) -> bool:
    """Whether two values of parameters are the same.

    Values may be arrays, for which ``==`` gives an array, or missing ones, for which it gives no
    truth value. What cannot be compared is different.
    """
    if isinstance(one, BaseEstimator):
        return type(one) is type(two)  # their parameters are compared by their own names
    try:
        return one is two or bool(np.all(np.asarray(one == two)))
    except (TypeError, ValueError):  # a missing value; arrays of other shapes
        return False
