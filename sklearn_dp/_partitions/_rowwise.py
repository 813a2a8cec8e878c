"""Fits and methods of estimators that take tables in parts as well as tables in memory."""

import copy
import inspect
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import wraps
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._rows.single_rows import row_guard
from .._rows.table import PartSource
from .._sklearn_compat import with_callbacks
from ._dispatch import InputInParts, engine_of, engine_of_parts

# Every class below :class:`InParts` gets it: where a method of :data:`ROWS` finds a table in parts,
# it gives a collection of the kind of the table, such as a `dask.array`, without computing it;
# `score` adds up what the parts give. A copy of the model with released values goes to the parts.


ROWS = (
    "predict",
    "transform",
    "predict_proba",
    "score_samples",
    "decision_function",
    "mahalanobis",
)
"""Methods that give an answer for each row."""


class InParts:
    """Base of estimators whose methods take tables in parts as well."""

    _score_is_a_mean = True  # over rows; otherwise `score` is a sum
    _fit_parts: Callable[[InputInParts], Any]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the methods of a new class look for tables in parts."""
        super().__init_subclass__(**options)
        for names, wrapper in ((ROWS, rowwise), (("score",), _scored)):
            for name in names:
                # Those that are there for some settings only, by a descriptor, stay as they are.
                method = inspect.getattr_static(cls, name, None)
                if inspect.isfunction(method) and not hasattr(method, "_takes_parts"):
                    setattr(cls, name, wrapper(method))

    def _requires_in_memory(self) -> str | None:
        """What needs the rows together: this class, or a setting of it; None: nothing."""
        return None if type(self)._fit_table is not InParts._fit_table else type(self).__name__

    @available_if(lambda self: type(self)._fit_table is not InParts._fit_table)
    @with_callbacks
    @row_guard
    def fit_partitions(
        self, parts: Iterable[Any], *, groups: Any = None, sample_weight: Any = None, y: Any = None
    ) -> Self:
        """Fit to a table supplied in chunks; see :doc:`/many_machines`.

        What `fit` takes as a table in parts it fits as well, and the bits are the same: those of
        a fit of all rows in memory.

        Parameters
        ----------
        parts : iterable
            Arrays or data frames, each of which is read once and kept, in a file without a name
            where they are large; functions that return them, which are called in each pass;
            delayed objects of Dask; object references of Ray; or a collection that `fit` takes.
        groups, sample_weight, y : list or collection, optional
            As for `fit`, in as many parts.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError
            For what has no parts, or cannot be fitted in parts; before the charge.
        ValueError
            Where the estimator needs a target and there is none; before the charge.
        BudgetExceededError
            When `ledger` does not hold enough; no more parts have been asked for than it takes
            to see columns, which is one.
        PartError
            For a part that could not be read, or was lost. The fit is over, and paid for.
        """
        if sample_weight is not None and "max_weight" not in vars(self):
            raise TypeError(f"sample_weight cannot be given to {type(self).__name__}.")
        return self._fit_parts(self._input_of_parts(parts, groups, sample_weight, y))

    def _input_of_parts(self, parts: Any, groups: Any, sample_weight: Any, y: Any) -> InputInParts:
        """The parts, with what belongs to their rows. Most fits do not look at a target."""
        return engine_of_parts(parts, groups, sample_weight)

    def _fit_table(self, table: Any, session: Any, progress: Any) -> None:
        """Do the work of `_fit`, where the algorithm is a sequence of passes over parts."""
        raise TypeError("a subclass must fit")


def rowwise(method: Callable) -> Callable:
    """A method of :data:`ROWS`, ``(self, X, ...)``, that answers tables in parts part by part."""

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        source = engine_of(X)
        if source is None:
            return method(self, X, *arguments, **options)
        return answers(self, method.__name__, source, *arguments, **options)

    answer._takes_parts = True  # type: ignore[attr-defined]
    return answer


def answers(
    estimator: Any, name: str, source: InputInParts, *arguments: Any, **options: Any
) -> Any:
    """Apply a method of :data:`ROWS` to a table in parts; the answer is of the same kind."""
    model = _released(estimator, source, name)
    example = getattr(model, name)(_one_row(source), *arguments, **options)[:0]
    return source.rowwise(_Answer(model, name, example), example)


def _scored(method: Callable) -> Callable:
    """A score of a table in parts: that of its parts, together."""

    @wraps(method)
    def score(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        source = engine_of(X)
        if source is None:
            return method(self, X, *arguments, **options)
        if any(value is not None for value in (*arguments, *options.values())):
            raise TypeError("score accepts only X if X is partitioned.")
        model = _released(self, source, "score")
        total, n_rows = source.start(None).reduce(_score_of, model, self._score_is_a_mean)
        if not n_rows:
            raise ValueError("X: Found array with 0 sample(s) while a minimum of 1 is required.")
        return float(Fraction(total, _SCALE) / (n_rows if self._score_is_a_mean else 1))

    score._takes_parts = True  # type: ignore[attr-defined]
    return score


_SCALE = 2**1074  # every finite float is an integer of these: sums are exact, in any order


def _score_of(source: PartSource, model: Any, is_a_mean: bool) -> tuple[PartSource, tuple]:
    """The score of a part as an exact integer, and the number of its rows."""
    rows = source.read()
    if not len(rows):
        return source, (0, 0)
    score = Fraction(model.score(rows)) * (len(rows) if is_a_mean else 1)
    return source, (int(score * _SCALE), len(rows))


class _Answer:
    """The answer of a method of a model to rows, also to none."""

    def __init__(self, model: Any, name: str, example: np.ndarray) -> None:
        self.model, self.__name__, self.example = model, name, example

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(getattr(self.model, self.__name__)(rows)) if len(rows) else self.example


def _released(estimator: Any, source: InputInParts, name: str) -> Any:
    """A copy for the parts: released values, which know no names and no ledger."""
    check_is_fitted(estimator)
    check_columns(estimator, source)
    wanted = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    if name == "transform" and (wanted or get_config()["transform_output"]) != "default":
        raise ValueError("set_output is for tables in memory only: a partitioned X keeps its type.")
    model = copy.copy(estimator)  # by its `__getstate__`: without labels
    vars(model).pop("feature_names_in_", None)  # checked here, where the names are
    for parameter in {"ledger", "random_state"} & vars(model).keys():
        setattr(model, parameter, None)  # a ledger in memory does not travel
    return model


def check_columns(estimator: Any, source: InputInParts) -> None:
    """The columns have to be those of the fit, as in memory."""
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    names = getattr(estimator, "feature_names_in_", None)
    known = source.columns.names
    if names is not None and known is not None and tuple(names) != known:
        raise ValueError("The feature names should match those that were passed during fit.")


def _one_row(source: InputInParts) -> np.ndarray:
    """A row that tells what answers look like."""
    return np.zeros((1, source.n_features), dtype=source.dtype)
