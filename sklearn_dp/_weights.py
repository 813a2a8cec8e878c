"""Weights of rows: what they may be, and what they weigh in a score."""

import inspect
from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np

from ._costs.checks import is_real
from ._door import check_vector, read_vector
from ._rows.single_rows import narrowed

NO_WEIGHT = (
    "sample_weight: every weight is zero, or less than max_weight / 2**20 and rounded to zero."
)
"""Where no row is left. A table without rows is refused too, as scikit-learn asks."""

_Method = TypeVar("_Method", bound=Callable)

_NO_WEIGHTS = (
    "sample_weight must be a number or an array of shape (n_samples,), finite and not negative."
)
_NO_LARGEST = (
    "sample_weight needs max_weight: give the largest weight that a unit may have. It must be "
    "public, for instance from the design of the survey; do not compute it from the data."
)


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of rows, a number or one for each, as finite float64 of at least 0, or an error."""
    try:
        if is_real(sample_weight):
            weights = np.full(n_rows, float(sample_weight))
        else:
            weights = read_vector(sample_weight, "sample_weight")
    except (OverflowError, TypeError, ValueError):
        weights = None
    if weights is None or weights.shape != (n_rows,):
        raise ValueError(_NO_WEIGHTS)
    if not ((weights >= 0) & (weights < np.inf)).all():  # of NaN neither is true
        raise ValueError(_NO_WEIGHTS)
    return weights


def largest_weight(sample_weight: Any, max_weight: float | None) -> float | None:
    """The weight of a whole unit, or None, before the charge: whether weights were given is public,
    and so is one number for all rows. Without `max_weight` an array is refused."""
    if sample_weight is None:
        return None
    if not is_real(sample_weight):
        check_vector(sample_weight, "sample_weight")
    if max_weight is not None:
        return max_weight
    if not is_real(sample_weight):
        raise ValueError(_NO_LARGEST)
    if 1e-100 < sample_weight < 10**100:  # type: ignore[operator]
        return float(sample_weight)
    raise ValueError("sample_weight must be positive if it is a single number for all rows.")


def with_max_weight(fit: _Method) -> _Method:
    """A `fit` that has `sample_weight` in its signature where the estimator has a `max_weight`, for
    those who look for the parameter, as scikit-learn's ``has_fit_parameter`` does."""
    return cast(_Method, _FitWithWeights(fit))


class _FitWithWeights:
    def __init__(self, fit: Callable) -> None:
        self.fit = fit
        signature = inspect.signature(fit)
        others = [p for name, p in signature.parameters.items() if name != "sample_weight"]
        # No function of its own: it would be one more frame between a warning and its cause.
        self.unweighted = update_wrapper(partial(fit), fit)
        self.unweighted.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is None:
            return self.fit
        return MethodType(self.unweighted if instance.max_weight is None else self.fit, instance)


def weighted_mean(values: np.ndarray, sample_weight: Any) -> float:
    """Mean of a number for each row by the weights that the caller of a score gives, unclipped.

    0 where no row has a weight.

    >>> weighted_mean(np.array([1.0, 4.0]), [2, 1]), weighted_mean(np.array([1.0, 4.0]), 0)
    (2.0, 0.0)
    """
    if sample_weight is None:
        return float(narrowed(values.mean(), np.float64))
    weights = check_weights(sample_weight, len(values))
    weights = weights / max(weights.max(initial=0.0), 1e-300)  # so that their sum does not overflow
    return float(narrowed((weights / max(weights.sum(), 1e-300) * values).sum(), np.float64))
