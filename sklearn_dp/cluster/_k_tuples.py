"""Private aggregation of k-tuples that are there already."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from .._aggregate.kmeans.engine import fit_engine
from .._aggregate.kmeans.fit_context import Candidates, Context
from .._aggregate.kmeans.lloyd import lloyd, lloyd_budget
from .._aggregate.kmeans.private_coreset import choose_separately
from .._aggregate.kmeans.result import build_result, measured
from .._aggregate.shared.bounds import known_or_paid
from .._aggregate.shared.centering import Size, noise_sd
from .._aggregate.tuples.stage import AGGREGATORS, TupleStage
from .._base import Bounds, LedgerLike, RandomStateLike, budget_of, check_real
from .._bounds import domain_of
from .._columns import NUMBERS, Schema
from .._door import rows_of, schema
from .._door_entries import lists_rows
from .._privacy._checks import check_choice
from .._privacy._domain import Domain
from .._privacy._entries import dtype_of, kind_of
from .._privacy._plan import PrivacyPlan
from .._privacy._report import PrivacyReport
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy._warn import warn
from .._queries.handles import GridRows
from .._queries.separated_balls import LEAST_SEPARATION
from .._queries.table_rows import TableRows
from .._queries.tuples import MATCH_LIMIT
from .._rows.single_rows import row_guard, saturated
from .._status import Message, Status
from ..exceptions import UtilityWarning


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
        more than 6. The default for "k_averages" is 7. For "noisy_centers" the default makes the
        noise of a center about one seventh of its distance to the next one: a larger separation
        means smaller balls and less noise, but the tuples must agree more closely.

    Examples
    --------
    >>> from sklearn_dp import DPKTupleKMeans
    >>> from sklearn_dp.cluster import FarBallsOptions
    >>> options = FarBallsOptions(separation=50.0)
    >>> DPKTupleKMeans(3, aggregator="noisy_centers", options=options).options.separation
    50.0
    """

    separation: float | None = None

    def check(self) -> None:
        """Refuse bad values by name."""
        if self.separation is not None:
            check_real(self.separation, "separation", low=LEAST_SEPARATION, high=1e6)


_KINDS: dict[str, type[FriendlyCoreOptions] | type[FarBallsOptions]] = {
    "friendly_core": FriendlyCoreOptions,
    "k_averages": FarBallsOptions,
    "noisy_centers": FarBallsOptions,
}


def aggregator_settings(aggregator: str, options: object) -> dict[str, Any]:
    """The fields of the options of an aggregator; options of another one are refused.

    "auto" takes no options: what it stands for depends on the budget. Of None, nothing: the
    defaults of the tuple stage, whose arguments these are, are those of the options.
    """
    if options is None:
        return {}
    kind = _KINDS.get(aggregator)
    if kind is None:
        raise ValueError(
            f"options must be None for aggregator={aggregator!r}; only these have options: "
            f"{', '.join(_KINDS)}."
        )
    if not isinstance(options, kind):
        raise TypeError(f"options must be a {kind.__name__} for aggregator={aggregator!r}.")
    options.check()
    return asdict(options)


# -- k tuples --------------------------------------------------------------------------------------


_DELTA_SHARE = 0.5  # for the failures of the aggregation; the rest is for the conversion
_DISAGREE = Message("no_agreement", "the tuples do not agree", severity="all")


@dataclasses.dataclass(frozen=True)
class KTupleResult:
    """What :func:`aggregate_k_tuples` releases.

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
        """The worth of the answer in one word: "ok" or "unusable"."""
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
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

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
    """An array of three axes; its shape is public, but "add or remove" keeps its length private.

    Told from the type of an array, or from most tuples of a list. Each tuple is read on its own, as
    NaN where it is no k points of d numbers: such a tuple agrees with no other.
    """
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
    """Public, of a tuple: the numbers of its points and of their coordinates; () for others."""
    try:
        return len(points), schema(points, "tuples").n_features
    except (TypeError, ValueError):
        return ()


def _plan(shape, target, aggregator, relation, options):
    """The tuple stage and its plan, from public facts.

    `shape` is (t, k, d); t is a public fact unless tuples come and go.
    """
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
    stage = TupleStage(
        share,
        failure,
        k,
        d,
        aggregator if fixed else "friendly_core",
        t if fixed else 2,
        relation=relation,
        **settings,
    )
    # A single step needs no conversion: all of epsilon and delta are its own.
    alone = dataclasses.replace(stage, delta=target.delta, epsilon=target.epsilon)
    stage = alone if target.epsilon is not None and alone.whole else stage
    stage.check()
    return stage, PrivacyPlan(
        target,
        stage.entries(),
        "group",
        ("a group is the origin of one tuple",),
        relation,
    )


# -- tuple routes ----------------------------------------------------------------------------------
# Three things can: the k-means engine on all rows (:meth:`TupleContext.coreset`), Lloyd iterations
# from centers that the tuples agree on (:meth:`TupleContext.refined`), and the same from public
# centers (:meth:`TupleContext.public_centers`). Which of them does is decided by public facts, by
# the released number of units, and by whether the aggregation has released centers.


@dataclass(frozen=True)
class TupleContext:
    """The rows of a fit, and what may be released of them."""

    session: PrivacySession
    rows: TableRows
    domain: Domain | None  # public or paid for; None before it is
    n_clusters: Any  # `Candidates` as long as the number has not been chosen
    progress: Callable[[str], Any]  # called with the name of each step when it is done

    def bounded(self, entry):
        """Return the context with a domain, which `entry` pays for where there is none; status and
        norms."""
        domain, status, norms = known_or_paid(self.session, entry, self.rows, self.domain)
        return replace(self, domain=domain), status, norms

    def judged(self, result, norms, weight, rho):
        """A result with what a released bound leaves open.

        `norms` are those of `bounded`; `weight`, of all units, was released for `rho`.
        """
        assert self.domain is not None
        # Where rows have weights of their own, their weight has a quarter of the budget.
        sd = noise_sd(rho) * (2.0 if self.rows.units.own_weights else 1.0)
        return result.bounded(norms, self.domain, weight, sd)

    def numbered(self, prefix, rho):
        """Return the context with a number of clusters, and the choice of it; None where it is
        given.

        The plan entries of the choice have this prefix and are worth `rho`.
        """
        if not isinstance(self.n_clusters, Candidates):
            return self, None
        assert self.domain is not None
        choice = choose_separately(
            self.session, self.rows, self.domain, self.n_clusters, prefix=prefix, rho=rho
        )
        self.progress("number of clusters")
        return replace(self, n_clusters=choice.n_clusters), choice

    def coreset(self, prefix="", on_size_released=None):
        """Run the k-means engine, with the plan entries of a prefix."""
        return fit_engine(
            self.session,
            self.rows,
            self.domain,
            self.n_clusters,
            prefix=prefix,
            callback=self.progress,
            on_size_released=on_size_released,
        )

    def public_centers(self):
        """Centers that know nothing of the data: on a sphere, relative to the domain's center."""
        assert self.domain is not None
        rng = self.session.rng("public centers")
        points = rng.random((self.n_clusters, self.rows.n_features)) - 0.5
        return points / np.linalg.norm(points, axis=1, keepdims=True) * self.domain.radius / 2

    def refined(self, centers, size):
        """Refine centers, released or public, by noisy Lloyd iterations on all rows.

        The centers (k, d) are about that of the domain, `size` is the released number of units. The
        aggregation has found them in blocks, which use a part of the rows each and a part of the
        budget; iterations use the rest of it on all rows.
        """
        assert self.domain is not None
        rows, prefix = GridRows.quantize(self.rows, self.domain), "refine/"
        known = Size(max(size, 1.0), math.sqrt(2 * lloyd_budget(self.session, prefix)))
        context = Context(
            session=self.session,
            rows=rows,
            n_clusters=self.n_clusters,
            prefix=prefix,
            size=known,
            radius=rows.limit,
            callback=self.progress,
        )
        final = lloyd(context, np.rint(centers / rows.unit))
        measurement = measured(context, final, self.domain, None, self.domain)
        return build_result(context, final, self.domain, Status(), None, measurement)


def centers_of(estimator):
    """Centers of a fitted clusterer, in the coordinates of the rows it was fitted to."""
    if isinstance(estimator, Pipeline):
        return estimator[:-1].inverse_transform(centers_of(estimator[-1]))
    centers = getattr(estimator, "cluster_centers_", None)
    return estimator.means_ if centers is None else centers


def clipped(domain, rows):
    """Rows of a block, clipped: a function of the module, as it goes to worker processes."""
    # Few blocks have a row outside of a ball; the others stay as they are.
    if (
        domain.low is None
        and math.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)) < domain.radius
    ):
        return rows
    return domain.clip_points(rows)
