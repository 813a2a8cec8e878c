"""Tables with numbers and categories as rows of comparable numbers, by a public schema. An unknown
value is one more category of its column, in a direction of its own: it moves no mean of known
values."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.advice import plain
from .._columns import Schema, check_categories
from .._costs.numbers import extra, is_real
from .._door import read_table
from .._door_entries import columns as read_columns
from .._door_entries import lists_rows
from .._parameters import check_real, domain_of
from .._partitions import in_memory
from .._privacy._entries import exact_integers, floats
from .._rows.categories import UNKNOWN, finder, keys_of
from .._rows.single_rows import row_guard
from .._sklearn_compat import Versioned
from .._status import Message, Status, in_short

if TYPE_CHECKING:
    import pandas as pd

_HARDLY = 0.02  # part of the rows: none, as far as a schema is concerned
_MOST = 0.5  # part of the rows without a known value from which on a schema is wrong
_AT_END = 0.005  # part of a range that a mean is next to an end by
_SURELY, _KNOWN = 2.0, 0.1  # standard errors, and the largest one that anything is told by
_STANDS_OUT = 2.0  # standard errors that means have to differ by


@dataclass(frozen=True)
class _Number:
    """Two columns: whether a number is missing, and the number in a range of width `weight`."""

    name: Hashable
    weight: float
    low: float
    high: float

    @property
    def names(self) -> list[str]:
        """Names of the columns, encoded and decoded."""
        return [f"{self.name}_missing", str(self.name)]

    decoded = names

    @property
    def square(self) -> float:
        """Squared length of the longest row of these columns, and of an unknown one."""
        return (self.weight / 2) ** 2

    def encode(self, values: Any) -> np.ndarray:
        """Values as rows."""
        values = np.clip(floats(values)[0], self.low, self.high)
        rows = (values - self._middle) / self._width * self.weight
        unknown = np.isnan(rows)
        return np.stack([math.sqrt(self.square) * unknown, np.where(unknown, 0.0, rows)], axis=1)

    def unknown(self, rows: np.ndarray) -> np.ndarray:
        """The share of unknown values, in means of rows."""
        return rows[:, 0] / math.sqrt(self.square)

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Shares of unknown values, and means of known ones in the units of the column (or NaN)."""
        unknown = np.clip(self.unknown(rows), 0.0, 1.0)
        known = np.where(1 - unknown < _HARDLY, np.nan, 1 - unknown)
        means = rows[:, 1] / self.weight * self._width / known + self._middle
        return np.stack([unknown, np.clip(means, self.low, self.high)], axis=1)

    def errors(self, rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Standard errors of decoded rows, from those of the rows (delta method)."""
        unknown = errors[:, 0] / math.sqrt(self.square)
        known = np.maximum(1 - np.clip(self.unknown(rows), 0.0, 1.0), _HARDLY)
        means = np.hypot(errors[:, 1], rows[:, 1] / known * unknown) / known
        return np.stack([unknown, means / self.weight * self._width], axis=1)

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of each coordinate."""
        ends = np.array([[0.0, math.sqrt(self.square)], [-self.weight / 2, self.weight / 2]])
        return ends[:, 0], ends[:, 1]

    def beyond(self, values: Any) -> np.ndarray:
        """1.0 for each value outside of the range, 0.0 for others."""
        values = floats(values)[0]
        return ((values < self.low) | (values > self.high)).astype(np.float64)

    @property
    def _width(self) -> float:
        return self.high - self.low or 1.0

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class _Category:
    """A column for each category: two are at the distance `weight`, their mean is at 0. The
    coordinates of a row add up to 0; those of an unknown value are equal."""

    name: Hashable
    weight: float
    values: tuple

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        return [f"{self.name}_{value}" for value in self.values]

    @property
    def decoded(self) -> list[str]:
        """Names of the columns of the decoded table."""
        last = f"{self.name}_unlisted"
        return [*self.names, last + "_" * (last in self.names)]

    @property
    def square(self) -> float:
        """Squared length of the longest row of these columns, and of an unknown one."""
        return self.weight**2 * (1 - 1 / max(len(self.values), 2)) / 2

    def encode(self, values: Any) -> np.ndarray:
        """Values as rows; an unlisted one is equally far from all listed ones."""
        codes = exact_integers(finder(self.values)(values))
        known, rows = codes >= 0, np.zeros((len(codes), len(self.values)))
        rows[known] = -1 / len(self.values)
        rows[known, codes[known]] += 1
        rows[~known] = self._same / self.weight * math.sqrt(2)
        return rows * (self.weight / math.sqrt(2))

    def unknown(self, rows: np.ndarray) -> np.ndarray:
        """The share of unknown values, in means of rows."""
        return rows.mean(axis=1) / self._same

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """The share of each category, and of unlisted values."""
        unknown = self.unknown(rows)[:, None]
        listed = (rows - unknown * self._same) / self.weight * math.sqrt(2)
        return _nearest_shares(np.hstack([listed + (1 - unknown) / len(self.values), unknown]))

    def errors(self, rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Standard errors of decoded rows, before they are made to add up to 1."""
        n, scale = len(self.values), math.sqrt(2) / self.weight
        unknown = np.linalg.norm(errors, axis=1, keepdims=True) / n / self._same
        listed = np.hypot(errors * scale, unknown * (self._same * scale + 1 / n))
        return np.hstack([listed, unknown])

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of each coordinate."""
        n, scale = len(self.values), self.weight / math.sqrt(2)
        high = max(scale * (1 - 1 / n), self._same)
        return np.full(n, -scale / n), np.full(n, high)

    @property
    def _same(self) -> float:
        """Each coordinate of an unknown value."""
        return math.sqrt(self.square / len(self.values))


class EncodedBounds(float):
    """The radius of all encoded rows; it notes in a fitted model what does not fit the schema."""

    columns: tuple[_Number | _Category, ...]

    @classmethod
    def of(cls, columns: list[_Number | _Category]) -> Self:
        made = cls(math.sqrt(sum(column.square for column in columns)) * (1 + 1e-9))
        made.columns = tuple(columns)
        return made

    def note_fit(self, model: Any) -> None:
        """Add messages about columns to those of a fitted estimator, from releases."""
        released = _released_points(model, sum(len(column.names) for column in self.columns))
        if released is None:
            return
        ends = np.cumsum([len(column.names) for column in self.columns])[:-1]
        points, errors = (np.split(each, ends, axis=1) for each in released[:2])
        blocks = list(zip(self.columns, points, errors, strict=True))
        wrong = [_mismatch(*block, released[2]) for block in blocks]
        model.messages_ = Status([*filter(None, wrong), *model.messages_])
        errors_of_equal = [_error_of_alike(*block, released[2]) for block in blocks]
        hidden = np.flatnonzero([error is not None for error in errors_of_equal])
        if not len(hidden):
            return
        # A narrower range has less noise, unless the range is what is wrong.
        reported = np.array([i for i in hidden if wrong[i] is None], dtype=int)
        if len(reported):
            names = tuple(str(self.columns[i].name) for i in reported)
            shown = [
                f"{self.columns[i].name} (standard error {plain(errors_of_equal[i] or 0)})"
                for i in reported
            ]
            text = f"noise could explain the differences between clusters in {in_short(shown)}"
            action = "use a narrower range, which has less noise"
            model.messages_ = model.messages_.add(Message("noisy_columns", text, names, action))
        for name in ("cluster_centers_status_", "column_status_"):
            codes, places = getattr(model, name, None), (np.append(0, ends) + 1)[hidden]
            if codes is not None:
                part = codes[..., places]
                codes[..., places] = np.where(part == "ok", "unknown", part)


def _released_points(model: Any, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Released means (k, width) of encoded rows, their standard errors, and shares of the rows."""
    for name in ("cluster_centers_", "means_", "mean_", "location_"):
        points = np.atleast_2d(getattr(model, name, np.zeros((0, 0))))
        if points.shape[1] == width and len(points):
            errors = np.asarray(getattr(model, f"{name}std_error_", 0.0))
            if errors.shape == points.shape[:1] != points.shape[1:]:
                errors = errors[:, None]
            weights = getattr(model, "cluster_weights_", getattr(model, "weights_", None))
            share = np.ones(len(points)) if weights is None else np.maximum(weights, 0.0)
            shares = share / max(float(share.sum()), 1e-300)
            return points, np.broadcast_to(np.nan_to_num(errors), points.shape), shares
    return None


def _mismatch(
    column: _Number | _Category, points: np.ndarray, errors: np.ndarray, shares: np.ndarray
) -> Message | None:
    """A column of which hardly any value is known, or that is at an end of its range."""
    name, unknown = str(column.name), float(shares @ column.unknown(points))
    error = float(np.sqrt(np.square(shares) @ np.square(errors[:, 0]))) / math.sqrt(column.square)
    if 1 - unknown < max(_HARDLY, _SURELY * error) and error < _KNOWN:
        action = "check its type: numbers are written as 1234.5"
        if isinstance(column, _Category):
            pair = len(column.values) == 2 and all(map(is_real, column.values))
            action = "write a range in parentheses" if pair else "check spelling and spaces"
        text = f"no row had a known value of {name}"
        return Message("unknown_values", text, (name,), action, "part")
    if unknown - _SURELY * error > _MOST:
        text = f"{100 * unknown:.0f}% of the rows have no known value of {name}"
        return Message("unknown_values", text, (name,), "check the schema", "part")
    if isinstance(column, _Category) or column.low == column.high:
        return None
    mean = float(shares @ points[:, 1]) / max(1 - unknown, _HARDLY) / column.weight
    error = float(np.sqrt(np.square(shares) @ np.square(errors[:, 1]))) / column.weight
    # Zero is an end that many columns have by nature.
    natural = (column.low if mean < 0 else column.high) == 0
    if 0.5 - abs(mean) < _AT_END + _SURELY * error and error < _KNOWN and not natural:
        text = f"{name} is at its bound in every row"
        return Message("rows_at_bound", text, (name,), "check the unit", "part")
    return None


def _error_of_alike(
    column: _Number | _Category, points: np.ndarray, errors: np.ndarray, shares: np.ndarray
) -> float | None:
    """The standard error of means of numbers, if they differ by no more than noise explains."""
    if isinstance(column, _Category) or len(points) < 2:
        return None
    values, noise = points[:, 1], float(shares @ np.square(errors[:, 1]))
    if shares @ np.square(values - shares @ values) >= _STANDS_OUT**2 * noise:
        return None
    return math.sqrt(noise) / column.weight * column._width


def _nearest_shares(values: np.ndarray) -> np.ndarray:
    """For each row, the nearest one of numbers from 0 whose sum is 1, as that of shares is; never
    farther from the true one, as the set is convex."""
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

    Values that are not known (missing, not listed, text among numbers) are one more category, so
    the means of known values are not affected. The `messages_` of a fit with `output_bounds` say if
    hardly any value of a column was known, or if a number was at an end of its range in all rows.

    Parameters
    ----------
    schema : dict, Schema, or list
        Public: for each column a pair ``(low, high)`` of numbers, its range, or a list of its
        categories. For data frames, use the names of the columns; other columns are left out. For
        arrays (or data frames of as many columns), use a list, or a dict in the order of the
        columns. None in a list of categories stands for missing values.
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
    after this step keeps its guarantee. 1 and 1.0 are the same category; a text that is not in the
    schema is treated as the number, True or False that it spells, and the other way round. No row
    is refused, because an error would reveal it: numbers are clipped to their range, and values
    that are not in the schema are encoded as unknown. Their squared distance from known values is
    between a quarter and a half for numbers, and between a half and 1 for categories. Columns of
    dates and intervals are refused.

    References
    ----------
    Huang, Z. (1998). Extensions to the k-means algorithm for clustering large data sets with
    categorical values. Data Mining and Knowledge Discovery 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp import PublicEncoder
    >>> encoder = PublicEncoder({"age": (15, 95), "work": ["none", "part", "full"]})
    >>> rng = np.random.default_rng(0)
    >>> old = np.arange(4000)% 2 == 1
    >>> table = pd.DataFrame(
    ...     {
    ...         "age": np.where(old, 70, 30) + rng.normal(size=4000),
    ...         "work": np.where(old, "none", rng.choice(["part", "full"], 4000)),
    ...     }
    ... )
    >>> model = DPKMeans(2, epsilon=1.0, bounds=encoder.output_bounds, random_state=0)
    >>> model = model.fit(encoder.fit_transform(table))
    >>> centers = encoder.inverse_transform(model.cluster_centers_).sort_values("age")
    >>> shown = ["age", "work_none", "work_part", "work_full"]
    >>> centers[shown].round(dict.fromkeys(shown, 1) | {"age": 0}).to_numpy()
    array([[30. ,  0. ,  0.5,  0.5],
           [70. ,  1. ,  0. ,  0. ]])
    >>> centers.columns.difference(shown).tolist()
    ['age_missing', 'work_unlisted']
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
    def output_bounds(self) -> EncodedBounds:
        """Radius around the origin of all possible rows: the `bounds` of the next estimator."""
        return EncodedBounds.of(self._columns())

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
        self._given(X, columns)
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
            In the order of the schema: two columns for numbers, of which the first one is for
            missing values, and one for each category.
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
            Means of known numbers, in their own units and within their ranges (NaN if hardly any is
            known), and the share of missing ones; the shares of categories and of unlisted values,
            which are at least 0 and add up to 1: of noisy rows, the nearest such table.
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
        table = np.hstack([column.decode(block) for column, block in blocks])
        return pd.DataFrame(table, columns=[name for each in columns for name in each.decoded])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Name the encoded columns, in the order of the schema.

        Parameters
        ----------
        input_features : Ignored
            The names come from the schema.

        Returns
        -------
        names : ndarray of str
            Those of `transform`: ``column_missing`` and ``column`` for a column of numbers, and
            ``column_category`` for each category.
        """
        check_is_fitted(self)
        return np.array([name for each in self._columns() for name in each.names], dtype=object)

    def _columns(self) -> list[_Number | _Category]:
        """Check the schema, and return its columns."""
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
        columns = [_column(name, kind, weights.get(name, 1.0)) for name, kind in schema.items()]
        shown = getattr(self, "feature_names_in_", ())
        if isinstance(self.schema, Mapping) or len(shown) != len(columns):
            return columns
        # A list has no names; those of the data frame of the fit are shown.
        return [replace(column, name=name) for column, name in zip(columns, shown, strict=True)]

    def _names(self, X: Any, columns: list) -> list:
        """The names by which a data frame is read: its own in order, if the schema is a list."""
        names, own = [column.name for column in columns], list(getattr(X, "columns", ()))
        listed = not isinstance(self.schema, Mapping) and not hasattr(self, "feature_names_in_")
        return own if listed and len(own) == len(names) and not set(names) <= set(own) else names

    def _beyond(self, X: Any) -> list[np.ndarray]:
        """For each column of numbers, 1.0 for values outside of its range and 0.0 for others."""
        columns = self._columns()
        pairs = zip(columns, self._values(X, columns), strict=True)
        return [each.beyond(values) for each, values in pairs if isinstance(each, _Number)]

    def _check_given(self, X: Any) -> Schema:
        """The columns of the schema in a table; an error by its type alone."""
        return self._given(X, self._columns())[0]

    def _values(self, X: Any, columns: list) -> list[Any]:
        """The values of each column of the schema, as they are."""
        return read_columns(X, *self._given(X, columns), ragged=True)

    def _given(self, X: Any, columns: list) -> tuple[Schema, list[int]]:
        """The declared columns of a table, and the places of the columns of the schema."""
        fitted = hasattr(self, "n_features_in_")  # then a row of a list is one of its own
        listed = lists_rows(X) and fitted
        given = Schema(len(columns)) if listed else in_memory(X)
        places = list(range(len(columns)))
        if given.labels is not None:
            names = self._names(X, columns)
            missing = [name for name in names if name not in given.labels]
            if missing:
                raise ValueError(
                    f"X has no column {missing[0]!r}, which is in the schema. It has "
                    f"{in_short(list(map(repr, given.labels)))}."
                )
            places = [given.labels.index(name) for name in names]
        elif given.n_features != len(columns):
            raise ValueError(
                f"X must be a data frame, or an array of shape (n_samples, {len(columns)})."
            )
        check_categories(given.at(places))
        return given, places

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


def _column(name: Hashable, kind: Any, weight: Any) -> _Number | _Category:
    """Check a column of a schema: a range (a tuple of two numbers), or a list of categories."""
    weight = check_real(weight, "weights", low=1e-100, high=1e100)
    if isinstance(kind, tuple) and len(kind) == 2 and all(map(is_real, kind)):
        try:
            domain = domain_of(kind, 1)
        except ValueError as error:
            words = str(error).replace("bounds:", "in its range,")
            raise ValueError(f"schema, column {name!r}: {words}") from None
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
