"""Categories found with differential privacy, and encoded as one column each."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator, LedgerLike, RandomStateLike
from .._columns import Schema, check_categories
from .._costs.numbers import check_choice
from .._costs.plan import Mechanism, PlanEntry
from .._door import read_table, see_columns
from .._door_entries import columns, lists_rows
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._partitions import in_memory
from .._privacy._entries import object_array
from .._privacy._session import PrivacySession, sigma_of
from .._privacy._units import Units
from .._privacy.mechanisms.stability import release_names, stability_threshold
from .._queries.names import CategoryCounts, row_of_each_unit
from .._queries.vectors import UnitTotals
from .._rows.categories import OTHER_TYPE, finder, in_order
from .._rows.single_rows import row_guard
from .._status import Status

_SIZE = 0.05  # of rho: the number of units
_FAILURE = 0.5  # of delta: that a category of a single unit is seen
_SAFE = 1 - 1e-12  # shares add up to one but for rounding
_HIDDEN = 0.5  # share of the units: a column that hides more says little
_INFREQUENT = "infrequent_sklearn"  # the name that scikit-learn has for it


class DPOneHotEncoder(Replacing, StandardErrors, TransformerMixin, BaseDPEstimator):
    """Find the categories of columns with differential privacy, and encode them as one column each.

    The private counterpart of :class:`sklearn.preprocessing.OneHotEncoder`. A category is released
    with its noisy count if that count reaches `threshold_`, which hides a category of a single row.
    Rarer categories are encoded together, or as zeros. If the categories are known,
    :class:`PublicEncoder` costs nothing and hides none.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
        Half of it is the probability that a category of a single unit is released, so a smaller
        delta raises the threshold.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    handle_unknown : {"infrequent_if_exist", "ignore"}, default="infrequent_if_exist"
        A value that is not among the released categories is 1 in a last column of its feature, or
        0 in all its columns. An error would reveal it.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    categories_ : list of ndarray of object
        The released categories of each column: numbers in order, then strings, then None for
        missing values.
    counts_ : list of ndarray of float
        Released noisy number of units in each category.
    count_std_error_ : float
        Standard deviation of the noise of a count.
    threshold_ : int
        Public: a category is released if its noisy count is at least this. A category with exactly
        this many units is found half of the time, one with two `count_std_error_` more 98% of the
        time.
    hidden_share_ : ndarray of shape (n_features,)
        Estimated share of the units whose value is in no released category.
    hidden_share_std_error_ : ndarray of shape (n_features,)
        Standard errors of these shares, from the noise. Infinite if it hides the number of units.
    size_ : float
        Released noisy number of units.
    size_std_error_ : float
        Standard deviation of its noise.
    column_status_ : ndarray of str of shape (n_features,)
        For each column "ok"; "noise" if no category was found; "hidden" if more than half of the
        units may be in categories that were not released; or "type" if more than half have values
        that cannot be categories, such as dates, intervals, tuples and members of enumerations.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    PublicEncoder : Known numbers and categories, at no cost; it accepts `schema_`.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, of which one row is drawn at random and counted). A row is in one
    category of each column, and each column has the same share of rho and of delta. `transform`
    treats each row as a function of that row and of released values, so a private estimator after
    this step keeps its guarantee, and the two costs add up. Which columns you pass is public; pass
    those that contain categories.

    Each value is read separately. "1", "01" and the number 1 are three categories, as are 1, True
    and "True"; 1 and 1.0 are the same. None, NaN and other missing values are the category None.
    Strings of more than about 250 bytes are in no category. Columns of dates, intervals or bytes
    are refused: turn them into text. `transform` treats a text that is not a category as the number
    that it spells, and the other way round.

    With ``epsilon=1``, ``delta=1e-6`` and five columns the threshold is about 60 rows, with
    ``epsilon=0.1`` about 500. The table must be in memory.

    References
    ----------
    Korolova, A., Kenthapadi, K., Mishra, N. and Ntoulas, A. (2009). Releasing search queries and
    clicks privately. WWW.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_dp import DPOneHotEncoder, PublicEncoder
    >>> rng = np.random.default_rng(0)
    >>> work = rng.choice(["full", "part", "none"], 5000, p=[0.6, 0.3, 0.1]).astype(object)
    >>> work[0] = "astronaut"
    >>> table = pd.DataFrame({"work": work, "age": rng.normal(40, 10, 5000)})
    >>> found = DPOneHotEncoder(epsilon=0.5).fit(table[["work"]])
    >>> found.categories_[0].tolist(), found.status_
    (['full', 'none', 'part'], 'ok')
    >>> encoder = PublicEncoder({"age": (15, 95), **found.schema_})
    >>> encoder.fit_transform(table).shape
    (5000, 5)
    """

    _replaces = "OneHotEncoder"
    _with_errors = {"hidden_share_": (0.0, 1.0), "size_": (0.0, math.inf)}
    _feature_axes = {"hidden_share_": 1}
    bounds = n_jobs = None

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | None = None,
        handle_unknown: str = "infrequent_if_exist",
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _check_parameters(self, n_features: int) -> None:
        check_choice("handle_unknown", self.handle_unknown, ("infrequent_if_exist", "ignore"))

    def _plan_entries(self, target: Any, n_features: int) -> tuple[PlanEntry, ...]:
        failure = target.delta * _FAILURE
        rho = target.to_rho(gaussian=False, delta_failure=failure) * _SAFE
        law, words = Mechanism.STABILITY_HISTOGRAM, "1 unit in each column"
        cost = rho * (1 - _SIZE), failure
        return (
            PlanEntry.gaussian("size", rho * _SIZE, "1 unit"),
            PlanEntry("categories", law, *cost, uses=n_features, sensitivity=words),
        )

    def _schema(self, X: Any) -> Schema:
        given = in_memory(X, self._requires_in_memory())
        check_categories(given)
        return given

    def _validated(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Return all values as they are, an array of objects."""
        # After a fit a row of another length is one of its own; before it, which are the odd?
        listed = not reset and lists_rows(X)
        given = Schema(self.n_features_in_) if listed else self._schema(X)
        see_columns(self, X, given, reset=reset)
        table = columns(X, given, ragged=listed)
        if not len(table[0]):
            raise ValueError("X: Found array with 0 sample(s) while a minimum of 1 is required.")
        return np.column_stack([object_array(values) for values in table])

    def _fit(self, X: np.ndarray, units: Units, session: PrivacySession, progress: Any) -> None:
        rows, entry = row_of_each_unit(X, units, session), session.plan["categories"]
        (size,) = session.release("size", rows.ask(UnitTotals()))
        rho, delta = (share / rows.n_features * _SAFE for share in (entry.rho, entry.delta))
        categories, unread = [], []
        for answer in rows.ask(CategoryCounts()):
            names, counts = release_names(session, "categories", answer, rho=rho, delta=delta)
            known = names != OTHER_TYPE
            categories.append(in_order(names[known].tolist(), counts[known]))
            unread.append(counts[~known].sum())
            progress("categories")
        self.count_std_error_ = sigma_of(1.0, rho)
        self.threshold_ = stability_threshold(self.count_std_error_, delta)
        self.size_, self.size_std_error_ = float(size), sigma_of(1.0, session.plan["size"].rho)
        self.categories_ = [names for names, _ in categories]
        self.counts_ = [counts for _, counts in categories]
        self._judge(np.array(unread))

    def _judge(self, unread: np.ndarray) -> None:
        """Set the hidden shares and the status; `unread`: units in no category, of each column."""
        counts = self.counts_
        size, error = max(self.size_, self.size_std_error_), self.size_std_error_
        n_known = np.array([each.sum() for each in counts])
        noise = np.sqrt([error**2 + len(each) * self.count_std_error_**2 for each in counts])
        noisy = self.size_ < 2 * error
        self.hidden_share_ = np.clip(1 - n_known / size, 0.0, 1.0)
        self.hidden_share_std_error_ = np.where(noisy, np.inf, noise / size)
        none = np.array([not len(each) for each in counts])
        hidden = self.hidden_share_ + 2 * self.hidden_share_std_error_ > _HIDDEN
        self.column_status_ = np.where(none, "noise", np.where(hidden, "hidden", "ok"))
        self.column_status_[unread > _HIDDEN * size] = "type"
        codes, names = self.column_status_, self._column_names
        words = f"no category has enough units (about {self.threshold_}) in these columns"
        status = Status().add_columns("no_category", words, names, codes == "noise", "", "part")
        words = "most of the units may be in unreleased categories of these columns"
        hidden = codes == "hidden"
        status = status.add_columns("hidden_categories", words, names, hidden, "", "part")
        words = (
            "most values are neither numbers nor texts (dates, intervals, tuples, members of an "
            "enumeration) in these columns"
        )
        action, others = "turn them into text", codes == "type"
        self.messages_ = status.add_columns("other_types", words, names, others, action, "part")

    @property
    def schema_(self) -> dict[Any, list]:
        """The released categories by names or numbers of columns, for `PublicEncoder`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        pairs = zip(names, self.categories_, strict=True)
        return {name: values.tolist() for name, values in pairs if len(values)}

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_columns_out)
            For each feature a column of zeros and ones for each of its categories, and a last one
            for all others with ``handle_unknown="infrequent_if_exist"``.
        """
        encoded = []
        for values, known in zip(self._validate_predict(X).T, self.categories_, strict=True):
            places = finder(known)(values)  # -1 for no category: the column after the last one
            encoded.append(np.eye(len(known) + 1)[places, : len(known) + self._others])
        return np.hstack(encoded)

    @property
    def _others(self) -> int:
        """Number of columns of a feature for values in no category."""
        return int(self.handle_unknown == "infrequent_if_exist")

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Decode rows: the category whose column is largest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns_out)
            Encoded rows, or means of encoded rows, such as cluster centers.

        Returns
        -------
        X_original : ndarray of object of shape (n_samples, n_features)
            Categories; "infrequent_sklearn" for all others, and None if no column is positive.
        """
        check_is_fitted(self)
        widths = [len(values) + self._others for values in self.categories_]
        nothing = isinstance(X, np.ndarray) and X.shape[1:] == (0,)  # as `transform` may give
        rows: np.ndarray = X if nothing else read_table(X, "X")  # type: ignore[assignment]
        if rows.shape[1] != sum(widths):
            raise ValueError(f"X must have {sum(widths)} columns.")
        table = np.full((len(rows), len(widths)), None, dtype=object)
        for number, block in enumerate(np.split(rows, np.cumsum(widths)[:-1], axis=1)):
            if block.shape[1]:
                values = np.append(self.categories_[number], [_INFREQUENT] * self._others)
                chosen = values[block.argmax(axis=1)]
                table[:, number] = np.where(block.max(axis=1) > 0, chosen, None)
        return table

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Name the encoded columns: ``feature_category``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the features; those of the fit by default.

        Returns
        -------
        names : ndarray of str
            Names of the columns of `transform`.
        """
        check_is_fitted(self)
        given = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        pairs, others = zip(given, self.categories_, strict=True), [_INFREQUENT] * self._others
        names = [f"{feature}_{value}" for feature, known in pairs for value in (*known, *others)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
