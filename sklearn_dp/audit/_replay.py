"""The replay audit: does a fit treat neighboring data sets alike, but for noise that was paid?

1. Fit on D under a trace: the *recording* holds every release, with the exact statistic behind it.
2. Hold the recording against its own claims, the plan and the report (:mod:`_plan_consistency`).
3. For each neighbor D': fit on D' and force the recorded outputs on it (:mod:`_player`). The two
   fits now have the same released values.
4. Compare: the same releases in the same order, with the same scales; each pair of exact statistics
   within the claimed sensitivity; the sum of the realized costs within the plan; equal faces
   (:mod:`_observe`).
5. Do the same for data sets that are no neighbors. Their statistics may be anything, but
   everything else has to be equal still: what is shown is a function of the releases.

Why that is a test of privacy: if in every run on D the statistics of D' are within the
sensitivities, *given the same outputs so far*, then each release is a noise mechanism with the
claimed loss, adaptively composed, and the rest is post-processing. A replay checks this premise on
the pairs that it tries; it is exact for them, because statistics are integers.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._privacy._trace import Event
from ._groups import ids, unit_numbers
from ._neighbors import Neighbor, neighboring_pairs, unrelated
from ._observe import Outcome, n_features_seen, prepared, run_fit
from ._plan_consistency import check_claims, paid
from ._player import Recorder, Replay
from ._replay_result import ReplayResult, largest
from ._storage import stored
from .mechanisms import law_of

__all__ = [
    "Recording",
    "different",
    "record",
    "record_for_replay",
    "replay_audit",
    "replay_recording",
]


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
    storage: str = "C"  # to rows that were stored like this


def record(
    estimator: Any,
    X: Any,
    *,
    groups: Any = None,
    random_state: int | None = 0,
    internal: bool = False,
) -> Recording:
    """Fit a clone under a trace and check what it released against what it says.

    `internal` leaves out scikit-learn's validation, for an empty `X`.
    """
    recorder = Recorder()
    copy = prepared(estimator, random_state=random_state)
    plan = copy.privacy_plan(n_features_seen(copy, X), unit="row" if groups is None else "group")
    outcome = run_fit(copy, X, groups, internal=internal, recorder=recorder)
    if outcome.error is not None:
        problems = [f"the fit raises {type(outcome.error).__name__}: {outcome.error}"]
    else:
        problems = check_claims(recorder.events, plan, copy.privacy_report_)
    problems += _miscoded(copy, X, groups)
    way = estimator, random_state, internal
    return Recording(outcome, recorder.events, plan, problems, *way)


def _miscoded(estimator: Any, X: Any, groups: Any) -> list[str]:
    """Whether the estimator takes other rows for one unit than their ids say.

    The audit numbers units by a dictionary over the ids (:mod:`_groups`), and shares no code with
    the kernel.
    """
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
    recordings: int = 1,
    repeats: int = 1,
    html: bool = False,
    storages: Sequence[str] = ("C",),
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
    recordings : int, default=1
        Fits of `X`, each with fresh noise; each meets all neighbors.
    repeats : int, default=1
        Number of times to go through the default kinds.
    html : bool, default=False
        Compare HTML displays too (slow).
    storages : sequence of str, default=("C",)
        Storage of the rows of both neighbors, one after the other for each recording: ``"C"``,
        ``"F"``, ``"float32"``, ``"memmap"`` or ``"read-only"``.
    strangers : bool, default=True
        Also try data sets that are not neighbors.
    stop_at_first : bool, default=False
        Stop at the first data set that shows a violation.

    Returns
    -------
    result : ReplayResult
        Violations in words, and how close each release came to its claim.

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
    parameter or data set is found by chance only (:func:`drawn_audit` draws them). It does not
    detect: noise with another distribution than claimed (:func:`noise_audit`), a wrong total (the
    recount), time and memory use, and errors in the theorems that callers prove for steps charged
    as a whole.
    """
    X = np.asarray(X, dtype=np.float64)
    given = None if neighbors is None else list(neighbors)
    result = ReplayResult(type(estimator).__name__)
    for number in range(recordings):
        seed, storage = random_state + number, storages[number % len(storages)]
        original = record_for_replay(estimator, X, groups, seed, storage)
        # The default neighbors also need points that the recording has released.
        points = _released_points(original.outcome, X.shape[1])
        pairs: Iterable[Neighbor] | None = given
        if pairs is None:
            pairs = neighboring_pairs(X, seed, groups=groups, points=points, repeats=repeats)
        if strangers:
            others = unrelated(X, np.random.default_rng(seed), groups=groups)
            pairs = itertools.chain(pairs, others)
        result += replay_recording(original, pairs, html=html, stop_at_first=stop_at_first)
        if stop_at_first and result.violations:
            break
    return result


def record_for_replay(
    estimator: Any, X: Any, groups: Any, seed: int, storage: str = "C"
) -> Recording:
    """A recording of rows in this storage that neighbors of any size can be held against:
    scikit-learn refuses an empty array, so a comparison with one leaves its validation out."""
    internal = len(X if groups is None else set(ids(groups))) <= 1
    rows = stored(X, storage)
    made = record(estimator, rows, groups=groups, random_state=seed, internal=internal)
    return replace(made, storage=storage)


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
    """Replay one neighbor and enter what comes out of it into the result.

    `face` is what the recorded fit shows. Storage and seed are those of the recording: what
    scikit-learn draws inside a fit is the same too. `html` compares HTML displays. A pair is voided
    where the recording is one of the outcomes that delta pays for. Then a difference proves
    nothing; what was found is left out, and the pair counts as voided.
    """
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
    found = [
        *replay.finish(),
        *_miscoded(original.estimator, rows, pair.groups),
        *different(face, outcome.face(html)),
    ]
    # Realized zCDP costs add up; epsilons of pure mechanisms were compared one by one.
    entries = {event.entry for event in paid(original.events) if law_of(event).in_rho}
    total = sum(cost for name, cost in replay.loss.items() if name in entries)
    if total > original.plan.rho * (1 + 1e-9):
        found.append(f"realized cost {total:.6g} of rho = {original.plan.rho:.6g}")
    if replay.voided:
        result.n_voided += not far
        return
    result.violations += [f"{pair.kind}: {text}" for text in found]
    result.ratios = largest(result.ratios, replay.ratios)
    result.loss = largest(result.loss, replay.loss)
    result.worst_loss = max(result.worst_loss, total)


def different(
    face: dict[str, Any], other: dict[str, Any], where: str = "between neighbors"
) -> list[str]:
    """What of two faces differs, in words."""
    return [
        f"{name} differs {where}"
        for name in sorted({*face, *other})
        if face.get(name) != other.get(name)
    ]
