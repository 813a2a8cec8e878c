"""From a table of persons and its public schema to segments with a profile, under one guarantee.

Three private fits: *scales*, the standard deviations of the encoded columns, which balance them,
and how many rows are outside of their ranges; *clusters*, `DPKMeans` on the balanced rows;
*segments*, sizes and means of the rows that are nearest to each center.

**Cost.** The plan has one entry for each of the three, which pays for its whole plan at once
(`mechanisms.fits`); all are Gaussian, so their costs add up exactly. Between them each row is
encoded, weighted and assigned to a center by itself, from released values: a neighbor's rows stay
neighbors. A unit is in one segment only (`units_in_one_segment`), so the segments cost what one of
them does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._base import Budgeted, LedgerLike, RandomStateLike, check_integer, session_of
from .._costs.numbers import check_choice, round_down, sum_down
from .._costs.plan import PrivacyPlan
from .._privacy._session import lump
from .._privacy._units import unit_of
from .._rows.single_rows import row_guard
from .._silence import suppress_output
from .._sklearn_compat import Versioned, without_callbacks
from .._status import Status
from ..cluster import DPKMeans
from ..mean import FriendlyMean
from ..preprocessing import DPStandardScaler, PublicEncoder
from ._dp_by_segment import DPBySegment
from ._profile_answer import Balance, Findings, ProfileDisplays, explained, status_of
from ._rows import UnitsBySegment, units_in_one_segment

_SCALES, _FLAGS, _CLUSTERS, _SEGMENTS = "scales", "shares", "clusters", "segments"
_SHARES = {_SCALES: 0.17, _FLAGS: 0.03, _CLUSTERS: 0.3}
"""Of rho. Scales are of no use by themselves, but wrong ones unbalance the columns: a tenth leaves
standard deviations of skewed columns wrong by a factor of two (`benchmarks/profiles.py`)."""
_MOST_SEGMENTS = 100
_MOMENTS = ("mean_", "mean_std_error_", "var_", "var_std_error_")


def _scaled(columns: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Ends (2, d) of encoded columns, and of what is beyond ranges; and which are numbers."""
    ranges = [hasattr(column, "beyond") for column in columns]
    numbers = [
        end and i == 1  # after the flag of missing numbers
        for column, end in zip(columns, ranges, strict=True)
        for i in range(len(column.names))
    ]
    flags = np.repeat([[0.0], [1.0]], sum(ranges), axis=1)
    ends = np.hstack([*(np.asarray(column.box, dtype=np.float64) for column in columns), flags])
    return ends, np.array(numbers + [False] * sum(ranges))


class DPProfile(ProfileDisplays, Versioned, Budgeted, BaseEstimator):
    """Divide persons into segments and describe each of them, from a table and its public schema.

    Columns are balanced: each column of the table has about the same weight in distances, whatever
    its unit, its range or its number of categories. A missing category is a category of its own,
    and a missing number differs from the mean by one standard deviation, in its own direction.
    The segments are those of :class:`DPKMeans`. Each is described by its size, by means of numbers
    in their own units, and by shares of categories, all with standard errors.

    Parameters
    ----------
    schema : dict, Schema, or list
        Public: for each column a pair ``(low, high)`` of numbers, its range, or a list of its
        categories, as for :class:`PublicEncoder`. Other columns of a data frame are left out.
    n_segments : int, default=5
        Number of segments, at most 100.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged once, before the data are read.
    weights : dict, optional
        Weights of columns relative to the balance, 1 by default. They multiply distances.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    table : DataFrame
        For each segment the size and, for each column, means of known numbers, shares of missing
        numbers and shares of categories. Each has a value and a standard error. Needs pandas.
    sizes_, sizes_std_error_ : ndarray of shape (n_segments,)
        Released number of units of each segment, and the standard deviation of its noise.
    means_, means_std_error_ : ndarray of shape (n_segments, n_columns_out)
        Means of the encoded rows of each segment, and their standard errors.
    explained_, explained_std_error_ : float
        Share of the spread of the balanced columns that the segments explain.
    explained_without_structure_ : float
        The same share for made-up rows with the same means and standard deviations, but with
        columns that are independent of each other.
    encoder_ : PublicEncoder
        The encoder of the schema, which has learned nothing.
    estimator_ : DPKMeans
        The clusters on which the segments are based, of balanced rows.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They name
        columns that do not match the schema, ranges that cut off many rows and one column that
        determines the segments. They say if there is no evidence of clusters, or if figures are
        too noisy to use.
    trustworthy_ : bool
        Whether the answer can be used, within what `messages_` says.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
        Number of columns of the schema.
    feature_names_in_ : ndarray of str
        Their names, if these are strings.

    See Also
    --------
    profile : Fits this estimator in one call.
    PublicEncoder : The encoding of the rows.
    DPKMeans : Clusters alone, with more options.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group). All releases are Gaussian. A fifth of rho is spent on scales of
    numbers and shares of categories, three tenths on clusters, and half on sizes and means of the
    segments.

    A group counts in the segment where it has most rows; its other rows are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn_dp import DPProfile
    >>> rng = np.random.default_rng(0)
    >>> old = np.arange(4000)% 2 == 1
    >>> persons = pd.DataFrame(
    ...     {
    ...         "age": np.where(old, 70, 30) + rng.normal(size=4000),
    ...         "work": np.where(old, "none", rng.choice(["part", "full"], 4000)),
    ...     }
    ... )
    >>> schema = {"age": (15, 95), "work": ["none", "part", "full"]}
    >>> found = DPProfile(schema, n_segments=2).fit(persons)
    >>> sorted(found.table.loc[("age", "mean")].xs("value", level=1).round(-1))
    [30.0, 70.0]
    """

    def __init__(
        self,
        schema: Any,
        n_segments: int = 5,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | None = None,
        weights: Mapping[Any, float] | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.schema = schema
        self.n_segments = n_segments
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- plan -----------------------------------------------------------------------------------

    _not_released = _length_released = ()

    def _stages(self, encoder: PublicEncoder, unit: str) -> dict[str, tuple[Any, PrivacyPlan]]:
        """The estimator and the plan of each fit: public."""
        target, columns = self._check_shared(), encoder._columns()
        check_integer(self.n_segments, "n_segments", low=1, high=_MOST_SEGMENTS)
        low, high = np.hstack([column.box for column in columns])
        ends, numbers = _scaled(columns)
        rho = target.to_rho()
        rhos = {name: round_down(share * rho) for name, share in _SHARES.items()}
        rhos[_SEGMENTS] = round_down(sum_down([rho, *(-each for each in rhos.values())]))
        made: dict[str, Any] = {
            _SCALES: DPStandardScaler(bounds=tuple(ends[:, numbers])),
            _FLAGS: FriendlyMean(bounds=tuple(ends[:, ~numbers])),
            _CLUSTERS: DPKMeans(self.n_segments, bounds=encoder.output_bounds),
            _SEGMENTS: DPBySegment(
                FriendlyMean(bounds=(low, high)), values=[*range(self.n_segments)], borrow=False
            ),
        }
        widths = {_SCALES: int(numbers.sum()), _FLAGS: int((~numbers).sum())}
        widths |= dict.fromkeys((_CLUSTERS, _SEGMENTS), len(low))
        if not numbers.any():
            del made[_SCALES]
        for name, model in made.items():
            model.set_params(epsilon=None, rho=rhos[name], delta=self.delta, n_jobs=self.n_jobs)
        return {name: (each, each._make_plan(widths[name], unit)) for name, each in made.items()}

    def _planned(self, stages: dict[str, tuple[Any, PrivacyPlan]], unit: str) -> PrivacyPlan:
        entries = tuple(lump(name, plan) for name, (_, plan) in stages.items())
        notes = tuple(note for _, plan in stages.values() for note in plan.notes)
        return PrivacyPlan(self._check_shared(), entries, unit, tuple(dict.fromkeys(notes)))

    def privacy_plan(self, n_features: int | None = None, *, unit: str = "row") -> PrivacyPlan:
        """Return what a fit would release and spend, before any data are seen.

        Parameters
        ----------
        n_features : int, optional
            The number of columns of the schema, which is known.
        unit : {"row", "group"}, default="row"
            "group" is what `fit` uses when it gets `groups`.

        Returns
        -------
        plan : PrivacyPlan
            Prints as a table; ``plan.to_frame()`` gives a DataFrame.
        """
        check_choice("unit", unit, ("row", "group"))
        encoder = PublicEncoder(self.schema, weights=self.weights)
        if n_features not in (None, len(encoder._columns())):
            raise ValueError("n_features must be the number of columns of the schema.")
        return self._planned(self._stages(encoder, unit), unit)

    # -- fit ------------------------------------------------------------------------------------

    @row_guard
    def fit(self, X: Any, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Find the segments and describe them.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Rows, in memory.
        y : Ignored
            Present for API consistency with scikit-learn.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row: the guarantee is then for adding or removing all rows of a
            group.

        Returns
        -------
        self : DPProfile
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.

        Warns
        -----
        UtilityWarning
            If released values show that the result is of little use.
        """
        PublicEncoder(self.schema, weights=self.weights)._columns()
        plain, unit = PublicEncoder(self.schema).fit(X), unit_of(groups)
        stages = self._stages(plain, unit)
        session = session_of(self, self._planned(stages, unit))
        self._forget()
        self.__dict__.pop("_balance", None)
        rows, beyond = plain.transform(X), plain._beyond(X)
        units = self._units(rows, groups)
        fit = partial(self._fitted, session, stages)
        scales = self._scales(fit, plain._columns(), np.column_stack([rows, *beyond]), units)
        self.encoder_ = plain
        self._balance = Balance.of(plain._columns(), scales, dict(self.weights or {}))
        balanced = self._balance.rows(rows)
        stages[_CLUSTERS][0].set_params(bounds=self._balance.radius)
        clusters = fit(_CLUSTERS, balanced, units)
        numbers, segment = units_in_one_segment(groups, clusters.predict(balanced))
        by_segment = UnitsBySegment(segment, numbers, None, None)
        segments = fit(_SEGMENTS, rows, by_segment)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))
        self.estimator_ = clusters
        self._keep(scales, segments, session)
        self._add_report(session.report())
        self._warn()
        return self

    @staticmethod
    def _scales(
        fit: Callable[..., Any], columns: list[Any], rows: np.ndarray, units: Any
    ) -> SimpleNamespace:
        """Means and variances of encoded columns, and of what is beyond ranges, with errors."""
        (low, high), numbers = _scaled(columns)
        moments = SimpleNamespace(**{name: np.zeros(len(low)) for name in _MOMENTS})
        if numbers.any():
            scaler = fit(_SCALES, rows[:, numbers], units)
            for name in _MOMENTS:
                getattr(moments, name)[numbers] = getattr(scaler, name)
        flags = fit(_FLAGS, rows[:, ~numbers], units)
        low, high, mean, error = low[~numbers], high[~numbers], flags.mean_, flags.mean_std_error_
        moments.mean_[~numbers], moments.mean_std_error_[~numbers] = mean, error
        moments.var_[~numbers] = (mean - low) * (high - mean)
        moments.var_std_error_[~numbers] = np.abs(low + high - 2 * mean) * error + error**2
        return moments

    @staticmethod
    def _fitted(session: Any, stages: Any, name: str, rows: np.ndarray, units: Any) -> Any:
        """One of the fits, paid for at once; nothing is left of it but what it released."""
        model, plan = stages[name]
        model.n_features_in_ = rows.shape[1]
        with suppress_output():
            without_callbacks(model)._fit_session(rows, units, session.inner(name, plan, name))
        private_names = {key for key in vars(model) if key[0] == "_"} - {"_provenance"}
        for attribute in {"labels_", *private_names}:
            vars(model).pop(attribute, None)
        return model.set_params(n_jobs=None)

    def _keep(self, scales: Any, segments: Any, session: Any) -> None:
        """Store what was released, and what follows from it."""
        models = list(segments.estimators_.values())
        self.sizes_, self.sizes_std_error_ = segments.sizes_, segments.sizes_std_error_
        self.means_ = np.array([model.mean_ for model in models])
        self.means_std_error_ = np.array([model.mean_std_error_ for model in models])
        released = SimpleNamespace(
            cluster_centers_=self.means_,
            cluster_centers_std_error_=self.means_std_error_,
            cluster_weights_=self.sizes_,
            messages_=Status(),
        )
        self.encoder_.output_bounds.note_fit(released)
        sizes, means = (self.sizes_, self.sizes_std_error_), (self.means_, self.means_std_error_)
        findings = Findings(self._balance, scales, *sizes, *means)
        shares = explained(findings, session.rng("made-up rows"))
        self.explained_, self.explained_std_error_, self.explained_without_structure_ = shares[:3]
        self.messages_ = status_of(findings, released.messages_, shares)

    def _released_parts(self) -> Any:
        return [((), self.estimator_)]

    # -- after the fit --------------------------------------------------------------------------

    @row_guard
    def predict(self, X: Any) -> np.ndarray:
        """Number of the segment of each row, as in `table`: from 1.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Rows, as for `fit`.

        Returns
        -------
        segments : ndarray of int32 of shape (n_samples,)
            Not private where the rows are.
        """
        check_is_fitted(self)
        return self.estimator_.predict(self._balance.rows(self.encoder_.transform(X))) + np.int32(1)


def profile(
    X: Any,
    schema: Any,
    n_segments: int = 5,
    *,
    epsilon: float | None = 1.0,
    delta: float = 1e-6,
    ledger: LedgerLike | None = None,
    groups: ArrayLike | None = None,
    weights: Mapping[Any, float] | None = None,
    random_state: RandomStateLike | None = None,
) -> DPProfile:
    """Divide persons into segments and describe each of them, in one call.

    Parameters
    ----------
    X : data frame or array-like of shape (n_samples, n_columns)
        Rows, in memory.
    schema : dict, Schema, or list
        Public: for each column a pair ``(low, high)`` of numbers, its range, or a list of its
        categories.
    n_segments : int, default=5
        Number of segments, at most 100.
    epsilon : float, default=1.0
        Privacy budget.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged once, before the data are read.
    groups : array-like of shape (n_samples,), optional
        The privacy unit of each row, such as the person that it is about.
    weights : dict, optional
        Weights of columns relative to the balance, 1 by default.
    random_state : int, RandomState instance or Generator, optional
        Any value but None makes the noise reproducible and voids the guarantee against anyone who
        knows it.

    Returns
    -------
    found : DPProfile
        Fitted. ``found.table`` is the result, ``found.plot()`` and ``found.save("report.html")``
        show it, and ``found.privacy_report_`` is the guarantee.

    See Also
    --------
    DPProfile : The estimator, with its attributes, guarantee and limits.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import profile
    >>> rows = np.random.default_rng(0).uniform(size=(3000, 2)) ** 8
    >>> found = profile(rows, [(0, 1), (0, 1)], n_segments=2)
    >>> found.table.index.tolist()[:2]
    [('size', 'rows'), ('0', 'mean')]
    """
    model = DPProfile(
        schema,
        n_segments,
        epsilon=epsilon,
        delta=delta,
        ledger=ledger,
        weights=weights,
        random_state=random_state,
    )
    return model.fit(X, groups=groups)
