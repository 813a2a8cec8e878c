"""What users may give: parameters and tables, with typed errors that quote no data.

An error names the parameter and says what it may be. Of the data it tells nothing but what is
public (the number of columns, the type): no value, no number of rows, no label. Scikit-learn's own
messages tell more, so they are reworded here, and an unknown one is replaced as a whole.
"""

import re
from collections.abc import Collection, Mapping

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from ._aggregate.kmeans.candidates import CRITERIA, MOST_CHOICES, Candidates
from ._aggregate.shared.single_rows import narrowed, row_guard
from ._privacy._budget import PrivacyBudget
from ._privacy._checks import check_choice, is_integer, is_real

__all__ = [
    "MOST_CLUSTERS",
    "MOST_FEATURES",
    "PROJECT",
    "budget_of",
    "check_integer",
    "check_number_of_clusters",
    "check_real",
    "check_sklearn_seed",
    "check_steps",
    "check_table",
    "check_weights",
    "entries",
    "names_of",
    "validate_quietly",
    "weighted_mean",
]

MOST_CLUSTERS = 2**14
"""More of anything that a table of centers has a row for is a slip of the pen."""

MOST_FEATURES = 2**24
"""The same of columns."""

# A smaller budget is a slip too: the answer would be nothing but noise.
_LEAST_RHO = 1e-8  # shares of a few per cent of it still have noise below 2**50 grid steps


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
    if not isinstance(value, tuple | list):
        raise TypeError(words)
    if len(value) != 2 or not all(is_integer(each) for each in value):
        raise ValueError(words)
    least, most = int(value[0]), int(value[1])
    if not 1 <= least <= most <= MOST_CHOICES:
        raise ValueError(words)
    return least if least == most else Candidates(least, most, criterion)


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


PROJECT = (
    "Project it on some dozens of features first, by SparseRandomProjection(dense_output=True), or "
    "make few of them by HashingVectorizer(n_features=...): neither depends on the data, so both "
    "are free of privacy cost. A dense copy with all features would have noise in each of them."
)
"""What to do with sparse or very many features, for errors."""

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
    "Expected 2D array": "Expected 2D array: {} must have shape (n_samples, n_features). "
    "Reshape your data.",
    "could not convert": "{} must be numeric: it holds what is no number.",
    "float() argument": "{} must be numeric: its argument must be a string or a real number.",
    "Sparse data was passed": "{} is sparse, and this estimator needs dense rows. " + PROJECT,
    "Found array with 0 feature": "{}: Found array with 0 feature(s) (shape=(, 0)) while a minimum "
    "of 1 is required.",
    "Expected unique column names": "{}: the names of columns must differ.",
}


@row_guard
def validate_quietly(estimator, X, **options):
    """Scikit-learn's `validate_data`, with errors that do not quote the data as some of its do.

    Only messages known to be harmless pass as they are. It is under the guard because its test of
    finiteness sums all entries: whether that overflows is something about the data.

    Parameters
    ----------
    estimator : BaseDPEstimator
    X : object
        What the user has given for data.
    **options
        Of :func:`sklearn.utils.validation.validate_data`.
    """
    valid = _quiet("X", validate_data, estimator, X, **options)
    # What is no array by itself may state another shape than its values have. Plans believe it.
    if valid.shape[1] != estimator.n_features_in_:
        raise ValueError("X must have as many columns as its shape says.")
    return valid


@row_guard
def check_table(X, name, **options):
    """Scikit-learn's `check_array` of an argument, with the same care.

    Parameters
    ----------
    X : object
    name : str
        Of the argument, for errors.
    **options
        Of :func:`sklearn.utils.check_array`.

    Returns
    -------
    X : ndarray
    """
    return _quiet(name, check_array, X, input_name=name, **options)


def check_weights(sample_weight, n_rows):
    """Weights of rows, or an error that names them and quotes nothing.

    Parameters
    ----------
    sample_weight : float or array-like of shape (n_rows,)
    n_rows : int

    Returns
    -------
    weights : ndarray of float64 of shape (n_rows,), finite and at least 0
    """
    options = {"ensure_2d": False, "ensure_min_samples": 0}
    try:
        one = is_real(sample_weight)
        weights = np.full(n_rows, float(sample_weight)) if one else sample_weight
        if getattr(getattr(weights, "dtype", None), "kind", "") in ("M", "m"):
            raise TypeError("dates are no weights")
        weights = np.asarray(check_array(weights, dtype=np.float64, **options))
    except (TypeError, ValueError, OverflowError):
        weights = None  # the error of scikit-learn may quote values
    if weights is None or weights.shape != (n_rows,) or (weights < 0).any():
        raise ValueError(
            "sample_weight must be a number or an array of shape (n_samples,), finite and not "
            "negative."
        )
    return weights


def weighted_mean(values, sample_weight):
    """Mean of a number for each row by the weights that the caller of a score gives.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows,)
    sample_weight : float, array-like of shape (n_rows,) or None
        As they are: nothing is clipped.

    Returns
    -------
    mean : float
        Finite; 0 where no row has a weight.

    Examples
    --------
    >>> weighted_mean(np.array([1.0, 4.0]), [2, 1]), weighted_mean(np.array([1.0, 4.0]), 0)
    (2.0, 0.0)
    """
    if sample_weight is None:
        return float(narrowed(values.mean(), np.float64))
    weights = check_weights(sample_weight, len(values))
    weights = weights / max(weights.max(initial=0.0), 1e-300)  # so that their sum does not overflow
    return float(narrowed((weights / max(weights.sum(), 1e-300) * values).sum(), np.float64))


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


def entries(values):
    """The entries of a target, each as it was given, in an array.

    An array that is made of a list has one type for all: a text among numbers turns all of them
    into texts. So one row would change the labels of all others.

    Parameters
    ----------
    values : array-like

    Returns
    -------
    entries : ndarray
        Of objects where a list or a tuple was given; else the array that was given.

    Examples
    --------
    >>> entries([0, 1, "x"])
    array([0, 1, 'x'], dtype=object)
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # at once, lists in a list would make a matrix
        array[i] = value
    return array


def _quiet(name, check, *arguments, **options):
    """What a check returns, or its error without what it may say of the data in `name`."""
    try:
        return check(*arguments, **options)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_data(str(error), name)
    except MemoryError:
        raise
    except Exception as error:  # of the code that `X` brings along, such as that of a database
        kind, message = ValueError, f"{name} could not be read ({type(error).__name__})."
    # What the check has raised may hold values of the data, and so may the frames of its traceback.
    # Outside the handler: an error raised inside it would carry the original one along.
    raise kind(message)


def _without_data(message, name):
    """A message of scikit-learn as it is, in our words, or one that fits all."""
    for start, reworded in _REWORDED.items():
        if message.startswith(start):
            return reworded.format(name)
    if message.startswith(_HARMLESS):
        return message if re.search(rf"\b{name}\b", message) else f"{name}: {message}"
    return f"{name} must be a dense, finite, numeric array of shape (n_samples, n_features)."


def budget_of(epsilon, delta, rho):
    """The budget that the parameters ask for: epsilon=1 when neither is set.

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
    if rho is not None and epsilon is not None:
        raise ValueError("epsilon and rho: set at most one of them.")
    if rho is None:
        budget = PrivacyBudget(epsilon=1.0 if epsilon is None else epsilon, delta=delta)
    else:
        budget = PrivacyBudget(rho=rho, delta=delta)
    # Gaussian noise has no guarantee at delta = 0, whatever its scale; zCDP alone would have one.
    if budget.delta <= 0:
        raise ValueError("delta must be greater than 0: the noise is Gaussian.")
    if budget.to_rho() < _LEAST_RHO:
        name = "epsilon" if rho is None else "rho"
        raise ValueError(f"{name} is too small: the noise would not fit the integer grid.")
    return budget
