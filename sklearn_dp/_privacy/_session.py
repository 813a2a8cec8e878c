"""A session of a fit, and the releases with Gaussian noise that it draws.

A session is the only door between data and noise. It is opened with a plan, for the whole of which
the ledger is charged before anything is looked at. Building blocks ask for releases of sealed
answers (:mod:`._units`). The law of a release (:mod:`.mechanisms`) checks every premise of its
proof, and the accounts (:class:`.Accounts`) refuse what the plan does not hold. What they admit is
paid for; only then is noise drawn. Statistics are integers: what floating-point sums of neighbors
differ by is not known exactly, and an integer sum is the same whatever the order of the rows.

Three kinds of sessions come out of one: a *part* looks at some of the units only
(:meth:`PrivacySession.part`), a *step* pays for a mechanism with a theorem of its own and hands out
its inner draws (:mod:`.mechanisms.pure`), and a *nested* session spends a plan of its own inside
such a step, or for a whole fit that the plan pays for at once (:meth:`PrivacySession.inner`). An
audit sees each release as an :class:`~._trace.Event`, and may put another output in its place.

A :class:`Release` is what is asked for, before its noise is drawn. The premises that most proofs
share are checked then: one that does not hold ends the fit before anything is spent or drawn.

**Rounded Gaussian noise.** Let the statistic v be a vector of integers with ``sum_i ((v_i - v'_i) /
s_i)^2 <= 1`` for neighbors, and sigma_i >= s_i / sqrt(2 rho). Then ``v + round(sigma Z) = round(v +
sigma Z)``: the release is post-processing of the ideal Gaussian mechanism, whose means lie at most
sqrt(2 rho) standard deviations apart. So it is rho-zCDP, and exactly sqrt(2 rho)-GDP.

A discrete Gaussian would not do: it is rho-zCDP as well, but no post-processing of the continuous
one, so the exact curve of Gaussian DP does not hold for it, at small sigma least of all.

Sums in int64 are sums modulo 2^64, of statistic and noise alike: were one to leave 63 bits, what is
seen would be a function of the release all the same.

**A whole fit inside another one** is paid at once, and released under a plan of its own. Let all
entries of a plan cost ``rho`` together, and let a fit spend no more than its plan, however it
chooses as it goes. If all its releases are Gaussian the fit as a whole is sqrt(2 rho)-GDP, up to
the failure probability of the plan: adaptive releases under a budget filter compose as if their
costs had been fixed. Without that, it is rho-zCDP up to the same probability. Either way the outer
plan can pay for the inner one as if it were one release.

**Histograms of which only the cells above a threshold are published.** The cells are public, and
there are at most 2^20 of them.

1. Every cell, empty or not, gets rounded Gaussian noise of its own.
2. Published are (cell, value) for all cells whose value exceeds a threshold, in the order of the
   cells.

Step 1 is a Gaussian release of the whole histogram and step 2 looks at nothing else, so it is
rho-zCDP and exactly sqrt(2 rho)-GDP, for every threshold that is public or released. The cell tree
of k-means asks for it once for each of its levels.

Larger histograms are refused. To draw only the number of empty cells that pass, and then which
they are, would be fast for any number of cells; but the chance that one passes is known to
2^-53 only, so that law is off by a total variation distance t, and the release would cost a delta
of t (1 + exp(epsilon)) which a Gaussian account has no room for.
"""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np

from .._costs import accounting
from .._costs.ledger_terms import LOGGER, LedgerCharge
from .._costs.numbers import floats_up, is_part_of, payers_in_words, round_up, sum_up, warn
from .._costs.plan import Accounts, BudgetFor, Mechanism, PlanEntry, PlanError, PrivacyPlan
from .._costs.report import PaidBy, PrivacyReport
from ..exceptions import SeededNoiseWarning
from ._entries import bounded_integers, exact_integers
from ._ledger import is_paid, open_ledger, shared_budget
from ._noise import NoiseSource, fresh_bytes, noise_source, process_mark
from ._randomness import AlgorithmicRandomness, seed_of
from ._trace import Event, active_trace, altered, drawn
from ._units import Sealed, SealedCells, opened

_FARTHEST_SCORE = 2**61


# -- releases --------------------------------------------------------------------------------------


def require(holds: object, premise: str) -> None:
    """Raise where the premise of a proof does not hold.

    `premise` completes "a release needs"; never with a number in it, which could be data.

    >>> require(1 < 2, "order among numbers")
    >>> require(1 > 2, "a miracle")
    Traceback (most recent call last):
      ...
    sklearn_dp._costs.plan.PlanError: a release needs a miracle.
    """
    if not holds:
        raise PlanError(f"a release needs {premise}.")


@dataclass(frozen=True)
class Release:
    """A release: its value, its cost, its claim and its noise."""

    kind: str  # of the event that an audit sees; see `Event` in `_trace`
    mechanism: Mechanism
    value: Any  # the exact statistic
    sensitivity: Any  # the proved claim about `value`, in grid steps
    scale: Any  # of the noise, in grid steps
    rho: float
    draw: Callable[[NoiseSource], Any]  # gives the output
    delta: float = 0.0
    cost: float | None = None  # what an audit sees: epsilon of pure mechanisms; `rho` by default
    public: dict[str, Any] = field(default_factory=dict)  # all else that neighbors must agree on
    unit: Any = 1.0  # length of a grid step, for the report
    # sensitivity and scale in the report, where these are not the fields above
    told: tuple[float, float] | None = None
    units: Any = None  # numbers of the units that it decides about, for audits; all by default


def check_cost(name: str, value: float) -> float:
    """A cost, if it is positive and finite; `name` is for the error.

    >>> check_cost("rho", 0.25)
    0.25
    """
    require(math.isfinite(value) and value > 0, f"a positive, finite {name}")
    return value


def positive_sensitivity(sensitivity: Any) -> Any:
    """Floats that are no smaller than the claim, whatever numbers it is made in."""
    sensitivity = floats_up(sensitivity)
    good = (sensitivity > 0) & (sensitivity < math.inf)
    require(np.all(good), "a positive, finite sensitivity")
    return sensitivity


def integer_scores(scores: Any) -> np.ndarray:
    """Scores as int64, clipped. That moves no two values apart, so the sensitivity is what it was;
    no difference of two scores, and no score with its noise, can then leave 63 bits."""
    scores = exact_integers(scores)
    require(scores.ndim == 1, "a vector of scores")
    return bounded_integers(np.clip(scores, -_FARTHEST_SCORE, _FARTHEST_SCORE), np.int64)


def lengths(output: np.ndarray, unit: Any) -> np.ndarray:
    """An output in grid steps, in lengths."""
    return np.asarray(output * np.asarray(unit, dtype=np.float64), dtype=np.float64)


def sorted_cells(codes: Any, counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cells in the order of their codes, which are distinct: two counts of one code would be two
    numbers that the same unit moves."""
    require(codes.ndim == 1 and codes.shape == counts.shape, "a count for each code")
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], counts[order]
    require(np.all(codes[1:] != codes[:-1]), "distinct codes")
    return codes, counts


# -- Gaussian noise --------------------------------------------------------------------------------


def sigma_of(sensitivity: Any, rho: float) -> Any:
    """sensitivity / sqrt(2 rho), rounded up: the noise scale of the Gaussian mechanism."""
    # Two operations, a root and a quotient: no more than two places in all.
    return round_up(sensitivity / math.sqrt(2 * rho))


def gaussian_release(value: Any, sensitivity: Any, rho: float, unit: Any = 1.0) -> Release:
    """Integers in grid steps, with rounded Gaussian noise; see :meth:`PrivacySession.gaussian`.
    `rho` is the cost of the whole vector, with one sensitivity, or one for each entry. `unit`, the
    length of a step, is for the report."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = sigma_of(sensitivity, check_cost("rho", rho))
    value, draw = _with_noise(value, sigma)
    return Release(
        "gaussian",
        Mechanism.GAUSSIAN,
        value,
        sensitivity,
        sigma,
        rho,
        draw,
        public={"unit": unit},
        unit=unit,
    )


def gaussian_inner(value: Any, sensitivity: Any, epsilon: float, delta: float) -> Release:
    """A draw of a step that has been paid for, (epsilon, delta)-DP, as the theorem about the step
    asks, by the analytic formula for ideal Gaussian noise."""
    sensitivity = positive_sensitivity(sensitivity)
    # The product is off by half a place: 1e-15 is more than four.
    sigma = accounting.gaussian_sigma(epsilon, delta) * np.asarray(sensitivity)
    sigma = np.nextafter(sigma * (1 + 1e-15), np.inf)
    value, draw = _with_noise(value, sigma)
    return Release(
        "inner_gaussian",
        Mechanism.GAUSSIAN,
        value,
        sensitivity,
        sigma,
        0.0,
        draw,
        cost=epsilon,
        public={"delta": delta},
    )


def _with_noise(value: Any, sigma: Any) -> tuple[np.ndarray, Callable[[NoiseSource], np.ndarray]]:
    """The statistic as integers, and the function that draws its noise once it is paid for."""
    value = exact_integers(value)
    spread = np.broadcast_to(sigma, value.shape) if np.ndim(sigma) else float(sigma)
    return value, lambda noise: value + noise.rounded_gaussian(spread, value.shape)


# -- whole fits ------------------------------------------------------------------------------------


def whole_fit(plan: PrivacyPlan) -> Release:
    """Pay for all that a plan may spend; see :meth:`PrivacySession.inner`."""
    return Release(
        "fit",
        Mechanism.GAUSSIAN if plan.gaussian else Mechanism.SEVERAL,
        None,
        None,
        None,
        plan.rho,
        lambda noise: None,
        plan.delta_failure,
        public={"delta": plan.delta_failure, "only_gaussian": plan.gaussian},
        told=(0.0, 0.0),
    )


def lump(name: str, plan: Any, uses: int = 1) -> PlanEntry:
    """A plan entry that pays for whole fits of a plan (of the dearest one, if there are several):
    each costs what one release of that rho costs. Which one is made is decided by releases, so one
    use has to hold the dearest; with more, all of them are made, and their costs add up."""
    plans = [plan] if isinstance(plan, PrivacyPlan) else plan
    gaussian = all(each.gaussian for each in plans)
    return PlanEntry(
        name,
        Mechanism.GAUSSIAN if gaussian else Mechanism.SEVERAL,
        sum_up([each.rho for each in plans]) if uses > 1 else max(each.rho for each in plans),
        delta=sum_up([each.delta_failure for each in plans])
        if uses > 1
        else max(each.delta_failure for each in plans),
        uses=uses,
        sensitivity="all of a fit" if uses == 1 else "all of each fit",
    )


# -- histograms ------------------------------------------------------------------------------------


_SHOWN = 2**40  # in count steps: far above every threshold and noise
_MOST_CANDIDATES = 2**20  # 8 MB of noise, a tenth of a second or two


def sparse(
    codes: np.ndarray,
    counts: np.ndarray,
    n_candidates: int,
    threshold: float,
    sensitivity: float,
    rho: float,
    unit: float = 1.0,
) -> Release:
    """Cells above a threshold, as (cells, values) in order.

    Distinct int64 `codes` in [0, n_candidates), with exact counts in grid steps that are not
    negative; other cells are empty. `n_candidates`, at most 2**20, and `threshold`, which is as
    good as its floor, are public or released. `sensitivity` is the l2 distance of the counts of
    neighbors, of all cells."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(sigma_of(sensitivity, check_cost("rho", rho)))
    require(1 <= n_candidates <= _MOST_CANDIDATES, "between 1 and 2**20 candidates")
    require(math.isfinite(threshold), "a finite threshold")
    low, n_candidates = math.floor(threshold) + 1, int(n_candidates)
    codes, counts = sorted_cells(exact_integers(codes), exact_integers(counts))
    require(not len(codes) or (codes[0] >= 0 and codes[-1] < n_candidates), "codes of candidates")
    require(np.all(counts >= 0), "counts that are not negative")

    def draw(noise: NoiseSource) -> tuple[np.ndarray, np.ndarray]:
        # Noise for all cells, whichever are occupied: the same number of draws for neighbors.
        values = noise.rounded_gaussian(sigma, n_candidates)
        values[codes] += counts
        cells = np.flatnonzero(values >= low)
        return cells, values[cells]

    return Release(
        "sparse",
        Mechanism.GAUSSIAN,
        (codes, counts),
        sensitivity,
        sigma,
        rho,
        draw,
        public={"unit": unit, "low": low, "n_candidates": n_candidates},
        unit=unit,
    )


def release_cells(
    session: Any, entry: str, sealed: SealedCells, *, threshold: float, rho: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Release the cells that exceed a threshold, in units, and those shown anyway, with counts, as
    :func:`sparse` says: rho-zCDP, and exactly sqrt(2 rho)-GDP."""
    (cells, counts), claim = session._opened(sealed), sealed.claim
    n_hidden = sealed.n_cells - sealed.n_shown
    first = np.searchsorted(cells, n_hidden)
    # Public, and taken off again: these cells always pass.
    shown = np.full(sealed.n_shown, _SHOWN, dtype=np.int64)
    shown[cells[first:] - n_hidden] += counts[first:]
    release = sparse(
        np.append(cells[:first], np.arange(n_hidden, sealed.n_cells)),
        np.append(counts[:first], shown),
        n_candidates=sealed.n_cells,
        threshold=threshold / claim.unit,
        sensitivity=claim.l2,
        rho=session._cost(entry, rho),
        unit=claim.unit,
    )
    released, values = session._release(entry, release)
    values = values * float(claim.unit)
    return released.copy(), values - np.where(released >= n_hidden, _SHOWN * claim.unit, 0.0)


# -- the session -----------------------------------------------------------------------------------


_SEEDED = (
    "random_state is set: the noise can be reproduced, and the privacy guarantee does not hold "
    "against anyone who knows the seed. Use random_state=None for real data."
)


class PrivacySession(AlgorithmicRandomness):
    """Releases of one fit, charged against its plan: what may be released, and its greatest cost.

    Without a `random_state` noise comes from the operating system; anything else voids the
    guarantee against those who know it, and a warning says so. After a BudgetExceededError of the
    ledger nothing was spent. `label` is the name of the estimator, for the ledger."""

    _paid_by: PaidBy | None = None
    _rate = 1.0  # below one: answers are of a sample, and paid for as such

    def __init__(
        self, plan: PrivacyPlan, *, random_state: Any = None, ledger: Any = None, label: str = ""
    ) -> None:
        self.plan, self._name = plan, label or "session"
        # Of the whole fit, also where this session is for a candidate, a segment or a step.
        self.budget_for = BudgetFor(plan, shared_budget())
        seed = seed_of(random_state)
        if seed is not None:  # before the charge, for those who make an error of it
            warn(_SEEDED, SeededNoiseWarning)
        # Before anything else: a fit that fails later has been paid for all the same.
        self._of_ledger = self._charge_ledger(ledger, label)
        self._altered = altered()
        self.noise = "altered" if self._altered else "system" if seed is None else "seeded"
        self._trace, self._nested = active_trace(), False
        self._part: tuple[str, ...] = ()
        self._parts: set[str] = set()  # labels of parts that may have spent more than this session
        self._source, self._process = noise_source(seed, "noise"), process_mark()
        fresh = int.from_bytes(fresh_bytes(32), "big") if seed is None else seed
        # Algorithmic randomness has streams of its own, so that noise is never re-used for it.
        self._algorithm_seed = self._record(Event("seed", output=fresh))
        self._accounts = Accounts(plan)
        self._log: list[dict[str, Any]] = []
        self._fits: list[tuple[str, PrivacySession]] = []  # inside, each of which was paid for
        if LOGGER.isEnabledFor(logging.INFO):  # the epsilon of a plan takes some work
            LOGGER.info(
                "%s: (%.6g, %.3g)-DP for one %s; may release %s",
                self._name,
                plan.epsilon,
                plan.target.delta,
                plan.unit,
                ", ".join(entry.name for entry in plan.entries),
            )

    @property
    def _noise(self) -> NoiseSource:  # type: ignore[override]
        """The source of noise. A forked child is refused: what it drew would be paid for once only,
        in the accounts that its parent goes on with. So is a context that an audit has altered
        since: the report would not say so."""
        if self._process != process_mark():
            raise RuntimeError(
                "a fit cannot continue in a forked child process: both processes would spend the "
                "same budget."
            )
        if altered() is not self._altered and altered():
            raise RuntimeError("a fit cannot continue where an audit has altered its noise.")
        return self._source

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session cannot be pickled or copied: both copies would spend the same budget."
        )

    def _branch(self) -> Self:
        """A session on the same noise, records and plan. The caller gives it accounts of its own,
        and so decides what it may spend."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def part(self, label: str, *, renumbered: bool = False) -> Self:
        """A session for releases about some of the units, apart from those of other labels.

        The caller proves that parts with different labels, public or released, look at disjoint
        sets of units (:mod:`sklearn_dp._costs.numbers`), and must :meth:`join` them before this
        session spends more. A part goes on from what this session has spent.

        `renumbered`: units have numbers of their part, and so it has draws of its own. With common
        ones a unit that is added would shift the draws of those after it against those of other
        parts, which their releases may tell."""
        if label in self._parts or "/" in label:
            raise PlanError("parts of the units need labels that differ, without a slash")
        self._parts.add(label)
        inner = self._branch()
        inner._part, inner._parts = (*self._part, label), set()
        inner._accounts = self._accounts.branch()
        if renumbered:
            inner._draw_apart(f"part/{label}")
        return inner

    def join(self, parts: Any) -> None:
        """Go on from the most that one of some parts has spent, for each entry and in all."""
        for part in parts:
            self._parts -= set(part._part[len(self._part) :][:1])
            self._accounts.raise_to(part._accounts)

    def inner(self, entry: str, plan: PrivacyPlan, tag: str) -> Self:
        """Pay for a whole fit, whose releases follow a plan of their own: a session within it.

        The entry pays `plan.rho` and `plan.delta_failure`, at once and whatever is spent of them:
        see the top of this module. The tag is that of :meth:`inside`."""
        self._check_neighbors(plan)
        self._release(entry, whole_fit(plan))
        other = self.inside(plan, tag)
        self._fits.append((entry, other))
        return other

    def inside(self, plan: PrivacyPlan, tag: str) -> Self:
        """A session for a fit that has been paid for. The caller proves that what was paid covers
        it. Another tag for each fit: blocks, restarts and seeded noise are drawn from streams of
        that name."""
        self._check_neighbors(plan)
        other = self._within(plan)
        other._draw_apart(tag)
        if self._source.seeded:
            other._source = self._source.branch(tag)
        return other

    def _check_neighbors(self, plan: PrivacyPlan) -> None:
        """Refuse a fit whose neighbors are others: what it costs is not what a unit here pays."""
        if plan.unit != self.plan.unit or not is_part_of(plan.relation, self.plan.relation):
            raise PlanError("a fit protects other neighbors than the one that it is part of")

    def _within(self, plan: PrivacyPlan) -> Self:
        """A session with a plan, a log and accounts of its own, on the noise of this one."""
        other = self._branch()
        other.plan, other._nested, other._log, other._parts = plan, True, [], set()
        other._fits = []
        other._of_ledger = ()  # what was charged was charged for all of the outer fit
        other._paid_by = None
        other._accounts = Accounts(plan)
        return other

    def _charge_ledger(self, ledger: Any, label: str) -> tuple[tuple[str, float, float], ...]:
        """Charge all that the plan may cost, in every currency that a ledger may count in. For each
        cost that the ledger counts: its name, what was charged, and the ledger's total."""
        book = open_ledger(ledger)
        if book is None:
            return ()
        charge = LedgerCharge.of(self.plan, label)
        if not is_paid(book, charge):
            book.charge(charge)
        state = book.state()
        self._paid_by = (state.identity, state.head, state.payers, fresh_bytes(8).hex())
        terms = state.terms
        return tuple(zip(terms.columns, terms.costs(charge), terms.caps, strict=True))

    @property
    def spent(self) -> float:
        """rho charged so far (rounded up)."""
        return self._accounts.spent

    def remaining(self, entry: str | None = None) -> float:
        """rho that an entry (or the whole plan) can still pay, rounded down. A function of released
        values alone, so later releases may depend on it."""
        return self._accounts.remaining(entry)

    def waive(self, entry: str) -> None:
        """Spend no more on an entry, by released values alone: others may take what it has left.
        Their own caps, and the total of the plan, stay as they are."""
        self._accounts.waive(entry)

    # -- releases: a law checks its premises, the accounts pay, then noise is drawn

    def _opened(self, sealed: Sealed) -> Any:
        return opened(sealed, self.plan, self._rate)

    def release(self, entry: str, sealed: Sealed, *, rho: float | None = None) -> np.ndarray:
        """Release an answer with Gaussian noise, in lengths; see :meth:`_session`."""
        exact, claim = self._opened(sealed), sealed.claim
        return self.gaussian(entry, exact, sensitivity=claim.l2, unit=claim.unit, rho=rho)

    def gaussian(
        self, entry: str, value: Any, *, sensitivity: Any, unit: Any = 1.0, rho: float | None = None
    ) -> np.ndarray:
        """Release integers with rounded Gaussian noise: rho-zCDP, and exactly sqrt(2 rho)-GDP.

        `value` is the exact statistic, in grid steps of length `unit`; Python integers (dtype
        object) may have any size. `sensitivity` is s with the proved claim ``sum_i ((v_i - v'_i) /
        s_i)^2 <= 1`` for neighbors. `rho` is the zCDP cost; all that the entry has left by default.
        """
        release = gaussian_release(value, sensitivity, self._cost(entry, rho), unit)
        return lengths(self._release(entry, release), unit)

    def _charge(self, entry: str, release: Release) -> None:
        """Pay for one release; the caps are checked before anything is drawn. What parts that are
        out have spent is not in these accounts, so a release of the whole could overspend: it has
        to wait until they are joined."""
        if self._parts:
            raise PlanError(f"plan entry {entry!r}: parts of the units have not been joined")
        self._accounts.pay(entry, release.rho, release.delta, release.mechanism)

    def _cost(self, name: str, rho: float | None) -> float:
        """rho of one release: what it asks for, or all that its entry has left."""
        return self.remaining(name) if rho is None else float(rho)

    def _release(self, entry: str, release: Release) -> Any:
        """Pay, then draw: the output of a release, in grid steps, or what an audit puts there."""
        self._charge(entry, release)
        output = self._drawn_output(entry, release)
        self._note(entry, release)
        return output

    def _drawn_output(self, entry: str, release: Release) -> Any:
        """Draw; an audit sees the release and what the samplers drew for it."""
        if self._trace is None:
            return release.draw(self._noise)
        with drawn() as draws:
            output = release.draw(self._noise)
        cost = release.rho if release.cost is None else release.cost
        return self._record(
            Event(
                release.kind,
                entry,
                release.value,
                release.sensitivity,
                release.scale,
                cost,
                release.public,
                output,
                release.units,
                tuple(draws),
            )
        )

    def _record(self, event: Event) -> Any:
        """The output of an event; in an audit, the one that the trace puts in its place."""
        if self._trace is None:
            return event.output
        if self._nested:
            event.public = {**event.public, "nested": True}
        if self._part:
            event.public = {**event.public, "part": "/".join(self._part)}
        return self._trace.record(event)

    def _note(self, entry: str, release: Release) -> None:
        """A line of the report; lengths instead of steps, and of a vector the largest entry."""
        sensitivity, scale = release.told or (release.sensitivity, release.scale)
        line = {
            "release": entry,
            "mechanism": str(release.mechanism),
            "sensitivity": _largest(sensitivity * release.unit),
            "sigma": _largest(scale * release.unit),
            "rho": float(release.rho),
            "delta": float(release.delta),
            **({"part": "/".join(self._part)} if self._part else {}),
        }
        self._log.append(line)
        # Fits inside are not all released, so how many of them there are may be secret.
        if not self._nested:
            LOGGER.debug(
                "%s: released %s%s (%s, sigma %.4g, rho %.4g)",
                self._name,
                entry,
                f" of part {line['part']}" if self._part else "",
                release.mechanism,
                line["sigma"],
                release.rho,
            )

    def report(self) -> PrivacyReport:
        """Plan, releases, totals and noise source of this fit."""
        # A trace that is not the package's own may force outputs: it is taken to do so.
        forced = self._trace is not None and getattr(self._trace, "forces", True)
        report = self.plan.report(tuple(self._log), "forced" if forced else self.noise)
        whose = "" if self._paid_by is None else payers_in_words(self._paid_by[2])
        return replace(
            report,
            ledger=self._of_ledger,
            payers=whose,
            paid_by=self._paid_by,
            inside=tuple(self._inside()),
        )

    def _inside(self) -> Iterator[dict[str, Any]]:
        """The releases of the fits that `inner` has paid for, and of those inside of them."""
        for entry, session in self._fits:
            for line in (*session._log, *session._inside()):
                yield {**line, "release": f"{entry}/{line['release']}"}


def _largest(lengths: Any) -> float:
    return float(lengths if isinstance(lengths, float) else np.max(lengths))
