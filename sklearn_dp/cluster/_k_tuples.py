"""Private aggregation of k-tuples that are there already."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._aggregate.tuples.stage import AGGREGATORS, TupleStage
from .._base import Bounds, LedgerLike, RandomStateLike, budget_of, check_real
from .._bounds import domain_of
from .._columns import NUMBERS, Schema
from .._costs.checks import check_choice, warn
from .._costs.plan import PrivacyPlan
from .._costs.report import PrivacyReport
from .._door import rows_of, schema
from .._door_entries import lists_rows
from .._privacy._entries import dtype_of, kind_of
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._queries.separated_balls import LEAST_SEPARATION
from .._queries.table_rows import TableRows
from .._queries.tuples import MATCH_LIMIT
from .._rows.single_rows import row_guard, saturated
from .._status import Message, Status
from .._validation import check_options
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
