"""Everything after the fit of clusterers with centers: post-processing of released centers. Of
private rows it is not private: only :meth:`BaseDPCenters.private_score` adds noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.look import COLUMNS, column_entries, look_at_columns
from .._aggregate.kmeans.lloyd_state import changed_sides
from .._aggregate.kmeans.quality import note_inertia
from .._aggregate.kmeans.result import EngineResult
from .._aggregate.shared.advice import told_of_outside
from .._aggregate.shared.column_codes import (
    REFINEMENT,
    RefinedCenters,
    codes_by_column,
    codes_of_centers,
    refined_centers,
    refinement_entry,
    told_by_column,
    unequal,
    unrefined_centers,
)
from .._base import (
    MOST_CLUSTERS,
    BaseDPEstimator,
    LedgerLike,
    RandomStateLike,
    budget_of,
    check_integer,
    check_real,
    check_weights,
)
from .._costs.numbers import check_choice
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._door import see_columns
from .._dropin import Replacing
from .._n_clusters import check_number_of_clusters
from .._parameters import SQUARABLE
from .._partitions import check_columns, engine_of
from .._privacy._grid import Domain, Sphere, unit_rows
from .._privacy._session import PrivacySession
from .._privacy._units import unit_of
from .._queries._query import TableRows
from .._queries.clusters import CappedSum
from .._queries.columns import Columns
from .._queries.grids import GridRows
from .._rows.nearest import UnitRows, nearest_point, nearest_seen, squares_to_nearest
from .._rows.rows import without_zeros
from .._rows.single_rows import SparseRows, distances, for_rows, narrowed, row_guard
from .._sklearn_compat import kmeans_of
from .._status import Message, Status

_MOST_COLUMNS = 100  # whose units are released where there are no bounds
_SCALES = 0.04, 0.2  # of the budget, for these units; at the most, where the rows are few
_UNITS = 0.03  # of the budget, for the units of columns where they are for the status only
_NARROW = 8.0  # times the scale of a column that a width tells nothing of
_ONE, _BOX, _FREE = 0.3, 0.15, 0.1  # of the budget: to refine a single center, and several
_ONE_UNIT = Message(
    "one_scale",
    "there are too few rows to estimate the scales of the columns, and columns with a smaller "
    "spread than others may be mostly noise",
    action="pass bounds or use more rows",
)


def unit_entries(domain: Domain | None, n_features: int, rho: float) -> tuple[PlanEntry, ...]:
    """Return the plan entries for the units of several columns, where there are no bounds."""
    if domain is not None or not 1 < n_features <= _MOST_COLUMNS:
        return ()
    return column_entries(math.nextafter(_UNITS * rho, 0.0))


def note_narrow(
    status: Status, columns: Columns, width: float, names: Sequence[object], what: str
) -> Status:
    """The status, with the columns that are far narrower than `what`, of a released width.

    >>> columns = Columns(np.zeros(2), np.array([20.0, 3e4]), True)
    >>> print(note_narrow(Status(), columns, 5e3, ["age", "salary"], "the ball"))
    the ball is far wider than some columns, so it says nothing about them: age
    """
    if status:
        return status
    words = f"{what} is far wider than some columns, so it says nothing about them"
    return status.add_columns("narrow_columns", words, names, is_narrow(columns, width))


def is_narrow(columns: Columns, width: float) -> np.ndarray:
    """True where a column is far narrower than a released width; never where units are unknown."""
    free = np.full(len(columns.scale), columns.scaled)
    if columns.box is not None and columns.box.low is not None and columns.box.high is not None:
        free &= columns.box.low < columns.box.high
    return free & (width > _NARROW * columns.scale)


class ColumnsOfCenters:
    """The units of the columns in one fit, and the centers refined in them."""

    def __init__(self, domain: Domain | None, n_features: int, one_center: bool) -> None:
        self._one = one_center
        self.columns: Columns | None = Columns.of(domain, n_features)
        self.single = np.zeros(n_features, dtype=bool)  # columns of which one value has been seen
        self.scales = self.refined = 0.0
        if domain is None:
            if n_features <= _MOST_COLUMNS and (n_features > 1 or one_center):
                self.scales, self.refined = _SCALES[0], _ONE if one_center else _FREE
        elif one_center and domain.low is not None:
            self.refined = _ONE
        elif unequal(domain):
            self.refined = _BOX

    def entries(self, rho: float) -> tuple[PlanEntry, ...]:
        """The plan entries, the last of a plan of `rho` in all."""
        if not self.refined:
            return ()
        shares = (math.nextafter(share * rho, 0.0) for share in _SCALES)
        scales = column_entries(*shares) if self.scales else ()
        return (*scales, refinement_entry(self.refined * rho))

    def look(self, session: PrivacySession, table: TableRows) -> Callable[[float], None] | None:
        """Return a function of the released number of rows, which releases the units."""

        def release(size: float) -> None:
            profile = look_at_columns(session, table, size)
            self.columns = None
            if (profile.told | profile.single).all():
                self.columns, self.single = profile.columns, profile.single
            session.waive(COLUMNS)
            if self.columns is None or not (self._one or unequal(self.columns)):
                session.waive(REFINEMENT)
                self.refined = 0.0

        return release if self.scales else None

    def finish(
        self, session: PrivacySession, table: TableRows, result: EngineResult
    ) -> tuple[EngineResult, RefinedCenters]:
        """The result, and its centers by column, refined if that was planned and is needed."""
        centers, errors = result.centers, result.centers_sd
        assert errors is not None
        if self.columns is None and not result.status:
            result = replace(result, status=Status([_ONE_UNIT]))
        if self.refined and self.columns is not None:
            known = unrefined_centers(self.columns, centers, errors)
            columns, size = self.columns, result.size
            refined = refined_centers(session, table, columns, known, result.square, size)
            result = _pool_weights(result, refined)
        else:
            refined = unrefined(result, self.columns if self.scales else None)
            refined = refined._replace(unknown=self.columns is None and centers.shape[1] > 1)
        refined = refined._replace(constant=refined.constant | self.single)
        if self.scales:  # without bounds nothing limits what the noise hides beside one value
            refined = refined._replace(
                std_error=np.where(refined.constant, np.inf, refined.std_error)
            )
        return result, refined._replace(
            beyond=refined.beyond + 1.0
        ) if result.bound_clips_rows else refined


def _pool_weights(result: EngineResult, released: RefinedCenters) -> EngineResult:
    """Replace the weights of clusters by the inverse-variance mean of two releases."""
    if released.numbers is None:
        return result
    numbers, numbers_sd = released.numbers
    weights, sd, since = result.weights, result.weights_sd, result.weights_drift
    assert sd is not None and since is not None
    first = np.square(sd) + np.square(since)
    gain = first / (first + numbers_sd**2)
    weights = weights + gain * (numbers - weights)
    # What has changed sides before is in the first number alone.
    noise = np.hypot((1 - gain) * sd, gain * numbers_sd)
    gone = changed_sides(result.centers, released.centers, weights)
    gone = np.hypot((1 - gain) * since, gone)
    return replace(result, weights=weights, weights_sd=noise, weights_drift=gone)


def unrefined(result: EngineResult, columns: Columns | None = None) -> RefinedCenters:
    """Centers that were not refined; by default columns have the same part of the spread."""
    (_, d), quality = result.centers.shape, result.quality
    assert quality is not None and result.centers_sd is not None
    if columns is None:
        total = max(quality.total, quality.total_sd) / max(result.size, 1.0)
        columns = Columns(np.zeros(d), np.full(d, math.sqrt(total / d)), False)
    return unrefined_centers(columns, result.centers, result.centers_sd)


# -- metrics ---------------------------------------------------------------------------------------


# For directions x and c, |x - c|^2 / 2 = 1 - x.c: k-means of directions is spherical k-means, but
# that the lengths of means matter a little until they are scaled to 1 and released. A row of zeros
# stays at the origin, at the distance 1/2 from every center.
class Euclidean:
    """Rows as they are; a sum of costs is one of squared distances."""

    cost = 1.0  # of a squared distance
    largest: float | None = None  # longer distances count as this in a private score; None: radius_

    def domain(self, n_features: int) -> Domain | None:
        """Return the domain that all rows are moved to first."""
        return None

    def rows(self, X: Any) -> Any:
        """Valid rows as they are compared with centers."""
        return X

    def centers(self, means: np.ndarray) -> np.ndarray:
        """Centers of clusters with these means."""
        return means

    def distances(self, X: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Distances (n, k) of such rows to released centers, each a function of its row alone."""
        return distances(X, centers)

    def length(self, distance: float) -> float:
        """The Euclidean length of a distance."""
        return distance

    def to_sklearn(self, centers: np.ndarray, released: dict[str, Any]) -> KMeans | Pipeline:
        """Released centers as a model of scikit-learn."""
        return kmeans_of(centers, **released)


class Cosine(Euclidean):
    """Directions of rows; a cost is the cosine distance, 1 - cosine."""

    cost = 0.5
    largest = 1.0

    def domain(self, n_features: int) -> Domain:
        return Sphere.of(n_features)

    def rows(self, X: Any) -> Any:
        if not isinstance(X, SparseRows) or not X.width:
            return UnitRows(X)
        table = X.entries(slice(0, len(X)))
        table.data = without_zeros(table, unit_rows).astype(X.dtype)
        return SparseRows(table)

    def centers(self, means: np.ndarray) -> np.ndarray:
        return unit_rows(means)

    def distances(self, X: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Cosine distances, which lose no digits where they are small."""
        return self.cost * np.square(distances(X, centers))

    def length(self, distance: float) -> float:
        return float(np.sqrt(distance / self.cost))

    def to_sklearn(self, centers: np.ndarray, released: dict[str, Any]) -> Pipeline:
        """K-means of normalized rows, whose inertia is that of squared distances."""
        columns = {name: released[name] for name in released if name.endswith("_in_")}
        released = {**released, "inertia_": released["inertia_"] / self.cost}
        released.pop("feature_names_in_", None)  # normalized rows are an array
        normalizer = Normalizer()
        vars(normalizer).update(columns)
        return make_pipeline(normalizer, kmeans_of(centers, **released))


def metric_of(name: Any) -> Euclidean:
    """The metric that a user asks for by its name."""
    check_choice("metric", name, ("euclidean", "cosine"))
    return Cosine() if name == "cosine" else Euclidean()


# -- centers ---------------------------------------------------------------------------------------


CENTERS_WITH_ERRORS = {
    "cluster_centers_": (-np.inf, np.inf),
    "cluster_weights_": (0.0, np.inf),
    "explained_": (0.0, 1.0),
    "inertia_": (0.0, np.inf),
    "size_": (0.0, np.inf),
}
"""Attributes of the k-means estimators that have a standard error, and their ranges."""


class BaseDPCenters(
    Replacing, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseDPEstimator
):
    """Base class of the k-means estimators: predict, transform and score from released centers."""

    _centers = "cluster_centers_"
    _replaces = "KMeans"
    _score_is_a_mean = False
    _feature_axes = {"cluster_centers_": 1}

    n_clusters: Any  # an integer; those that choose the number take more
    criterion = "auto"  # a parameter of those that choose the number of clusters
    metric = "euclidean"  # a parameter of DPKMeans

    _chooses_number = False
    radius_: float
    bound_: float
    rows_beyond_: float
    cluster_centers_: np.ndarray

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain why a model has no labels; all else is for the base class to explain."""
            if name == "labels_" and self.__sklearn_is_fitted__():
                raise AttributeError(
                    f"{type(self).__name__} has no labels_ here: the labels of training rows are "
                    "not released. A fit keeps them in memory only, and pickles and copies leave "
                    "them out. Use predict(X) for rows that you have.",
                    name=name,
                    obj=self,
                )
            return super().__getattr__(name)

    def _check_parameters(self, n_features):
        self._asked_number()

    def _asked_number(self):
        """The number of clusters, or the candidates for it."""
        if not self._chooses_number:
            return check_integer(self.n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS)
        return check_number_of_clusters(self.n_clusters, "n_clusters", self.criterion)

    def _columns(self, n_features):
        return ColumnsOfCenters(self._domain(n_features), n_features, self._asked_number() == 1)

    @property
    def n_clusters_(self) -> int:
        """The number of clusters: the given one, or what the releases have shown."""
        check_is_fitted(self)
        return len(self.cluster_centers_)

    def _set_centers(self, centers, weights):
        """Store released centers (k, d) by decreasing weight (k,); noise makes some negative."""
        order = np.argsort(-weights, kind="stable")
        self.cluster_centers_ = centers[order]
        self.cluster_weights_ = np.maximum(weights[order], 0.0)

    def _labeled_by(self):
        return partial(nearest_seen, centers=self.cluster_centers_, rows_of=self._distance.rows)

    def _store(self, result, columns, unit_weight=1.0):
        """Store an `EngineResult`, refined by `columns`, of units of weight `unit_weight`."""
        self.radius_, self.messages_ = result.radius, result.status
        self.n_iter_ = result.n_iterations
        if result.choice is not None:
            self.n_clusters_criterion_ = result.choice.criterion
        if result.beyond is not None:
            self.bound_, self.rows_beyond_ = result.bound, unit_weight * result.beyond
        quality = result.quality
        costs = np.array([quality.inertia, quality.inertia_sd]) * unit_weight * self._distance.cost
        self.size_, self.size_std_error_ = unit_weight * result.size, unit_weight * result.size_sd
        self.inertia_, self.inertia_std_error_ = narrowed(costs, np.float64).tolist()
        self.explained_, self.explained_std_error_ = result.explained
        codes = codes_of_centers(columns, result.weights, result.weights_sd)
        names = self._column_names
        messages = note_inertia(told_by_column(result.status, columns, codes, names), quality)
        self.messages_, cut = self._outside(messages, result, columns, names)
        self._set_centers(columns.centers, unit_weight * result.weights)
        order = np.argsort(-result.weights, kind="stable")  # that of the centers
        noise = unit_weight * result.weights_sd[order]
        since = unit_weight * result.weights_drift[order]
        self._weights_errors = noise, since  # for later days, in which both fade by their own laws
        self.cluster_weights_std_error_ = np.hypot(noise, since)
        self.cluster_centers_std_error_ = columns.std_error[order]
        codes[:, cut] = np.where(codes[:, cut] == "ok", "bound", codes[:, cut])
        self.cluster_centers_status_ = codes[order]
        self.column_status_ = codes_by_column(codes)

    def _outside(self, status, result, columns, names):
        """The status, with rows beyond public bounds, and the columns that these cut."""
        d, quality, size = len(names), result.quality, max(result.size, 1.0)
        domain = self._domain(d)
        if domain is None or isinstance(domain, Sphere):
            return status, np.zeros(d, dtype=bool)
        real = result.weights > 3 * result.weights_sd
        centers, errors = columns.centers[real], columns.std_error[real]
        # Of columns that have no spread of their own, what is typical.
        around = np.square(centers - columns.centers.mean(axis=0)).sum(axis=0)
        spread = np.sqrt(quality.inertia / size / d + around / max(len(centers), 1))
        share = quality.outside / size, quality.outside_sd / size
        sure = centers, errors, spread, columns.beyond
        return told_of_outside(status, domain, *sure, share, names)

    @property
    def _distance(self):
        return metric_of(self.metric)

    def _compared(self, X):
        """Rows that a user gave, as they are compared with the centers."""
        return self._distance.rows(self._validate_predict(X))

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Index of the nearest released center for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows; sparse ones where `fit` takes them.

        Returns
        -------
        labels : ndarray of int32 of shape (n_samples,)
            Rows of `cluster_centers_`.
        """
        return nearest_point(self._compared(X), self.cluster_centers_)

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Distances to the released centers; with ``metric="cosine"`` cosine distances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows; sparse ones where `fit` takes them.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Of each row, which do not depend on the other rows, bit for bit.
        """
        rows = self._compared(X)
        to_centers = partial(self._distance.distances, centers=self.cluster_centers_)
        return for_rows(to_centers, rows, self._n_features_out)

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the sum of squared distances to the nearest center, or of cosine distances.

        No noise and no charge: the score of private rows is not private.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows; sparse ones where `fit` takes them.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row; not clipped.

        Returns
        -------
        score : float
            At most 0. Not private where the rows are.
        """
        costs = squares_to_nearest(self._compared(X), self.cluster_centers_)
        costs *= self._distance.cost
        if sample_weight is not None:
            costs *= check_weights(sample_weight, len(costs))
        return -float(narrowed(costs.sum(), np.float64))

    @row_guard
    def private_score(
        self,
        X: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | bool | None = None,
        max_distance: float | None = None,
        random_state: RandomStateLike | None = None,
    ) -> float:
        """Release the :meth:`score` of private rows with noise; it costs what it is given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows; sparse ones where `fit` takes them. Or a table in parts.
        groups : array-like of shape (n_samples,), optional
            As in :meth:`fit`.
        epsilon : float, default=1.0
            Cost of this one number.
        delta : float, default=1e-6
            Probability that the epsilon limit fails; keep it far below one over the number of
            units.
        rho : float, optional
            Cost in zero-concentrated DP. Give it in place of `epsilon`.
        ledger : None, False, str, path or PrivacyLedger, optional
            None: the ledger of the estimator, which for the result of a search or a segment is
            that of the whole. False: none, for rows that no ledger keeps account of.
        max_distance : float, optional
            Public: longer distances are capped at this one. `radius_` by default, or 1 for cosine
            distances; between 1e-140 and 1e140.
        random_state : int, RandomState instance or Generator, optional
            As for the estimator.

        Returns
        -------
        score : float
            Minus the noisy sum over units of the mean squared distance of their rows.

        Notes
        -----
        One Gaussian release: (epsilon, delta)-differentially private for adding or removing one
        row (with `groups`: one group), by exact Gaussian-DP accounting. It holds for replacing one
        as well: each unit adds at least 0, and at most what `max_distance` costs.
        """
        check_is_fitted(self)
        metric = self._distance
        cap = metric.largest or getattr(self, "radius_", None)
        if max_distance is not None:
            cap = check_real(max_distance, "max_distance", **SQUARABLE)
        if cap is None:
            raise ValueError("max_distance must be given, because there is no `radius_`.")
        cap = max(cap, 2 * SQUARABLE["low"])  # a released radius may be smaller
        budget = budget_of(epsilon, delta, rho)
        source = engine_of(X, groups)
        if source is not None:
            check_columns(self, source)
        else:
            see_columns(self, X, self._schema(X), reset=False)
        unit = unit_of(groups if source is None or groups is None else ())
        words = "squared largest distance"
        entry = PlanEntry("score", Mechanism.GAUSSIAN, budget.to_rho(), sensitivity=words)
        session = PrivacySession(
            PrivacyPlan(budget, (entry,), unit, relation=self._relation(unit)),
            random_state=random_state,
            ledger=self._payer(ledger),
            label=f"{type(self).__name__}.private_score",
        )
        if source is None:
            valid = self._validate_predict(X)
            table = TableRows.in_memory(valid, self._units(valid, groups))
        else:
            table = TableRows(source.opened(getattr(self, "n_jobs", None)))
        # Squares of float32 may overflow. Rows farther than `reach` from the middle are moved to
        # that sphere: there, too, no center is nearer than the cap, so their cost does not change.
        centers, length = self.cluster_centers_.astype(np.float64), metric.length(cap)
        middle = centers.mean(axis=0)
        reach = float(np.linalg.norm(centers - middle, axis=1).max(initial=0.0)) + length
        within = metric.domain(self.n_features_in_)
        grid = GridRows.quantize(table, Domain(middle, reach), within)
        answer = grid.ask(CappedSum(np.rint((centers - middle) / grid.unit), length))
        return -metric.cost * float(session.release("score", answer)[0])

    def to_sklearn(self) -> KMeans | Pipeline:
        """The released centers as an estimator of scikit-learn.

        Returns
        -------
        kmeans : sklearn.cluster.KMeans
            Fitted; it holds released values only, and has no `labels_`. With ``metric="cosine"`` it
            is the last step of a `Pipeline`, after a `Normalizer`.
        """
        check_is_fitted(self)
        names = ("n_features_in_", "feature_names_in_", "inertia_", "n_iter_")
        released = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return self._distance.to_sklearn(self.cluster_centers_, released)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
