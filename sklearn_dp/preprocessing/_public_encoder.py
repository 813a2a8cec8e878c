"""Tables with numbers and categories as rows of comparable numbers, by a public schema."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.single_rows import finite, row_guard
from .._door import Schema, check_categories, lists_rows, read_table
from .._door import columns as read_columns
from .._partitions import in_memory
from .._privacy._checks import is_real
from .._privacy._domain import Domain
from .._privacy._entries import floats
from .._privacy._optional import extra
from .._privacy._rounding import exact_integers
from .._sklearn_compat import Versioned
from .._validation import check_real
from ._categories import UNKNOWN, finder, keys_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PublicEncoder"]


@dataclass(frozen=True)
class _Number:
    """A column of numbers: its range has the width `weight`, about 0."""

    name: Hashable
    weight: float
    low: float
    high: float

    @property
    def names(self) -> list[str]:
        """Of the columns that it becomes."""
        return [str(self.name)]

    @property
    def square(self) -> float:
        """Squared length of the longest row of these columns."""
        return (self.weight / 2) ** 2

    def encode(self, values: Any) -> np.ndarray:
        """Values as rows; what is no number is in the middle of the range."""
        values = np.clip(floats(values)[0], self.low, self.high)
        rows = (values - self._middle) / self._width * self.weight
        return np.where(np.isnan(rows), 0.0, rows)[:, None]

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Rows back in the units of the column, within its range, as all means of rows are."""
        return np.clip(rows / self.weight * self._width + self._middle, self.low, self.high)

    @property
    def _width(self) -> float:
        return self.high - self.low or 1.0

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class _Category:
    """A column of categories: two of them are at the distance `weight`, their mean is at 0."""

    name: Hashable
    weight: float
    values: tuple

    @property
    def names(self) -> list[str]:
        """Of the columns that it becomes."""
        return [f"{self.name}_{value}" for value in self.values]

    @property
    def square(self) -> float:
        """Squared length of the longest row of these columns."""
        return self.weight**2 * (1 - 1 / len(self.values)) / 2

    def encode(self, values: Any) -> np.ndarray:
        """Values as rows; what is not in the list is at 0, as far from all that is."""
        codes = exact_integers(finder(self.values)(values))
        known, rows = codes >= 0, np.zeros((len(codes), len(self.values)))
        rows[known] = -1 / len(self.values)
        rows[known, codes[known]] += 1
        return rows * (self.weight / math.sqrt(2))

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Rows back as the share of each category."""
        return _nearest_shares(rows / self.weight * math.sqrt(2) + 1 / len(self.values))


def _nearest_shares(values: np.ndarray) -> np.ndarray:
    """For each row, the nearest one of numbers from 0 whose sum is 1.

    What `_Category.encode` makes of any value, in the units of shares, has that sum, and so have
    means of it: noise is all that is taken away, and the nearest point of a convex set to a noisy
    one is never farther from the true one.
    """
    finite_rows = np.clip(values, -1e300, 1e300)
    # What is 1 or more below the largest is 0 in the end.
    below = np.maximum(finite_rows - finite_rows.max(axis=1, keepdims=True), -1.0)
    ordered = -np.sort(-below, axis=1)
    # So much is taken off each of the largest few, if these alone are to be left.
    less = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    n_left = np.maximum((ordered > less).sum(axis=1, keepdims=True), 1)
    return np.maximum(below - np.take_along_axis(less, n_left - 1, axis=1), 0.0)


class PublicEncoder(Versioned, TransformerMixin, BaseEstimator):
    """Encode numbers and categories as rows of comparable numbers, by a public schema.

    Numbers are scaled to their range, and categories become one column each, so that the squared
    distance between two rows is a sum over the columns of the table: ``((x - y) / range) ** 2`` for
    a number, and 1 for two categories that differ. Followed by :class:`sklearn_dp.DPKMeans`,
    this is a private version of k-prototypes, a method for clustering mixed tables. The schema is
    given, not learned, so the encoder costs nothing.

    Parameters
    ----------
    schema : dict, or list
        Public: for each column a pair ``(low, high)`` of numbers, its range, or a list of its
        categories. For data frames, use the names of the columns; other columns are left out. For
        arrays, use a list, or a dict in the order of the columns. A list also fits a data frame of
        as many columns. None in a list of categories stands for missing values.
    weights : dict, optional
        Weights of columns, 1 by default. They multiply distances.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the schema.
    feature_names_in_ : ndarray of str
        Their names, if these are strings.

    See Also
    --------
    PublicScaler : The same for tables of numbers.

    Notes
    -----
    Guarantee: the encoding of a row depends only on that row and the schema, so a private estimator
    after this step keeps its guarantee. A string in a column does not change the other values. 1
    and 1.0 are the same category, and so are True and "True"; a text that is not in the schema
    counts as the number that it reads as, and a number as the text. No row is refused, because an
    error would reveal it: numbers are clipped to their range, and values that are not in the schema
    (another category, a missing value, text among numbers) are encoded as 0, in the middle of the
    range or at the mean of the categories. Columns of dates and intervals are refused.

    References
    ----------
    Huang, Z. (1998). Extensions to the k-means algorithm for clustering large data sets with
    categorical values. Data Mining and Knowledge Discovery 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.preprocessing import PublicEncoder
    >>> encoder = PublicEncoder({"age": (15, 95), "work": ["none", "part", "full"]})
    >>> rng = np.random.default_rng(0)
    >>> old = np.arange(4000) % 2 == 1
    >>> table = pd.DataFrame(
    ...     {
    ...         "age": np.where(old, 70, 30) + rng.normal(size=4000),
    ...         "work": np.where(old, "none", rng.choice(["part", "full"], 4000)),
    ...     }
    ... )
    >>> model = DPKMeans(2, epsilon=1.0, bounds=encoder.output_bounds, random_state=0)
    >>> model = model.fit(encoder.fit_transform(table))
    >>> centers = encoder.inverse_transform(model.cluster_centers_).sort_values("age")
    >>> centers.round({"age": 0, "work_none": 1, "work_part": 1, "work_full": 1}).to_numpy()
    array([[30. ,  0. ,  0.5,  0.5],
           [70. ,  1. ,  0. ,  0. ]])
    >>> centers.columns.tolist()
    ['age', 'work_none', 'work_part', 'work_full']
    """

    _learns_nothing = True

    def __init__(
        self,
        schema: Mapping[Any, Any] | Sequence[Any],
        *,
        weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.schema = schema
        self.weights = weights

    @property
    def output_bounds(self) -> float:
        """Radius around the origin of all possible rows: the `bounds` of the next estimator."""
        return math.sqrt(sum(column.square for column in self._columns())) * (1 + 1e-9)

    def fit(self, X: object, y: object = None) -> Self:
        """Check the schema, and that the table has its columns.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Rows; no value is used.
        y : Ignored
            Present for API consistency with scikit-learn.

        Returns
        -------
        self : PublicEncoder
            The fitted encoder.
        """
        self.__dict__.pop("feature_names_in_", None)
        columns = self._columns()
        self._values(X, columns)
        self.n_features_in_ = len(columns)
        names = self._names(X, columns)
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    @row_guard
    def transform(self, X: object) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Rows.

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_columns_out)
            A column for each number and for each category, in the order of the schema.
        """
        check_is_fitted(self)
        columns = self._columns()
        encoded = zip(columns, self._values(X, columns), strict=True)
        return np.hstack([column.encode(values) for column, values in encoded])

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> "pd.DataFrame":
        """Decode rows, for example cluster centers, to a readable table (needs pandas).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns_out)
            Encoded rows, or means of encoded rows, with or without noise.

        Returns
        -------
        table : DataFrame
            Numbers in their own units and within their ranges, and the shares of categories, which
            are at least 0 and add up to 1: of noisy rows, the nearest such table. An unknown value
            counts as an equal share of each category.
        """
        with extra("pandas"):
            import pandas as pd
        check_is_fitted(self)
        columns = self._columns()
        ends = np.cumsum([len(column.names) for column in columns])
        X = read_table(X, "X")
        if X.shape[1] != ends[-1]:
            raise ValueError(f"X must have {ends[-1]} columns.")
        blocks = zip(columns, np.split(X, ends[:-1], axis=1), strict=True)
        table = np.hstack([finite(column.decode(block)) for column, block in blocks])
        return pd.DataFrame(table, columns=self.get_feature_names_out())

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Name the encoded columns: a number keeps its name, a category is ``column_category``.

        Parameters
        ----------
        input_features : Ignored
            The names come from the schema.

        Returns
        -------
        names : ndarray of str
            Names of the columns of `transform`.
        """
        check_is_fitted(self)
        return np.array([name for each in self._columns() for name in each.names], dtype=object)

    def _columns(self) -> list[_Number | _Category]:
        """The columns of the schema, which has been checked."""
        schema, weights = self.schema, {} if self.weights is None else self.weights
        if not isinstance(schema, Mapping):
            if not isinstance(schema, list | tuple):
                raise TypeError("schema must be a dict of columns, or a list.")
            schema = dict(enumerate(schema))
        if not schema:
            raise ValueError("schema must have a column.")
        if not isinstance(weights, Mapping):
            raise TypeError("weights must be a dict of columns and numbers.")
        if not set(weights) <= set(schema):
            raise ValueError("weights: a column is not in the schema.")
        found = [_column(name, kind, weights.get(name, 1.0)) for name, kind in schema.items()]
        shown = getattr(self, "feature_names_in_", ())
        if isinstance(self.schema, Mapping) or len(shown) != len(found):
            return found
        # A list has no names; those of the data frame of the fit are shown.
        return [replace(column, name=name) for column, name in zip(found, shown, strict=True)]

    def _names(self, X: Any, columns: list) -> list:
        """The names by which a data frame is read: of a list, which has none, its own in order."""
        names, own = [column.name for column in columns], list(getattr(X, "columns", ()))
        listed = not isinstance(self.schema, Mapping) and not hasattr(self, "feature_names_in_")
        return own if listed and len(own) == len(names) and not set(names) <= set(own) else names

    def _values(self, X: Any, columns: list) -> list[Any]:
        """The values of each column of the schema, as they are."""
        fitted = hasattr(self, "n_features_in_")  # then a row of a list is one of its own
        listed = lists_rows(X) and fitted
        given = Schema(len(columns)) if listed else in_memory(X)
        places = list(range(len(columns)))
        if given.labels is not None:
            names = self._names(X, columns)
            missing = [name for name in names if name not in given.labels]
            if missing:
                raise ValueError(f"X has no column {missing[0]!r}, which is in the schema.")
            places = [given.labels.index(name) for name in names]
        elif given.n_features != len(columns):
            raise ValueError(
                f"X must be a data frame, or an array of shape (n_samples, {len(columns)})."
            )
        check_categories(given.at(places))
        return read_columns(X, given, places, ragged=True)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


def _column(name: Hashable, kind: Any, weight: Any) -> _Number | _Category:
    """A column of a schema: a tuple of two numbers is a range, a list has categories."""
    weight = check_real(weight, "weights", low=1e-100, high=1e100)
    if isinstance(kind, tuple) and len(kind) == 2 and all(map(is_real, kind)):
        try:
            domain = Domain.from_bounds(kind, 1)
        except ValueError as error:
            raise ValueError(f"schema, column {name!r}: {error}") from None
        return _Number(name, weight, float(domain.low[0]), float(domain.high[0]))
    values = kind.tolist() if isinstance(kind, np.ndarray) else kind
    if not isinstance(values, list) or not values:
        raise TypeError(
            f"schema, column {name!r} must be a pair (low, high) of numbers, or a list of "
            "categories in square brackets."
        )
    keys = keys_of(values)
    distinct = UNKNOWN not in keys and len(set(keys)) == len(keys)
    values = tuple(None if key is None else value for key, value in zip(keys, values, strict=True))
    if not distinct:
        raise ValueError(f"schema, column {name!r}: categories must be different, plain values.")
    return _Category(name, weight, values)
