"""One fit's plan, charges and releases: the only door between data and noise.

A session is opened with a plan, for the whole of which the ledger is charged before anything is
looked at. Building blocks ask for releases of sealed answers (:mod:`._sealed`). The law of a
release (:mod:`.mechanisms`) checks every premise of its proof, and the accounts
(:class:`.Accounts`) refuse what the plan does not hold. What they admit is paid for; only then is
noise drawn. Statistics are integers: what floating-point sums of neighbors differ by is not known
exactly, and an integer sum is the same whatever the order of the rows.

Three kinds of sessions come out of one: a *part* looks at some of the units only
(:meth:`PrivacySession.part`), a *step* pays for a mechanism with a theorem of its own and hands out
its inner draws (:mod:`._composite_mechanism`), and a *nested* session spends a plan of its own
inside such a step, or for a whole fit that the plan pays for at once
(:meth:`PrivacySession.inner`). An audit sees each release as an :class:`~._trace.Event`, and may
put another output in its place.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np

from .._costs.checks import is_part_of, warn
from .._costs.disjoint import payers_in_words
from .._costs.ledger_terms import LedgerCharge
from .._costs.log import log_plan, log_release
from .._costs.plan import Accounts, PlanError, PrivacyPlan
from .._costs.plan_pages import BudgetFor
from .._costs.report import PaidBy, PrivacyReport
from ..exceptions import SeededNoiseWarning
from ._ledger import is_paid, open_ledger, shared_budget
from ._noise import NoiseSource, noise_source
from ._random_words import fresh_bytes, process_mark
from ._randomness import AlgorithmicRandomness, seed_of
from ._sealed import Sealed, opened
from ._trace import Event, active_trace, altered, drawn
from .mechanisms import fits, gaussian
from .mechanisms._release import Release, lengths

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
        self.plan, self._label = plan, label
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
        log_plan(label, plan)

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
        if altered() and altered() is not self._altered:
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
        sets of units (:mod:`sklearn_dp._costs.disjoint`), and must :meth:`join` them before this
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
        see :mod:`sklearn_dp._privacy.mechanisms.fits`. The tag is that of :meth:`inside`."""
        self._check_neighbors(plan)
        self._release(entry, fits.release(plan))
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
        """Release an answer with Gaussian noise, in lengths; see :meth:`gaussian`."""
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
        release = gaussian.release(value, sensitivity, self._cost(entry, rho), unit)
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
            log_release(self._label, line)

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
