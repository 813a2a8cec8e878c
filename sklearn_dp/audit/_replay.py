"""The replay audit: does a fit treat neighboring data sets alike, but for noise that was paid?

1. Fit on D under a trace: the *recording* holds every release, with the exact statistic behind it.
2. Hold the recording against its own claims, the plan and the report (:mod:`_recount`).
3. For each neighbor D': fit on D' and force the recorded outputs on it (:class:`Replay`).
4. Compare: the same releases in the same order, with the same scales; each pair of exact statistics
   within the claimed sensitivity; the sum of the realized costs within the plan; equal faces
   (:mod:`_observe`).
5. Do the same for data sets that are no neighbors, whose statistics may be anything.

If in every run on D the statistics of D' are within the sensitivities, *given the same outputs so
far*, then each release is a noise mechanism with the claimed loss, adaptively composed, and the
rest is post-processing. A replay checks this premise on the pairs that it tries, exactly.
"""

import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._costs.numbers import check_choice, warn
from .._privacy._trace import Event, Shares, Trace, trace
from ..exceptions import ExactStatisticsWarning
from ._laws import law_of
from ._observe import (
    Neighbor,
    Outcome,
    ids,
    n_features_seen,
    neighboring_pairs,
    prepared,
    run_fit,
    unit_numbers,
    unrelated,
)
from ._recount import check_claims, paid

_SHOWN = 5  # violations in a repr


@dataclass
class ReplayResult:
    """Result of a replay audit.

    Parameters
    ----------
    estimator : str
        Name of its class.
    n_pairs : int
        Number of pairs of neighbors compared.
    n_voided : int
        Pairs that prove nothing because the recording falls into the failure probability delta
        (never with Gaussian releases only).
    violations : list of str
        Empty if there are none.
    ratios : dict
        For each plan entry, the largest distance between neighbors divided by the claimed
        sensitivity. One is tight; more is a violation.
    loss, cap : dict
        For each plan entry, the largest realized cost, and the cost that the plan allows.
    worst_loss, rho : float
        Largest realized cost of a whole fit, and that of the plan.
    """

    estimator: str
    n_pairs: int = 0
    n_voided: int = 0
    violations: list[str] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    loss: dict[str, float] = field(default_factory=dict)
    cap: dict[str, float] = field(default_factory=dict)
    worst_loss: float = 0.0
    rho: float = 0.0

    @property
    def passed(self) -> bool:
        """True if there are pairs and no violations."""
        return self.n_pairs > self.n_voided and not self.violations

    def __add__(self, other: "ReplayResult") -> "ReplayResult":
        """The findings of both audits."""
        return ReplayResult(
            self.estimator,
            self.n_pairs + other.n_pairs,
            self.n_voided + other.n_voided,
            self.violations + other.violations,
            _largest(self.ratios, other.ratios),
            _largest(self.loss, other.loss),
            _largest(self.cap, other.cap),
            max(self.worst_loss, other.worst_loss),
            max(self.rho, other.rho),
        )

    def __repr__(self) -> str:
        lines = [
            f"Replay audit of {self.estimator}: {self.n_pairs} pairs, {self.n_voided} voided, "
            f"{len(self.violations)} violations",
            f"realized cost {self.worst_loss:.4g} of rho = {self.rho:.4g}",
            f"{'entry':<28}{'distance':>10}{'cost':>12}{'cap':>12}",
        ]
        lines += [
            f"{name:<28}{ratio:>10.4g}{self.loss[name]:>12.4g}{self.cap.get(name, math.nan):>12.4g}"
            for name, ratio in self.ratios.items()
        ]
        return "\n".join(lines + [f"violation: {text}" for text in self.violations[:_SHOWN]])


def _largest(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    """The larger number of each name; a missing one is 0."""
    return {name: max(a.get(name, 0.0), b.get(name, 0.0)) for name in [*a, *(b.keys() - a.keys())]}


# -- storage ---------------------------------------------------------------------------------------


STORAGES = ("C", "F", "float32", "memmap", "read-only")
"""How rows may be stored; see `stored`."""


@np.errstate(all="ignore")
def stored(X: Any, storage: str) -> np.ndarray:
    """Finite rows in a storage: "C", "F", "float32", "memmap", or "read-only", with strides."""
    check_choice("storage", storage, STORAGES)
    if storage == "float32":
        limit = float(np.finfo(np.float32).max)
        return np.clip(X, -limit, limit).astype(np.float32)
    X = np.array(X, dtype=np.float64, order="F" if storage == "F" else "C")
    if storage == "memmap" and X.size:  # nothing cannot be mapped
        # What `numpy.load(mmap_mode="r")` gives. The mapping outlives the file object.
        with tempfile.TemporaryFile() as file:
            file.write(X.tobytes())
            file.flush()
            return np.memmap(file, dtype=np.float64, mode="r", shape=X.shape)
    if storage == "read-only":
        wide = np.full((2 * X.shape[0], 2 * X.shape[1]), 0.5)
        wide[::2, ::2] = X
        X = wide[::2, ::2]
        X.flags.writeable = False
    return X


# -- player ----------------------------------------------------------------------------------------


_COMPARED = ("sensitivity", "scale", "cost", "public")


class Recorder(Trace):
    """A recording that counts as forced, like its replay: both have to show the same reports."""

    forces = True


@dataclass
class Replay(Shares):
    """Force a recording on a neighboring data set and compare."""

    recorded: list[Event]
    # for each unit of the present data set its index in the recorded one, or -1 for the unit that
    # was added
    units: np.ndarray
    # what a friendly-core filter decides about an added unit, whenever it is allowed to survive
    keep_added: bool = True
    violations: list[str] = field(default_factory=list)
    # events of the failure probability delta that the recording ran into; the pair then proves
    # nothing
    voided: list[str] = field(default_factory=list)
    # realized cost of each plan entry, at most what it was charged
    loss: dict[str, float] = field(default_factory=dict)
    # largest realized distance over claimed sensitivity of each plan entry
    ratios: dict[str, float] = field(default_factory=dict)
    # the parts of the units (see `_costs.numbers`) whose releases have moved: one
    # unit must not move any that do not lie in each other
    moved: set[Any] = field(default_factory=set)
    _next: int = 0
    _added: dict[str, Any] = field(default_factory=dict)

    @np.errstate(all="ignore")  # a fit may be strict, but what overflows here is compared as inf
    def record(self, event: Event) -> Any:
        """Compare an event with the recorded one and return the recorded output."""
        output = self._played(event)
        if event.kind == "share":
            # What the client adds from here on is the share that was recorded.
            event.output = output
            self.add_share(event)
        return output

    def _played(self, event: Event) -> Any:
        """The output that is forced on the neighbor, or its own where the release is another."""
        law = law_of(event)  # also of a release that is made too often: an error if unknown
        if self._next >= len(self.recorded):
            self.violations.append(f"{event.entry}: a release that the neighbor does not make")
            return event.output
        known = self.recorded[self._next]
        self._next += 1
        if (known.kind, known.entry) != (event.kind, event.entry):
            self.violations.append(
                f"{event.entry} ({event.kind}) where the neighbor releases "
                f"{known.entry} ({known.kind})"
            )
            return event.output
        for what in _COMPARED:
            if not _same(getattr(known, what), getattr(event, what)):
                self.blame(event, f"{what} differs between neighbors")
        return law.replay(self, known, event)

    def finish(self) -> list[str]:
        """Check that nothing of the recording is left over; return the violations."""
        if self._next < len(self.recorded) and not self.violations:
            self.violations.append(f"{self.recorded[self._next].entry}: not released")
        chain = sorted(self.moved, key=len)
        for part, inner in zip(chain, chain[1:], strict=False):
            if not inner.startswith(part):
                self.violations.append(f"one unit is in both parts {part!r} and {inner!r}")
        return self.violations

    def blame(self, event: Event, text: str) -> None:
        """Note a violation."""
        self.violations.append(f"{event.entry}: {text}")

    def account(self, event: Event, distance: float, cost: float) -> None:
        """Note a distance in units of the claim, at most one, and the cost that it realizes."""
        self.ratios[event.entry] = max(self.ratios.get(event.entry, 0.0), distance)
        self.loss[event.entry] = self.loss.get(event.entry, 0.0) + cost
        if distance > 0 and "part" in event.public:
            self.moved.add(event.public["part"] + "/")
        if not (distance <= 1 + 1e-12 and cost <= event.cost * (1 + 1e-9)):  # NaN is none of it
            self.blame(
                event, f"distance {distance:.6g} of the claim, cost {cost:.6g} of {event.cost:.6g}"
            )


def _same(a: Any, b: Any) -> bool:
    """True if two public facts agree."""
    if type(a) is type(b) and type(a) in (float, int, str):
        return a == b  # most of them: some ten times faster than by arrays
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))


# -- hooks for auditors ----------------------------------------------------------------------------


class _Asking(Trace):
    """A trace that asks somebody else for the outputs: a user's function, or a replay."""

    def __init__(self, force: Callable[[Event], Any]) -> None:
        super().__init__()
        self._force = force

    def record(self, event: Event) -> Any:
        event.output = self._force(event)
        return super().record(event)


@contextmanager
def record_releases(force: Callable[[Event], Any] | None = None) -> Iterator[list[Event]]:
    """Record every release of the fits in this context, with its exact value before noise.

    For audits on data that may be disclosed. Recordings are **not private**.

    Parameters
    ----------
    force : callable, optional
        ``force(event)`` is called at each release and returns the output, in grid steps, with which
        the fit continues; by default the fit's own, ``event.output``.

    Yields
    ------
    events : list of Event
        Filled in order as the fits release. Each event has the plan entry that pays, the value
        before noise, the claimed sensitivity, the noise scale, the cost, the output, and in `draws`
        the distribution and scale that the sampler actually used.

    Warns
    -----
    ExactStatisticsWarning
        Always.

    See Also
    --------
    replay_releases : Force a recording on a fit of other data.
    replay_audit : This package's audit, which does the comparison.

    Notes
    -----
    Records the sessions that are opened in this context, in this thread and process. It also
    records randomness that is not noise (kinds "seed", "draws", "order", "sample"), and the draws
    of a step that is charged as a whole (their kinds begin with "inner"); neither costs anything by
    itself.

    Events cannot be pickled, and their repr excludes exact values.

    What is fitted with `force`, or under :func:`replay_releases`, states no guarantee: its report
    has ``noise="forced"``, also in pickles and after later days. To compare all that two fits show,
    reports included, force the recorded one too, by ``force=lambda event: event.output``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_dp import FriendlyMean
    >>> from sklearn_dp.audit import record_releases
    >>> warnings.simplefilter("ignore")
    >>> with record_releases() as events:
    ...     mean = FriendlyMean(epsilon=1.0, bounds=8.0).fit(np.ones((100, 2)))
    >>> events[-1].entry == mean.privacy_report_.releases[-1]["release"]
    True
    """
    _warn()
    with trace(Trace() if force is None else _Asking(force)) as recorder:
        yield recorder.events


@contextmanager
def replay_releases(recorded: Sequence[Event], units: ArrayLike) -> Iterator[list[Event]]:
    """Force recorded outputs on the fit in this context, and record its exact values before noise.

    With the recorded outputs forced, a fit to a neighbor has to make the same releases in the same
    order: kinds, entries, sensitivities, scales and costs must be equal, and the values as close as
    claimed. The caller does the comparison.

    Parameters
    ----------
    recorded : sequence of Event
        From :func:`record_releases`, of one fit.
    units : array-like of int of shape (n_units,)
        For each unit of the present data, its index in the recorded data, or -1 if it was added.
        Values that concern single units (their blocks, whether a filter keeps them) follow this
        mapping.

    Yields
    ------
    events : list of Event
        As for :func:`record_releases`, with the forced outputs. A release without a counterpart in
        the recording keeps its own output.

    Warns
    -----
    ExactStatisticsWarning
        Always.

    See Also
    --------
    neighboring_pairs : Neighbors with their `units`.
    """
    _warn()
    with trace(_Asking(Replay(list(recorded), np.asarray(units)).record)) as replayer:
        yield replayer.events


def _warn() -> None:
    warn(
        "the releases of fits are recorded with their exact values: what is recorded is not "
        "private, and neither it nor a replayed fit may be published.",
        ExactStatisticsWarning,
    )


# -- replay ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """A fit with all its releases."""

    outcome: Outcome
    events: list[Event]
    plan: Any
    problems: list[str]  # what is wrong with this fit alone
    estimator: Any  # what was fitted is a clone of it,
    random_state: int | None  # with this seed,
    internal: bool  # with or without scikit-learn's validation,
    storage: str  # to rows that were stored like this


def record(
    estimator: Any, X: Any, *, groups: Any = None, random_state: int | None = 0, storage: str = "C"
) -> Recording:
    """Fit a clone under a trace and check what it released against what it says.

    Rows of one unit are fitted without scikit-learn's validation, like the empty neighbor."""
    recorder, internal = Recorder(), len(X if groups is None else set(ids(groups))) <= 1
    X = stored(X, storage)
    copy = prepared(estimator, random_state=random_state)
    plan = copy.privacy_plan(n_features_seen(copy, X), unit="row" if groups is None else "group")
    outcome = run_fit(copy, X, groups, internal=internal, recorder=recorder)
    if outcome.error is not None:
        problems = [f"the fit raises {type(outcome.error).__name__}: {outcome.error}"]
    else:
        problems = check_claims(recorder.events, plan, copy.privacy_report_)
    problems += _miscoded(copy, X, groups)
    return Recording(
        outcome, recorder.events, plan, problems, estimator, random_state, internal, storage
    )


def _miscoded(estimator: Any, X: Any, groups: Any) -> list[str]:
    """List the problem if the estimator takes other rows for one unit than their ids say."""
    try:
        units = None if groups is None else estimator._units(X, groups).index
    except (TypeError, ValueError):  # the fit says so itself
        units = None
    if units is None or np.array_equal(units, unit_numbers(groups)):
        return []
    return ["the units are not the groups: some are merged, split or out of order"]


def replay_audit(
    estimator: BaseEstimator,
    X: ArrayLike,
    neighbors: Iterable[Neighbor] | None = None,
    *,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    repeats: int = 1,
    html: bool = False,
    storage: str = "C",
    strangers: bool = True,
    stop_at_first: bool = False,
) -> ReplayResult:
    """Fit, then fit neighbors with the recorded outputs forced, and compare everything.

    Parameters
    ----------
    estimator : estimator of this package
        A clone is fitted; a ledger is not charged.
    X : ndarray of shape (n_samples, n_features)
        May be empty.
    neighbors : iterable of Neighbor, optional
        All kinds of :func:`neighboring_pairs` by default, released points among them.
    groups : array-like of shape (n_samples,), optional
        The unit of each row.
    random_state : int, default=0
        Seed of the first fit, of the default neighbors and of strangers.
    repeats : int, default=1
        Number of times to go through the default kinds.
    html : bool, default=False
        Compare HTML displays too (slow).
    storage : str, default="C"
        How the rows of both neighbors are stored: ``"C"``, ``"F"``, ``"float32"``, ``"memmap"`` or
        ``"read-only"``.
    strangers : bool, default=True
        Also try data sets that are not neighbors.
    stop_at_first : bool, default=False
        Stop at the first data set that shows a violation.

    Returns
    -------
    result : ReplayResult
        Violations in words, and how close each release came to its claim. Results of several
        audits add up.

    Notes
    -----
    For each pair, the two fits must make the same releases with the same noise scales; the exact
    statistics must lie within the claimed sensitivity of each other; the realized cost must be
    within the plan; and the pickle, attributes in memory (except labels), outputs of all methods on
    public rows, repr, report, warnings, errors, and everything printed or logged must be equal byte
    by byte, since all of them may depend on releases only. Therefore everything but the distances
    must also hold for data sets that are not neighbors; some of these are tried. Unexpected
    warnings are violations. The audit is exact: it has no false alarms.

    It detects any difference between the pairs that it tries; a difference that needs another n, d,
    parameter or data set is found by chance only. It does not detect: noise with another
    distribution than claimed (:func:`noise_audit`), a wrong total (the recount), time and memory
    use, and errors in the theorems that callers prove for steps charged as a whole.
    """
    X = np.asarray(X, dtype=np.float64)
    original = record(estimator, X, groups=groups, random_state=random_state, storage=storage)
    if neighbors is None:
        points = _released_points(original.outcome, X.shape[1])
        neighbors = neighboring_pairs(
            X, random_state, groups=groups, points=points, repeats=repeats
        )
    if strangers:
        others = unrelated(X, np.random.default_rng(random_state), groups=groups)
        neighbors = itertools.chain(neighbors, others)
    return replay_recording(original, neighbors, html=html, stop_at_first=stop_at_first)


def replay_recording(
    original: Recording,
    pairs: Iterable[Neighbor],
    *,
    html: bool = False,
    stop_at_first: bool = False,
) -> ReplayResult:
    """One recording against neighbors, and strangers, in the storage of its rows."""
    result = ReplayResult(type(original.estimator).__name__, rho=original.plan.rho)
    result.cap = {entry.name: entry.cap for entry in original.plan.entries}
    result.violations += original.problems
    face = original.outcome.face(html)
    for pair in pairs:
        if stop_at_first and result.violations:
            break
        _compare(original, face, pair, html, result)
    return result


class _Forced(Replay):
    """A replay on any data: outputs are forced as ever, but distances mean nothing."""

    def account(self, event: Event, distance: float, cost: float) -> None:
        pass


def _released_points(outcome: Outcome, n_features: int) -> np.ndarray | None:
    """Fitted attributes that are points in the space of the data; errors may be infinite."""
    arrays = [
        value
        for name, value in vars(outcome.estimator).items()
        if name.endswith("_")
        and isinstance(value, np.ndarray)
        and value.ndim
        and value.shape[-1] == n_features
        and value.dtype.kind == "f"
        and np.isfinite(value).all()
    ]
    return np.concatenate([a.reshape(-1, n_features) for a in arrays]) if arrays else None


def _compare(
    original: Recording, face: dict[str, bytes], pair: Neighbor, html: bool, result: ReplayResult
) -> None:
    """Replay one neighbor; a pair is voided where delta pays for the recorded outcome."""
    far = pair.kind == "unrelated data"
    replay = (_Forced if far else Replay)(original.events, pair.units)
    rows = stored(pair.X, original.storage)
    outcome = run_fit(
        prepared(original.estimator, random_state=original.random_state),
        rows,
        pair.groups,
        internal=original.internal,
        recorder=replay,
    )
    result.n_pairs += not far
    problems = [
        *replay.finish(),
        *_miscoded(original.estimator, rows, pair.groups),
        *different(face, outcome.face(html)),
    ]
    # Realized zCDP costs add up; epsilons of pure mechanisms were compared one by one.
    entries = {event.entry for event in paid(original.events) if law_of(event).in_rho}
    total = sum(cost for name, cost in replay.loss.items() if name in entries)
    if total > original.plan.rho * (1 + 1e-9):
        problems.append(f"realized cost {total:.6g} of rho = {original.plan.rho:.6g}")
    if replay.voided:
        result.n_voided += not far
        return
    result.violations += [f"{pair.kind}: {text}" for text in problems]
    result.ratios = _largest(result.ratios, replay.ratios)
    result.loss = _largest(result.loss, replay.loss)
    result.worst_loss = max(result.worst_loss, total)


def different(
    face: dict[str, Any], other: dict[str, Any], where: str = "between neighbors"
) -> list[str]:
    """Return the differences of two faces, in words."""
    return [
        f"{name} differs {where}"
        for name in sorted({*face, *other})
        if face.get(name) != other.get(name)
    ]
