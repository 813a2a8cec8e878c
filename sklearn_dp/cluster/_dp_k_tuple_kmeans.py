"""K-means through sample-and-aggregate, and the private aggregation of k-tuples by itself.

Non-private k-means runs on blocks, its centers are aggregated
(:class:`~sklearn_dp._aggregate.tuples.TupleStage`), and Lloyd iterations on all rows follow.
:func:`aggregate_k_tuples` is for k-tuples that are there already.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from .._aggregate.kmeans.engine import engine_entries, fit_engine, last_entries
from .._aggregate.kmeans.fit_context import Candidates, Context
from .._aggregate.kmeans.lloyd import lloyd, lloyd_budget
from .._aggregate.kmeans.n_clusters import reference_number
from .._aggregate.kmeans.private_coreset import BlockKMeans, choose_separately, separate_entries
from .._aggregate.kmeans.result import build_result, measured
from .._aggregate.shared.bounds import known_or_paid
from .._aggregate.shared.centering import Size, Weights, noise_sd
from .._aggregate.tuples import AGGREGATORS, COPY_RATE, TupleStage
from .._base import BaseWeighted, Bounds, LedgerLike, RandomStateLike, budget_of, check_real
from .._columns import NUMBERS, Schema
from .._costs.numbers import check_choice, sum_down, warn
from .._costs.plan import PlanEntry, PrivacyPlan
from .._costs.report import PrivacyReport
from .._door import rows_of, schema
from .._door_entries import lists_rows
from .._intervals import StandardErrors
from .._parameters import check_auto, check_options, domain_of
from .._partitions import engine_of_parts
from .._privacy._entries import dtype_of, kind_of
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._queries._query import TableRows
from .._queries.blocks import BlockFits, fit_blocks
from .._queries.grids import GridRows
from .._queries.samples import numbered, released_numbers
from .._queries.separated_balls import LEAST_SEPARATION
from .._queries.tuples import MATCH_LIMIT
from .._rows.single_rows import row_guard, saturated
from .._status import Message, Status
from ..exceptions import UtilityWarning
from ._centers import CENTERS_WITH_ERRORS, BaseDPCenters


@dataclass(frozen=True)
class FriendlyCoreOptions:
    """Options of ``aggregator="friendly_core"``.

    Parameters
    ----------
    gamma : float, default=0.2
        Two tuples match if every point is nearer to its partner than gamma times its distance to
        any other point. In (0, 1/5]: above 1/5 matches no longer compose, and the guarantee would
        not hold. Smaller values require clusters that are farther apart.

    Examples
    --------
    >>> from sklearn_dp import DPKTupleKMeans
    >>> from sklearn_dp.cluster import FriendlyCoreOptions
    >>> options = FriendlyCoreOptions(gamma=1 / 7)
    >>> DPKTupleKMeans(3, aggregator="friendly_core", options=options).options.gamma < 0.2
    True
    """

    gamma: float = MATCH_LIMIT

    def check(self) -> None:
        """Refuse bad values by name."""
        if check_real(self.gamma, "gamma") > MATCH_LIMIT:
            raise ValueError("gamma must be positive and at most 1/5.")


@dataclass(frozen=True)
class FarBallsOptions:
    """Options of ``aggregator="k_averages"`` and ``aggregator="noisy_centers"``.

    Parameters
    ----------
    separation : float, optional
        Distance, in radii, between the centers of the balls that must partition nearly all tuples;
        more than 6. A larger separation means smaller balls and less noise, but the tuples must
        agree more closely. The default is 7 for "k_averages"; for "noisy_centers" the noise of a
        center is about one seventh of its distance to the next one.
    """

    separation: float | None = None

    def check(self) -> None:
        """Refuse bad values by name."""
        if self.separation is not None:
            check_real(self.separation, "separation", low=LEAST_SEPARATION, high=1e6)


_KINDS: dict[str, type] = {
    "friendly_core": FriendlyCoreOptions,
    "k_averages": FarBallsOptions,
    "noisy_centers": FarBallsOptions,
}


def aggregator_settings(aggregator: str, options: object) -> dict[str, Any]:
    """The options of an aggregator as arguments of the tuple stage, which has their defaults."""
    check_options(_KINDS, "aggregator", aggregator, options)
    return {} if options is None else asdict(options)  # type: ignore[call-overload]


# -- k tuples --------------------------------------------------------------------------------------


_DELTA_SHARE = 0.5  # for the failures of the aggregation; the rest is for the conversion
_DISAGREE = Message("no_agreement", "the tuples do not agree", severity="all")


@dataclass(frozen=True)
class KTupleResult:
    """The result of :func:`aggregate_k_tuples`.

    Parameters
    ----------
    centers : ndarray of shape (k, d) or None
        The centers, in arbitrary order; None if the tuples do not agree.
    messages : tuple of Message
        Why there are no centers; empty if there are some.
    privacy_report : PrivacyReport
        The guarantee, and every release that it covers.
    """

    centers: np.ndarray | None
    messages: Status
    privacy_report: PrivacyReport

    @property
    def status(self) -> str:
        """One word: "ok" or "unusable"."""
        return self.messages.word


@row_guard
def aggregate_k_tuples(
    tuples: ArrayLike,
    *,
    epsilon: float | None = 1.0,
    delta: float = 1e-6,
    rho: float | None = None,
    bounds: Bounds,
    ledger: LedgerLike | None = None,
    aggregator: str = "auto",
    relation: str = "replace",
    options: FriendlyCoreOptions | FarBallsOptions | None = None,
    random_state: RandomStateLike | None = None,
) -> KTupleResult:
    """Release points that most of some unordered k-tuples of points agree on.

    Parameters
    ----------
    tuples : array-like of shape (t, k, d)
        Each unit has one tuple, such as the cluster centers of a client or of a block of rows. The
        order of its points has no meaning. A tuple with a NaN or an infinity agrees with no other
        tuple.
    epsilon : float, default=1.0
        Privacy budget of one call.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high)
        Public: points outside are clipped. A radius about the origin, or a box.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    aggregator : {"auto", "friendly_core", "k_averages", "noisy_centers"}, default="auto"
        See :class:`DPKTupleKMeans`.
    relation : {"replace", "add or remove"}, default="replace"
        "replace": the number of tuples is public, and the guarantee is for replacing one of them.
        "add or remove": their number is private, and the guarantee is for adding or removing a
        tuple; only with friendly cores.
    options : FriendlyCoreOptions or FarBallsOptions, optional
        Options of the chosen aggregator; see :class:`DPKTupleKMeans`.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Returns
    -------
    result : KTupleResult
        The points, or a message that says why there are none.

    Raises
    ------
    ValueError, TypeError
        For invalid parameters, or if t is too small for the aggregator ("replace" only).
    BudgetExceededError
        If the remaining budget of `ledger` is too small.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for one tuple. The ledger must protect
    groups, because a tuple represents all the rows that it was computed from.

    References
    ----------
    * Cohen, E. et al. (2021). Differentially-private clustering of easy instances. ICML.
    * Tsfadia, E. et al. (2022). FriendlyCore: practical differentially private aggregation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp.cluster import aggregate_k_tuples
    >>> rng = np.random.default_rng(0)
    >>> tuples = np.stack([rng.permutation([[0.5], [-0.5]]) for _ in range(300)])
    >>> found = aggregate_k_tuples(tuples, bounds=1.0, epsilon=4.0)
    >>> np.sort(found.centers[:, 0]).round(1)
    array([-0.5,  0.5])
    """
    table = _checked(tuples)
    stage, plan = _plan(table.shape, budget_of(epsilon, delta, rho), aggregator, relation, options)
    domain = domain_of(bounds, table.shape[2])
    if domain is None:
        raise ValueError("bounds must be given.")
    session = PrivacySession(
        plan, random_state=random_state, ledger=ledger, label="aggregate_k_tuples"
    )
    units = Units(len(table))
    units.unit = plan.unit
    usable = np.where(np.isfinite(table).all(axis=(1, 2), keepdims=True), saturated(table), np.nan)
    flat = domain.clip_points(usable).reshape(len(table), math.prod(table.shape[1:]))
    rows = TableRows.in_memory(flat, units)
    centers = stage.run(session, rows, domain.center, domain.radius)
    if centers is None:
        warn(f"aggregate_k_tuples: {_DISAGREE}", UtilityWarning)
        return KTupleResult(None, Status([_DISAGREE]), session.report())
    return KTupleResult(domain.clip_points(centers + domain.center), Status(), session.report())


def _checked(tuples):
    """An array (t, k, d), of the shape of most tuples of a list. Each is read on its own, as NaN
    where it is not k points of d numbers: "add or remove" keeps t private."""
    words = "tuples must be a numeric array of shape (t, k, d)."
    shape = getattr(tuples, "shape", None)
    if shape is None and lists_rows(tuples) and len(tuples):
        shape = (len(tuples), *Counter(map(_shape, tuples)).most_common(1)[0][0])
    if shape is None or len(shape) != 3 or 0 in shape[1:]:
        raise ValueError(words)
    if kind_of(dtype_of(tuples)) not in NUMBERS:
        raise ValueError(words)
    checked = np.full(shape, np.nan)
    for i, points in enumerate(tuples):
        if _shape(points) == shape[1:]:
            checked[i] = rows_of(points, Schema(shape[2]))
    return checked


def _shape(points):
    """The numbers of points of a tuple and of their coordinates, which are public; or ()."""
    try:
        return len(points), schema(points, "tuples").n_features
    except (TypeError, ValueError):
        return ()


def _plan(shape, target, aggregator, relation, options):
    """The tuple stage and its plan, from public facts; `shape` is (t, k, d)."""
    t, k, d = shape
    check_choice("aggregator", aggregator, ("auto", *AGGREGATORS))
    check_choice("relation", relation, ("replace", "add or remove"))
    settings = aggregator_settings(aggregator, options)
    fixed = relation == "replace"
    if not fixed and aggregator not in ("auto", "friendly_core"):
        raise ValueError("relation='add or remove' needs aggregator='friendly_core'.")
    if fixed and t < 2:
        raise ValueError("tuples: at least 2 are needed.")
    failure = math.nextafter(_DELTA_SHARE * target.delta, 0.0)
    share = target.to_rho(gaussian=False, delta_failure=failure) * (1 - 1e-12)
    kind, size = (aggregator, t) if fixed else ("friendly_core", 2)
    stage = TupleStage(share, failure, k, d, kind, size, relation=relation, **settings)
    # A single step needs no conversion: all of epsilon and delta are its own.
    alone = replace(stage, delta=target.delta, epsilon=target.epsilon)
    stage = alone if target.epsilon is not None and alone.whole else stage
    stage.check()
    notes = ("a group is the origin of one tuple",)
    return stage, PrivacyPlan(target, stage.entries(), "group", notes, relation)


# -- the estimator ---------------------------------------------------------------------------------


_ROWS_PER_CENTER = 10  # of a block: fewer give centers that do not match
_BOUND_SHARE, _COUNT_SHARE, _TUPLE_SHARE = 0.03, 0.01, 0.75
_CHOICE_SHARE = 0.15  # for the number of clusters, where it is to be chosen

_CORESET, _TUPLES, _FALLBACK = "coreset", "tuples", "tuples, then coreset"
_PUBLIC = "tuples, then public"
_CHOICE = "choice/"


class DPKTupleKMeans(StandardErrors, BaseWeighted, BaseDPCenters):
    """K-means by private aggregation of non-private clusterings of random blocks.

    Every row (or group) goes to one of a public number of random blocks. A non-private clusterer
    fits each block; a private aggregator finds centers that most of the k-tuples agree on; noisy
    Lloyd iterations on all rows refine the result. If the tuples do not agree, or if public rules
    say that the budget or the number of rows is too small, a private coreset is used instead, as in
    :class:`DPKMeans`.

    Parameters
    ----------
    n_clusters : int, "auto" or pair (low, high), default=8
        Number of clusters, public. Exactly this many centers are returned. "auto" and a pair let
        the fit choose it, from 1 to 30 or in that range; see :class:`DPKMeans`. The number of
        points in a tuple must be known beforehand, so a plan with tuples contains a coreset for the
        choice, with 15% of the budget. Without tuples, the choice is the same as in `DPKMeans`.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public radius of a ball around the origin, or a box of scalars or arrays (n_features,). Rows
        outside are clipped. None: part of the budget is spent on finding a radius.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    criterion : {"auto", "gap", "bic", "silhouette"}, default="auto"
        Criterion for choosing the number of clusters; see :class:`DPKMeans`.
    max_weight : float, optional
        Public: weights are capped at this, and the noise is that for a row of this weight. The fits
        of blocks do not use weights. None: an array of weights is refused.
    n_tuples : int or "auto", default="auto"
        Number of blocks; public, at least 2. "auto": the number that the aggregator needs at this
        budget. If a friendly core needs more than 1000, the plan has no tuples at all, only the
        coreset.
    aggregator : {"auto", "friendly_core", "k_averages", "noisy_centers"}, default="auto"
        "friendly_core" keeps the tuples that match most others, aligns and averages them. The other
        two first test that far balls partition nearly all tuples. "k_averages" then averages the
        points in each ball, and needs hundreds of thousands of tuples; "noisy_centers" adds noise
        to a single tuple, and needs clusters that are hundreds of times farther apart than the
        tuples differ. "auto" is "friendly_core", which compares all pairs of tuples; neither of the
        others outperformed it in our benchmarks with up to 5000 tuples.
    sampling : {"disjoint", "with_replacement"}, default="disjoint"
        How blocks are formed: each row is in one block, or Poisson(1/2) copies of it are in as many
        blocks. In the latter case, a row with many copies costs more than the aggregator alone, and
        a row without copies costs less; the plan accounts for both.
    inner : estimator, optional
        Any clusterer that has ``cluster_centers_`` or ``means_`` of shape (n_clusters, n_features)
        after `fit`, or a ``Pipeline`` of invertible transformers and such a clusterer: its centers
        are mapped back by ``inverse_transform``. By default, Lloyd iterations from a greedy
        k-means++ start, with less overhead than ``KMeans`` for many small fits. It must be a
        function of its rows and its ``random_state`` alone.
    fallback : {"coreset", "public"}, default="coreset"
        What to use if there is no core: the private coreset with the rest of the budget, or public
        centers refined by Lloyd iterations.
    options : FriendlyCoreOptions or FarBallsOptions, optional
        Options of the chosen aggregator: :class:`FriendlyCoreOptions` for "friendly_core",
        :class:`FarBallsOptions` for "k_averages" and "noisy_centers", nothing for "auto".
    n_jobs : int, optional
        Number of blocks fitted at the same time, through joblib: by processes, because threads
        share the global generators and would take turns.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    cluster_centers_, cluster_weights_, cluster_centers_std_error_, cluster_weights_std_error_, \
cluster_centers_status_, column_status_, n_clusters_, n_clusters_criterion_, labels_, radius_, \
bound_, rows_beyond_, size_, size_std_error_, inertia_, inertia_std_error_, explained_, \
explained_std_error_, status_, messages_, privacy_report_ :
        See :class:`DPKMeans`.
    path_ : {"tuples", "coreset", "tuples, then coreset", "tuples, then public"}
        Algorithm branch selected by the released values.
    n_tuples_ : int
        Number of blocks in the plan; 0 without a tuple stage.
    aggregator_ : str
        The aggregator that was used.

    See Also
    --------
    DPKMeans : The coreset alone; the better choice at small budgets.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group) with any weight. The aggregator is private for replacing one
    tuple, which is what adding or removing a row does: all other rows keep their blocks, whatever n
    is. Part of delta pays for its failure, so the plan is accounted as zCDP.

    References
    ----------
    * Cohen, E., Kaplan, H., Mansour, Y., Stemmer, U. and Tsfadia, E. (2021). Differentially-private
      clustering of easy instances. ICML. PrivatekMeans with PrivatekAverages or
      PrivatekNoisyCenters, corrected.
    * Tsfadia, E., Cohen, E., Kaplan, H., Mansour, Y. and Stemmer, U. (2022). FriendlyCore:
      practical differentially private aggregation. ICML. Algorithms D.25 and D.28, with the blocks
      and the noise corrected for neighbors that differ by one row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPKTupleKMeans
    >>> X = np.vstack([np.full((20000, 2), -0.5), np.full((20000, 2), 0.5)])
    >>> X += np.random.default_rng(0).normal(scale=0.05, size=X.shape)
    >>> model = DPKTupleKMeans(n_clusters=2, epsilon=8.0, bounds=1.0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1)
    array([-0.5,  0.5])
    """

    _with_errors = CENTERS_WITH_ERRORS
    _chooses_number = True

    def __init__(
        self,
        n_clusters: int | str | tuple[int, int] = 8,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        criterion: str = "auto",
        max_weight: float | None = None,
        n_tuples: int | str = "auto",
        aggregator: str = "auto",
        sampling: str = "disjoint",
        inner: Any = None,
        fallback: str = "coreset",
        options: FriendlyCoreOptions | FarBallsOptions | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.criterion = criterion
        self.max_weight = max_weight
        self.n_tuples = n_tuples
        self.aggregator = aggregator
        self.sampling = sampling
        self.inner = inner
        self.fallback = fallback
        self.options = options

    @row_guard
    def fit_blocks(self, pieces: Iterable[ArrayLike]) -> Self:
        """Compute private cluster centers of rows supplied in chunks. Another name for `fit`.

        Parameters
        ----------
        pieces : iterable of array-like of shape (n_i, n_features)
            For example a generator, or any partitioned table that :meth:`fit` accepts. At least one
            chunk; how the rows are divided has no effect.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        PartError
            For a piece that cannot be read.

        Notes
        -----
        Chunks that can be read only once are kept, beyond 256 MB in a temporary file. The result is
        the same as that of :meth:`fit` on all rows.
        """
        return self._fit_parts(engine_of_parts(pieces, name="pieces"))

    # -- parameters and plan ----------------------------------------------------------------------

    def _check_parameters(self, n_features):
        super()._check_parameters(n_features)
        check_choice("aggregator", self.aggregator, ("auto", *AGGREGATORS))
        check_choice("fallback", self.fallback, ("coreset", "public"))
        check_choice("sampling", self.sampling, ("disjoint", "with_replacement"))
        check_auto(self.n_tuples, "n_tuples", low=2, high=2**20)
        if self.inner is not None and not hasattr(self.inner, "fit"):
            raise TypeError("inner must be an estimator.")
        stage = self._stage(self._target(), n_features)[0]
        stage.check()
        if not isinstance(self._asked_number(), Candidates):
            return
        # A friendly core costs the same for tuples of any length. How far balls have to be apart,
        # and how many tuples they take, follows from the number of points.
        if self.inner is not None:
            raise ValueError(
                "n_clusters must be an integer if inner is given, because the inner estimator has "
                "its own number of clusters."
            )
        if stage.size and stage.kind != "friendly_core":
            raise ValueError(f"n_clusters must be an integer for aggregator={stage.kind!r}.")

    def _stage(self, target, n_features):
        """The tuple stage, and the rho of the whole plan that holds it."""
        failure = math.nextafter(_DELTA_SHARE * target.delta, 0.0)
        rho = target.to_rho(gaussian=False, delta_failure=failure)
        return TupleStage(
            _TUPLE_SHARE * rho,
            failure,
            reference_number(self._asked_number()),
            n_features,
            self.aggregator,
            self.n_tuples,
            self.sampling,
            **aggregator_settings(self.aggregator, self.options),
        ), rho

    def _plan_entries(self, target, n_features):
        """Entries on three paths, of which the plan counts the costliest: "coreset" for too few
        rows; "tuples", with Lloyd iterations; "tuples, then coreset" for what the former left."""
        bounded, asked = self.bounds is not None, self._asked_number()
        stage, rho = self._stage(target, n_features)
        columns = self._columns(n_features)
        if not stage.size:
            last = columns.entries(target.to_rho())
            engine_rho = sum_down([target.to_rho(), *(-entry.rho for entry in last)])
            engine = partial(engine_entries, bounds_known=bounded, quality=True, n_clusters=asked)
            return (*engine(engine_rho, n_features), *last)
        last = columns.entries(math.nextafter((1 - _TUPLE_SHARE) * rho, 0.0))
        entries = [PlanEntry.gaussian("count", _COUNT_SHARE * rho, "one unit")]
        if not bounded:
            words = "one unit in the histogram of norms"
            entries.append(PlanEntry.gaussian("bound", _BOUND_SHARE * rho, words))
        if isinstance(asked, Candidates):
            entries += separate_entries(_CHOICE_SHARE * rho, n_features, asked, _CHOICE)
        rest = sum_down([rho, *(-entry.rho for entry in (*entries, *last))])
        tuples = stage.entries()
        remaining = sum_down([rest, *(-entry.rho for entry in tuples)])
        engine = partial(engine_entries, n_features=n_features, bounds_known=True, quality=True)
        coreset, again = engine(rest), engine(remaining, prefix="fallback/")
        refine = last_entries(remaining, remaining, "refine/", quality=True)
        entries += _on_path(tuples, _TUPLES, _FALLBACK) + _on_path(refine, _TUPLES)
        entries += _on_path(coreset, _CORESET) + _on_path(again, _FALLBACK)
        return (*entries, *last)

    # -- fit --------------------------------------------------------------------------------------

    def _fit_table(self, table, session, progress):
        stage, rho = self._stage(session.plan.target, table.n_features)
        self.n_tuples_, self.aggregator_, self.path_ = stage.size, stage.kind, _CORESET
        domain, asked, choice = self._domain(table.n_features), self._asked_number(), None
        columns, units = self._columns(table.n_features), table.units
        look = columns.look(session, table)
        if not stage.size:
            calls = {"callback": progress, "on_size_released": look}
            result = fit_engine(session, table, domain, asked, **calls)
            result, refined = columns.finish(session, table, result)
            return self._store(result, refined, units.unit_weight)
        domain, status, norms = known_or_paid(session, "bound", table, domain)
        # Blocks need rows, whatever these weigh; the iterations see weights.
        numbers = numbered(table)
        size, totals = released_numbers(session, "count", numbers, units)
        weight, count_rho = float(totals[0]), _COUNT_SHARE * rho
        status = Weights.of(totals, 2.0 * noise_sd(count_rho)).told(status)
        if look is not None:
            look(weight)
        if isinstance(asked, Candidates):
            cost = {"prefix": _CHOICE, "rho": _CHOICE_SHARE * rho}
            choice = choose_separately(session, table, domain, asked, **cost)
            progress("number of clusters")
            asked = choice.n_clusters
        # One of the paths of the plan answers: by the released number, then by released centers.
        engine = partial(fit_engine, session, table, domain, asked, callback=progress)
        copies = size * (1.0 if self.sampling == "disjoint" else COPY_RATE)
        if copies < self.n_tuples_ * _ROWS_PER_CENTER * asked:
            result = engine()
        else:
            start = self._start(session, table, domain, asked, stage, numbers, progress)
            if start is None:
                result = engine(prefix="fallback/")
            else:
                result = _refined(session, table, domain, start, weight, progress)
        if not result.status:
            result = replace(result, status=status)
        # Where rows have weights of their own, their weight has a quarter of the budget.
        sd = noise_sd(count_rho) * (2.0 if units.own_weights else 1.0)
        result = result.chosen(choice).bounded(norms, domain, weight, sd, session.plan.unit)
        result, refined = columns.finish(session, table, result)
        return self._store(result, refined, units.unit_weight)

    def _start(self, session, table, domain, k, stage, numbers, progress):
        """Centers (k, d) that the tuples agree on, or public ones; None: use a coreset."""
        # One tuple for each block, NaN where it has fewer than k rows or its fit failed in any way.
        # The session gives blocks and seeds, and releases nothing here.
        fits = BlockFits(
            BlockKMeans(k) if self.inner is None else self.inner,
            self.n_tuples_,
            centers_of,
            (k, table.n_features),
            min_rows=k,
            prepare=partial(clipped, domain),
            rate=None if self.sampling == "disjoint" else COPY_RATE,
        )
        tuples = fit_blocks(session, table, fits, numbers)
        progress("inner fits")
        centers = stage.run(session, tuples, domain.center, domain.radius)
        progress("aggregation")
        if centers is not None or self.fallback == "coreset":
            self.path_ = _FALLBACK if centers is None else _TUPLES
            return centers
        self.path_ = _PUBLIC
        points = session.rng("public centers").random((k, table.n_features)) - 0.5
        return points / np.linalg.norm(points, axis=1, keepdims=True) * domain.radius / 2


def _refined(session, table, domain, centers, size, progress):
    """Noisy Lloyd iterations on all rows, whose number `size` was released: an `EngineResult`."""
    rows, prefix = GridRows.quantize(table, domain), "refine/"
    context = Context(
        session=session,
        rows=rows,
        n_clusters=len(centers),
        prefix=prefix,
        size=Size(max(size, 1.0), math.sqrt(2 * lloyd_budget(session, prefix))),
        radius=rows.limit,
        callback=progress,
    )
    final = lloyd(context, np.rint(centers / rows.unit))
    measurement = measured(context, final, domain, None, domain)
    return build_result(context, final, domain, Status(), None, measurement)


def centers_of(estimator):
    """Centers of a fitted clusterer, in the coordinates of the rows it was fitted to."""
    if isinstance(estimator, Pipeline):
        return estimator[:-1].inverse_transform(centers_of(estimator[-1]))
    centers = getattr(estimator, "cluster_centers_", None)
    return estimator.means_ if centers is None else centers


def clipped(domain, rows):
    """Rows of a block, clipped: a function of the module, as it goes to worker processes."""
    longest = math.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))
    # Few blocks have a row outside of a ball; the others stay as they are.
    within = domain.low is None and longest < domain.radius
    return rows if within else domain.clip_points(rows)


def _on_path(entries, *paths):
    return [replace(entry, paths=paths) for entry in entries]
