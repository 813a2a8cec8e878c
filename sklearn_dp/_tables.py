"""Tables, weights and targets that users give, with errors that quote no data.

Of the data an error tells nothing but what is public (the number of columns, the type): no value,
no number of rows, no label. Scikit-learn's own messages tell more, so they are reworded here, and
an unknown one is replaced as a whole.
"""

import inspect
import re
from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from ._aggregate.shared.single_rows import narrowed, row_guard
from ._privacy._checks import is_real

__all__ = [
    "NO_WEIGHT",
    "PROJECT",
    "check_table",
    "check_weights",
    "entries",
    "largest_weight",
    "not_numeric",
    "validate_quietly",
    "weighted_mean",
    "with_max_weight",
]

NO_WEIGHT = (
    "sample_weight: every weight is zero, or less than max_weight / 2**20, which counts as zero."
)
"""Where no row is left. A table without rows is refused too, as scikit-learn asks."""

_Method = TypeVar("_Method", bound=Callable)

_NO_LARGEST = (
    "sample_weight needs max_weight: give the largest weight that a unit may have. It must be "
    "public, for instance from the design of the survey; the largest weight in the data is not."
)

PROJECT = (
    "Project it to a few dozen features first with SparseRandomProjection(dense_output=True), or "
    "create only a few with HashingVectorizer(n_features=...): neither depends on the data, so "
    "neither costs privacy. A dense copy would have noise in every one of its features."
)
"""What to do with sparse or very many features, for errors."""

_MISSING = (
    "Drop rows with missing values, or fill in constants chosen without the data: both use one "
    "row at a time. A scikit-learn imputer learns what it fills in from the rows, so it is not "
    "private."
)
_OTHER_COLUMNS = (
    "Drop columns that are not features; pass the owner of each row as groups; encode categories "
    "with PublicEncoder, and turn dates into days since a fixed one."
)
# How messages of scikit-learn's checks begin that hold public facts only (names of parameters, the
# number of features, types). An unknown message is never passed on: it may quote data.
_HARMLESS = (
    "Input ",
    "Found array with",
    "The feature names",
    "Feature names are only supported",
    "X has ",
)
# The number of rows is private, too. Scikit-learn's checks ask for the parentheses around it.
_REWORDED = {
    "Complex data": "Complex data not supported: {} must be real.",
    "Expected 2D array": "Expected 2D array: {0} must have shape (n_samples, n_features). "
    "Reshape your data: {0}.reshape(-1, 1) if it has one feature, {0}.reshape(1, -1) if it is one "
    "row.",
    "Expected a 2-dimensional container": "Expected 2D array: {0} must have shape (n_samples, "
    "n_features). Reshape your data: {0}.to_frame() if it is a Series of one feature.",
    "could not convert": "{} must be numeric: it contains text or other objects.",
    "float() argument": "{} must be numeric: its argument must be a string or a real number.",
    "Sparse data was passed": "{} is sparse, and this estimator needs dense rows. " + PROJECT,
    "Found array with 0 feature": "{}: Found array with 0 feature(s) (shape=(, 0)) while a minimum "
    "of 1 is required.",
    "Expected unique column names": "{}: the names of columns must differ.",
}


@row_guard
def validate_quietly(estimator: Any, X: Any, **options: Any) -> Any:
    """Scikit-learn's `validate_data`, with errors that do not quote the data as some of its do.

    Only messages known to be harmless pass as they are. It is under the guard because its test of
    finiteness sums all entries: whether that overflows is something about the data.
    """
    valid = _quiet("X", validate_data, estimator, X, **options)
    # What is no array by itself may state another shape than its values have. Plans believe it.
    if valid.shape[1] != estimator.n_features_in_:
        raise ValueError("X must have the number of columns that its shape states.")
    return valid


@row_guard
def check_table(X: Any, name: str, **options: Any) -> np.ndarray:
    """Scikit-learn's `check_array` of the argument `name`, with the same care."""
    return _quiet(name, check_array, X, input_name=name, **options)


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of rows, a number or one for each, or an error that names them and quotes nothing.

    They are then float64, finite and at least 0.
    """
    options = {"ensure_2d": False, "ensure_min_samples": 0}
    try:
        one = is_real(sample_weight)
        weights = np.full(n_rows, float(sample_weight)) if one else sample_weight
        if getattr(getattr(weights, "dtype", None), "kind", "") in ("M", "m"):
            raise TypeError("dates are not weights")
        weights = np.asarray(check_array(weights, dtype=np.float64, **options))
    except MemoryError:
        raise
    except Exception:  # also of code that the weights bring along; it may quote values
        weights = None
    if weights is None or weights.shape != (n_rows,) or (weights < 0).any():
        raise ValueError(
            "sample_weight must be a number or an array of shape (n_samples,), finite and not "
            "negative."
        )
    return weights


def largest_weight(sample_weight: Any, max_weight: float | None) -> float | None:
    """What a whole unit weighs: public. None: rows have no weights.

    Asked before the charge: whether weights were given is public, and so is one number for all
    rows, but no array of them. Without `max_weight` an array is refused.
    """
    if sample_weight is None:
        return None
    if max_weight is not None:
        return max_weight
    if not is_real(sample_weight):
        raise ValueError(_NO_LARGEST)
    if 1e-100 < sample_weight < 10**100:  # type: ignore[operator]
        return float(sample_weight)
    raise ValueError("sample_weight must be positive if it is a single number for all rows.")


def with_max_weight(fit: _Method) -> _Method:
    """A `fit` that has `sample_weight` in its signature where the estimator has a `max_weight`.

    Without one it refuses weights, and those who look for the parameter, as scikit-learn's
    ``has_fit_parameter`` does, should know.
    """
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


def entries(values: Any) -> np.ndarray:
    """The entries of a target, each as it was given: an array of objects for a list or a tuple.

    An array that is made of a list has one type for all: a text among numbers turns all of them
    into texts. So one row would change the labels of all others.
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # at once, lists in a list would make a matrix
        array[i] = value
    return array


def _quiet(name: str, check: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a check returns, or its error without what it may say of the data in `name`."""
    try:
        return check(*arguments, **options)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = not_numeric(arguments[-1], name) or _without_data(str(error), name)
    except MemoryError:
        raise
    except Exception as error:  # of the code that `X` brings along, such as that of a database
        kind, message = ValueError, f"{name} could not be read ({type(error).__name__})."
    # What the check has raised may hold values of the data, and so may the frames of its traceback.
    # Outside the handler: an error raised inside it would carry the original one along.
    raise kind(message)


def not_numeric(table: Any, name: str) -> str | None:
    """The columns of a DataFrame whose types are no numbers, by name: a schema is public."""
    try:
        if not isinstance(table.shape, tuple):  # lazy frames have none, and warn of the next line
            return None
        types = dict(zip(table.columns, table.dtypes, strict=True))
        wrong = [f"{key}"[:40] for key, kind in types.items() if not _is_numeric(kind)]
    except Exception:  # no DataFrame, or one of a kind that we do not know
        return None
    if not wrong:
        return None
    others = f" (and {len(wrong) - 1} more)" * (len(wrong) > 1)
    return f"{name} must be numeric: column {wrong[0]!r}{others} is not. {_OTHER_COLUMNS}"


def _is_numeric(kind: Any) -> bool:
    """Whether a type of pandas or polars is one of numbers or truth values."""
    if hasattr(kind, "is_numeric"):
        return kind.is_numeric() or str(kind) == "Boolean"
    return kind.kind in "biuf"


def _without_data(message: str, name: str) -> str:
    """A message of scikit-learn as it is, in our words, or one that fits all."""
    for start, reworded in _REWORDED.items():
        if message.startswith(start):
            return reworded.format(name)
    if message.startswith(f"Input {name} contains NaN"):
        return f"Input {name} contains NaN." + f" {_MISSING}" * (name == "X")  # private rows
    if message.startswith(_HARMLESS):
        return message if re.search(rf"\b{name}\b", message) else f"{name}: {message}"
    return f"{name} must be a dense, finite, numeric array of shape (n_samples, n_features)."
