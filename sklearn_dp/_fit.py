"""How rows come into a fit: read once it is paid for, and handed on behind a handle."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._columns import Schema, check_numbers
from ._door import NO_WEIGHT, check_weights, largest_weight, numbers, see_columns
from ._partitions import InParts, InputInParts, answers, engine_of, in_memory
from ._privacy._session import PrivacySession
from ._privacy._units import UnitFacts, Units, unit_of
from ._queries._query import TableRows
from ._rows.single_rows import as_rows, row_guard, saturated
from ._rows.table import Part, Table
from ._sklearn_compat import Progress


class FitsRows(InParts):
    """Mixin of estimators: from what a user gives to a handle of rows."""

    max_weight: float | None
    n_jobs: Any
    labels_: np.ndarray
    predict: Callable[[Any], np.ndarray]
    _open_session: Callable[..., PrivacySession]
    _check_names: Callable[[Any], None]
    _fit_table: Callable[..., None]
    _finish: Callable[..., None]
    _units: Callable[..., Units]

    _takes_sparse = False
    """True if `fit` and the methods after it read sparse rows, chunk by chunk."""

    @property
    def _later(self) -> bool:
        """True if this is a fit of a day that is not the first."""
        return False

    def _weighed(self, units: UnitFacts) -> None:
        """Take note of what is public of the units of a fit."""

    @row_guard
    def _fit_validated(
        self, X: ArrayLike, groups: ArrayLike | None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Charge, validate, fit: the body of every public `fit`. Rows without a weight are left
        out. Errors of the budget and of parameters come before the data are looked at."""
        alone = self._requires_in_memory() and self._schema(X)
        source = None if alone else engine_of(X, groups, sample_weight)
        if source is not None:
            return self._fit_parts(source)
        largest = largest_weight(sample_weight, self.max_weight)
        session = self._open_session(X, unit_of(groups))
        rows = self._validated(X)
        if largest is None:
            return self._fit_session(rows, self._units(rows, groups), session)
        weights = check_weights(sample_weight, len(rows))
        units, there = Units.weighted(weights, float(largest), groups)
        if not there.any():  # rows without a weight are not there, and no rows at all are refused
            raise ValueError(NO_WEIGHT)
        self._fit_session(rows[there], units, session)
        if hasattr(self, "labels_"):
            self.labels_ = self.predict(X)  # of rows without a weight too
        return self

    def _fit_parts(self, source: InputInParts) -> Self:
        """Charge, and fit to a table in parts."""
        together = self._requires_in_memory()
        if together is not None:
            raise TypeError(f"X must be in memory for {together}, not in parts.")
        if source.weighted:
            largest_weight((), self.max_weight)
        session = self._open_session(source, "group" if source.grouped else "row")
        table = self._open_parts(source)
        self._fit_session(table, table.units, session)
        if hasattr(self, "labels_") and (source.kind != "pieces" or source.weighted):
            # Of all rows of X, also of those without a weight; where they are on a cluster, when
            # asked for: the states of parts can go.
            self.labels_ = answers(self, "predict", source)
        return self

    def _open_parts(self, source: InputInParts) -> Table:
        """The table of the parts, with all that belongs to their rows; sets the columns."""
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = source.feature_names
        return source.opened(self.n_jobs, float(self.max_weight or 1.0))

    def _check_given(self, X: Any) -> Any:
        """The public columns of a table that may be fitted; an error by its type alone."""
        source = X if isinstance(X, InputInParts) or self._requires_in_memory() else engine_of(X)
        given = source.columns if isinstance(source, InputInParts) else self._schema(X)
        self._check_names(given.names)
        return given

    def _schema(self, X: Any) -> Schema:
        """Return the schema of a table in memory; an error where it cannot be fitted."""
        given = in_memory(X, self._requires_in_memory())
        check_numbers(given, sparse=self._takes_sparse)
        return given

    def _validated(self, X: Any, *, reset: bool = True) -> Any:
        """Finite rows of a table that a user gave: an array, or sparse rows where it takes them."""
        given = self._schema(X)
        see_columns(self, X, given, reset=reset and not self._later)
        return as_rows(numbers(X, given))

    # Saturated: a row with an entry of 1e300 is clipped as any other far row, and no square of it
    # overflows into a warning that neighbors would not see.
    @row_guard
    def _fit_session(self, X: Any, units: Units, session: PrivacySession, **public: Any) -> Self:
        """Fit within a session that has been charged."""
        progress = Progress(self)
        X = None if X is None else saturated(X)
        self._fit(X, units, session, progress, **public)
        given = X is not None and not isinstance(X, TableRows)  # rows of another fit get no labels
        if given and (labels := self._labeled_by()) is not None:
            self.labels_ = self._table(X, Units(0)).rows(_labels_of_part, labels)
        self._finish(session, np.float64 if X is None else X.dtype)
        progress.finish()
        return self

    def _fit(self, X: Any, units: Units, session: PrivacySession, progress: Progress) -> None:
        """Set the fitted attributes, from releases only, of finite rows or `SparseRows`. The
        session is the only way from rows to attributes."""
        rows = TableRows(self._table(X, units))
        self._weighed(rows.units)
        self._fit_table(rows, session, progress)

    def _table(self, X: Any, units: Units) -> Any:
        """Rows as a table: in one part for each thread, unless they are in parts already."""
        if isinstance(X, Table | TableRows):
            return X
        return Table.in_memory(X, units, None if self._requires_in_memory() else self.n_jobs)

    def _labeled_by(self) -> Callable[[Any], np.ndarray] | None:
        """Return the function that gives rows their labels, by released values. No fit sees labels:
        they are told to whoever has the rows."""
        return None

    @row_guard
    def _validate_predict(self, X: ArrayLike) -> np.ndarray:
        """Finite rows for a method of the fitted estimator, or `SparseRows` where it takes them.
        The method must be under the guard too."""
        check_is_fitted(self)
        return self._validated(X, reset=False)


@row_guard
def _labels_of_part(part: Part, labels: Callable[[Any], np.ndarray]) -> np.ndarray:
    return labels(part.source.read())
