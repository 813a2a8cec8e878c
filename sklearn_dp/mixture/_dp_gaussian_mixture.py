"""Differentially private Gaussian mixtures."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.answer import RowsBeyond, outside_entries
from .._aggregate.kmeans.fit_context import Candidates
from .._aggregate.mixture.fit import fit_day, fit_from_others, fit_mixture
from .._aggregate.mixture.mixture_plan import MixtureDays, failure_delta, mixture_entries
from .._aggregate.mixture.parts import METHODS, Settings
from .._aggregate.moments.ellipsoid import FORMS
from .._aggregate.moments.moment_releases import MOMENTS, moment_entries
from .._aggregate.tuples import AGGREGATORS
from .._base import Bounds, LedgerLike, RandomStateLike, check_real
from .._costs.numbers import check_choice, is_real, sum_down
from .._days import WITHOUT_BOUNDS, BaseByDays
from .._dropin import Replacing
from .._guarantee import check_no_ledger
from .._intervals import StandardErrors
from .._n_clusters import check_number_of_clusters
from .._parameters import check_auto, check_options
from ._released import BaseReleasedMixture


@dataclass(frozen=True)
class KTupleOptions:
    """Options of ``DPGaussianMixture(method="k_tuples")``.

    Parameters
    ----------
    n_tuples : int or "auto", default="auto"
        Number of blocks; public. By default the number that the aggregator needs at this budget, or
        none (only the coreset) if a friendly core needs more than 1000, at an epsilon below about
        4. The coreset is also used with fewer than 20 rows for each block and component.
    aggregator : {"auto", "friendly_core", "k_averages", "noisy_centers"}, default="auto"
        See :class:`~sklearn_dp.DPKTupleKMeans`.
    inner : estimator, optional
        Any clusterer with ``labels_`` or ``predict`` after `fit`, a function of its rows and its
        ``random_state`` alone. By default k-means, on the first principal components if there are
        more features than components.

    Examples
    --------
    >>> from sklearn.cluster import AgglomerativeClustering
    >>> from sklearn_dp import DPGaussianMixture
    >>> from sklearn_dp.mixture import KTupleOptions
    >>> options = KTupleOptions(n_tuples=200, inner=AgglomerativeClustering(3))
    >>> DPGaussianMixture(3, method="k_tuples", options=options, epsilon=8.0).method
    'k_tuples'
    """

    n_tuples: int | str = "auto"
    aggregator: str = "auto"
    inner: Any = None

    def check(self) -> None:
        """Refuse bad values by name."""
        check_choice("aggregator", self.aggregator, ("auto", *AGGREGATORS))
        check_auto(self.n_tuples, "n_tuples", low=2, high=2**20)
        if self.inner is not None and not hasattr(self.inner, "fit"):
            raise TypeError("inner must be an estimator.")
        check_no_ledger(self.inner, "inner")


@dataclass(frozen=True)
class PartitionOptions:
    """Options of ``DPGaussianMixture(method="partition")``.

    Parameters
    ----------
    balls : {"joint", "points"}, default="joint"
        "joint" chooses balls around released candidates. "points" is the published method, with
        balls around data points; it compares all pairs of a sample and needs budgets of several
        units of epsilon. It did not outperform "joint" in our benchmarks: with 2000 rows of three
        distant components "joint" finds all parts at an epsilon of 4, and "points" only at 64.
    separation : float, default=1.5
        How much larger than a ball the empty region around it must be; above 1. The paper has 5,
        which only very distant components satisfy.
    min_weight : float, optional
        Smallest weight of a component; 1 / (2 n_components) by default. Half as many rows must be
        on each side of a cut.
    """

    balls: str = "joint"
    separation: float = 1.5
    min_weight: float | None = None

    def check(self) -> None:
        """Refuse bad values by name."""
        check_choice("balls", self.balls, ("joint", "points"))
        check_real(self.separation, "separation", low=1.0, high=1e3)
        if self.min_weight is not None:
            check_real(self.min_weight, "min_weight", high=1.0)


_OPTIONS: dict[str, Any] = {"k_tuples": KTupleOptions, "partition": PartitionOptions}


def options_of(method: str, options: object) -> Any:
    """The options of a method, with its defaults for None; None where it has none."""
    check_options(_OPTIONS, "method", method, options)
    return _OPTIONS[method]() if options is None and method in _OPTIONS else options


class DPGaussianMixture(Replacing, StandardErrors, BaseReleasedMixture, BaseByDays):
    """Gaussian mixture with differential privacy.

    A private partition isolates the components. Rounds of private expectation maximization then
    release the counts, sums and second moments of all components at the cost of one. Each component
    is whitened by what has been released about it and clipped in that norm, so the noise is
    proportional to its own covariance. Columns are scaled by their released spreads first; columns
    in which many rows share a value, such as flags and codes, have less weight in the search.

    Parameters
    ----------
    n_components : int, "auto" or pair (low, high), default=1
        Number of components, public. With "auto" the fit chooses it from 1 to 30, with a pair from
        that range, using the coreset of the partition or, above 5 features, noisy iterations of its
        k-means (``method="coreset"`` only).
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). Rows outside are clipped. None: location and scale are found
        privately, which costs very little here.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    criterion : {"auto", "gap", "bic", "silhouette"}, default="auto"
        Criterion for choosing the number of clusters; see :class:`~sklearn_dp.DPKMeans`. It has no
        effect if the number is given.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        As in :class:`sklearn.mixture.GaussianMixture`. Types with fewer parameters need fewer rows.
    method : {"auto", "coreset", "k_tuples", "partition"}, default="auto"
        How components are isolated. "coreset": the private k-means engine. "k_tuples": the means of
        non-private clusterings of random blocks of one half of the rows are aggregated; the other
        half is for estimation, and each half has the whole budget. "partition": balls that are
        full, with empty space around them and other rows outside, divide the rows in two,
        repeatedly, in the whole space and along principal components; with
        ``covariance_type="spherical"`` and `bounds`, principal components of one half and then one
        small ball after the other in the other half. If the releases show that a method finds no
        components, a private coreset replaces it. "auto" is "coreset": neither other method
        outperformed it in our benchmarks (``doc/benchmarks/mixture.md``).
    max_weight : float, optional
        Public: weights are capped at this, and the noise is that for a row of this weight. None:
        an array of weights is refused. Only "coreset" takes weights.
    options : KTupleOptions or PartitionOptions, optional
        Options of `method` if it is "k_tuples" or "partition".
    n_jobs : int, optional
        Number of threads, and of blocks of "k_tuples" fitted at the same time through joblib.
        Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    n_components_ : int
        Number of components: `n_components`, or the chosen number.
    n_components_criterion_ : dict of int to float
        If the number was chosen: the criterion for each candidate; larger is better.
    weights_ : ndarray of shape (n_components,)
        Released weights, in decreasing order.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray
        Of shape (n_components, n_features, n_features) for "full", (n_features, n_features) for
        "tied", (n_components, n_features) for "diag" and (n_components,) for "spherical".
    precisions_, precisions_cholesky_ : ndarray
        Inverses of the covariances, and factors of these, with the same shapes.
    covariance_type_ : str
        The `covariance_type` at the time of the fit.
    size_ : float
        Released noisy number of units; with `sample_weight`, their total weight.
    radius_ : float
        Released radius around a released mean to which the first step clips rows.
    rows_beyond_ : float
        Upper bound, at 95% confidence, for the number of units (total weight) beyond it, from
        released values; with `bounds`, after clipping to these.
    n_iter_ : int
        Number of rounds of private expectation maximization.
    means_std_error_, covariances_std_error_, weights_std_error_
        Standard errors of the three, of the same shapes: they cover noise, sampling and, for data
        that are not normal, the possible bias of clipping, if the component of each unit is known.
        Infinite if nothing was found, or without bounds in a column of a single visible value.
    converged_ : bool
        The same as `trustworthy_`: by the releases, all components stand out from the noise.
    column_status_ : ndarray of str of shape (n_features,)
        For each column the worst that there is to say of it in any component: "ok"; "constant"
        where all that can be seen is one value; "variance" where the means can be relied on, but
        not the variances and covariances; "bound" where many rows are beyond the `bounds`; or
        "noise" where the noise hides a mean.
    component_status_ : ndarray of str of shape (n_components,)
        For each component the worst of these in any column that has more than one value.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. Without
        `bounds` they say how many rows may lie beyond `radius_`.
    path_ : str
        Algorithm branch selected by the releases: "coreset", "k_tuples", "partition", or one of the
        latter two and ", then coreset"; in a fit of `DPBySegment` "segments".
    days_ : Days
        After `partial_fit`: the number of days, the name of the last one, and what is kept for the
        next, all of it released.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPKMeans : The centers only.
    FriendlyCovariance : One component.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which share one weight) with any weight, for any data, whether or
    not they are a mixture. With "coreset" all releases are Gaussian and the accounting is exact.
    The other methods also contain selections and are accounted as zCDP, with failures within half
    of delta for "k_tuples", and within a tenth for "partition" if it needs any. Releases about
    disjoint parts of the rows, such as random halves or the two sides of a cut, cost only what one
    row can be part of (parallel composition). The number of rows is private; the number of
    components is public, and exactly `n_components` are returned.

    `predict`, `predict_proba`, `score_samples`, `score`, `bic` and `aic` are functions of the
    released mixture and of the rows they are given. They cost nothing, but their results for
    private rows are not private: do not publish them, and do not use them to choose `n_components`.

    Measured at epsilon of 1 and 4 with 2 to 20 features: full covariances within a total variation
    distance of 0.2 need about ``(300 + 20 n_features ** 2) / epsilon`` rows in each component, if
    means are at least four standard deviations apart; errors are up to three times larger at three.

    References
    ----------
    * Kamath, G., Sheffet, O., Singhal, V. and Ullman, J. (2019). Differentially private algorithms
      for learning mixtures of separated Gaussians. NeurIPS. Algorithms 1 to 5, corrected.
    * Cohen, E., Kaplan, H., Mansour, Y., Stemmer, U. and Tsfadia, E. (2021). Differentially-private
      clustering of easy instances. ICML. PrivatekGMM, corrected.
    * Biswas, S., Dong, Y., Kamath, G. and Ullman, J. (2020). CoinPress: practical private mean and
      covariance estimation. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(8000, 2)), rng.normal(size=(2000, 2)) * [3, 1] + 20])
    >>> model = DPGaussianMixture(2, epsilon=1.0).fit(X)
    >>> model.weights_.round(1)
    array([0.8, 0.2])
    >>> model.means_.round(0) + 0.0
    array([[ 0.,  0.],
           [20., 20.]])
    """

    _replaces = "GaussianMixture"
    _centers = "means_"
    _of_others: Any = None  # in `DPBySegment`: a released mixture of other rows to start from
    _earlier_days: MixtureDays | None = None
    _with_errors = {
        "means_": (-math.inf, math.inf),
        "covariances_": (-math.inf, math.inf),
        "weights_": (0.0, 1.0),
    }

    def __init__(
        self,
        n_components: int | str | tuple[int, int] = 1,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        criterion: str = "auto",
        covariance_type: str = "full",
        method: str = "auto",
        max_weight: float | None = None,
        options: KTupleOptions | PartitionOptions | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_components = n_components
        self.bounds = bounds
        self.criterion = criterion
        self.covariance_type = covariance_type
        self.method = method
        self.max_weight = max_weight
        self.options = options

    def _no_days(self):
        if isinstance(self.method, str) and self.method not in ("auto", "coreset"):
            return f"with method={self.method!r}. Use method='auto'."
        if self.bounds is None:
            return WITHOUT_BOUNDS
        return None

    def _check_parameters(self, n_features):
        asked = self._asked_number()
        for name, known in (("covariance_type", FORMS), ("method", ("auto", *METHODS))):
            check_choice(name, getattr(self, name), known)
        options_of(self.method, self.options)
        if isinstance(asked, Candidates) and self.method not in ("auto", "coreset"):
            raise ValueError(f"n_components must be an integer for method={self.method!r}.")

    def _asked_number(self):
        """The number of components, or the candidates for it; public."""
        asked = self.n_components, "n_components", self.criterion
        return check_number_of_clusters(*asked, high=2**10)

    @property
    def n_components_(self) -> int:
        """The number of components: the given one, or what the releases have shown."""
        check_is_fitted(self)
        return len(self.weights_)

    @property
    def _feature_axes(self):  # type: ignore[override]
        axes = {"diag": 1, "spherical": 0}.get(self.covariance_type_, 2)
        return {"means_": 1, "covariances_": axes}

    def _settings(self):
        """Settings of the fit, which are public; "auto" too."""
        method = "coreset" if self.method == "auto" else self.method
        how = self._asked_number(), self.covariance_type, method, options_of(method, self.options)
        return Settings(*how, self.bounds is not None, is_real(self.bounds))

    def _budget(self, target, settings):
        """Entries of the first counts, rho for the rest, and the part of delta for failures."""
        failure = failure_delta(target.delta, settings, whole=target.rho is not None)
        gaussian = settings.method == "coreset" or settings.n_components == 1
        rho = target.to_rho(gaussian=gaussian, delta_failure=failure)
        first = outside_entries(rho, self.bounds)
        return first, sum_down([rho, *(-entry.rho for entry in first)]), failure

    def _plan_entries(self, target, n_features):
        settings = self._settings()
        first, rho, failure = self._budget(target, settings)
        if self._earlier() is not None:
            return (*first, *self._earlier().entries(rho, n_features, settings))
        if self._of_others:
            return (*first, *moment_entries(rho))
        return (*first, *mixture_entries(rho, failure, n_features, settings))

    def _fit_validated(self, X, groups, sample_weight=None):
        if sample_weight is not None:
            self._check_weighted()
        return super()._fit_validated(X, groups, sample_weight)

    def _check_weighted(self):
        """Refuse weights with tuples and balls, which are made of whole rows."""
        check_choice("method", self.method, ("auto", *METHODS))
        if self.method not in ("auto", "coreset"):
            raise ValueError("sample_weight: only method='coreset' takes weights of rows.")

    def _fit_parts(self, source):
        if source.weighted:  # by `fit_partitions`, too
            self._check_weighted()
        return super()._fit_parts(source)

    def fit_predict(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        """Fit, then predict the same rows. The labels are not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite. Rows outside `bounds` are clipped.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            As in :meth:`fit`.
        groups : array-like of shape (n_samples,), optional
            As in :meth:`fit`.

        Returns
        -------
        labels : ndarray of int of shape (n_samples,)
            Index of a component for each row of `X`: not private.
        """
        return self.fit(X, y, sample_weight, groups=groups).predict(X)

    def _fit_table(self, table, session, progress):
        settings, domain = self._settings(), self._domain(table.n_features)
        beyond, of_table = RowsBeyond.of(session, table, domain), (session, table, domain)
        if self._earlier() is not None:
            result = fit_day(*of_table, settings, self._earlier(), self._today.keep)
            beyond = self._today.fitted._outside.and_one(beyond, self._today.keep)
        elif self._of_others:
            result = fit_from_others(*of_table, settings, self._of_others, progress)
        else:
            _, *budget = self._budget(session.plan.target, settings)
            result = fit_mixture(*of_table, settings, budget, progress)
        self._earlier_days = result.days if self._no_days() is None else None
        rounds = sum(line["release"] == MOMENTS for line in session.report().releases)
        self._outside = beyond
        self._store(result, table.units.unit_weight, rounds)
