"""Record and replay of one fit: the instrument of the privacy audit.

A :class:`Tape` that is put into the machine with :func:`tape` sees every release of every session
opened meanwhile: the exact integer statistic, its claimed sensitivity, the noise scale and the
output. A :class:`Replay` forces the recorded outputs on a fit to a neighbouring data set and
collects the places where the two fits differ in a way that the stated guarantee does not cover.
Outside an audit none of this is active, and no statistic is ever kept.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ._proportional import renyi

__all__ = ["Event", "Replay", "Tape", "active_tape", "tape"]

_ACTIVE = ContextVar("sklearn_dp_tape", default=None)


@contextmanager
def tape(recorder):
    """Let `recorder` see the releases of the sessions opened in this context."""
    token = _ACTIVE.set(recorder)
    try:
        yield recorder
    finally:
        _ACTIVE.reset(token)


def active_tape():
    """The tape of this context, or None."""
    return _ACTIVE.get()


@dataclass
class Event:
    """One release, with the private statistic behind it.

    Attributes
    ----------
    kind : str
        "gaussian", "laplace", "sparse", "stability", "choice", "lead", "filter", "bernoulli",
        "proportional", "draws", "copies", "order", "seed", "share" (of a client, of the noise);
        "step" and its inner draws "inner_laplace", "inner_gaussian", "inner_choice", "sample" and
        "condition" (see :mod:`sklearn_dp._privacy._step`).
    entry : str
        Name of the plan entry that pays.
    value : object
        The exact statistic (integers), before noise.
    sensitivity : float or ndarray
        The claim about `value`, in grid steps.
    scale : float or ndarray
        Noise scale in grid steps.
    cost : float
        zCDP cost rho (epsilon for the pure mechanisms).
    public : dict
        Everything else that must agree between neighbours (unit, threshold, ...).
    output : object
        What was released, in grid steps.
    """

    kind: str
    entry: str
    value: object
    sensitivity: object
    scale: object
    cost: float
    public: dict
    output: object = None


class _Shares:
    """The noise that clients have added to a sum so far, which only an audit may know."""

    _added: dict

    def add_share(self, event):
        """Note the output of an event of kind "share"."""
        self._added[event.entry] = self._added.get(event.entry, 0) + event.output

    def take_shares(self, entry):
        """All the shares for a release, which then belong to it."""
        return self._added.pop(entry, 0)


class Tape(_Shares):
    """A recording of all the events of a fit, in order."""

    def __init__(self):
        self.events = []
        self._added = {}

    def play(self, event):
        """Note an event; the session goes on with the output that this returns."""
        self.events.append(event)
        if event.kind == "share":
            self.add_share(event)
        return event.output


@dataclass
class Replay(_Shares):
    """Force a recording on a neighbouring data set and compare.

    Parameters
    ----------
    recorded : list of Event
    units : ndarray of int
        For each unit of the present data set its index in the recorded one, or -1 for the unit
        that was added.
    keep_added : bool, default=True
        What a friendly-core filter decides about an added unit, whenever it is allowed to
        survive.

    Attributes
    ----------
    violations : list of str
    voided : list of str
        Events of the failure probability delta that the recording ran into; the pair then proves
        nothing.
    loss : dict
        Realised cost of each plan entry, at most what it was charged.
    ratios : dict
        Largest realised distance over claimed sensitivity of each plan entry.
    moved : set of str
        The parts of the units (see :mod:`sklearn_dp._privacy._parts`) whose releases have moved:
        one unit must not move any that do not lie in each other.
    """

    recorded: list
    units: np.ndarray
    keep_added: bool = True
    violations: list = field(default_factory=list)
    voided: list = field(default_factory=list)
    loss: dict = field(default_factory=dict)
    ratios: dict = field(default_factory=dict)
    moved: set = field(default_factory=set)
    _next: int = 0
    _added: dict = field(default_factory=dict)

    def play(self, event):
        """Compare an event with the recorded one and return the recorded output."""
        output = self._played(event)
        if event.kind == "share":
            # What the client adds from here on is the share that was recorded.
            event.output = output
            self.add_share(event)
        return output

    def _played(self, event):
        if self._next >= len(self.recorded):
            self.violations.append(f"{event.entry}: a release that the neighbour does not make")
            return event.output
        known = self.recorded[self._next]
        self._next += 1
        if (known.kind, known.entry) != (event.kind, event.entry):
            self.violations.append(
                f"{event.entry} ({event.kind}) where the neighbour releases "
                f"{known.entry} ({known.kind})"
            )
            return event.output
        return self._compare(known, event)

    def finish(self):
        """Check that nothing of the recording is left over; return the violations."""
        if self._next < len(self.recorded) and not self.violations:
            self.violations.append(f"{self.recorded[self._next].entry}: not released")
        chain = sorted(self.moved, key=len)
        for part, inner in zip(chain, chain[1:], strict=False):
            if not inner.startswith(part):
                self.violations.append(f"one unit is in both parts {part!r} and {inner!r}")
        return self.violations

    def _compare(self, known, event):
        if event.kind == "seed":
            return known.output
        if event.kind == "draws":
            return self._couple(known.output, event.output)
        if event.kind == "order":
            # The points go where their partners went: a bijection of the orders.
            return linear_sum_assignment(cdist(known.value, event.value))[1][known.output]
        for what in ("sensitivity", "scale", "cost", "public"):
            if not _same(getattr(known, what), getattr(event, what)):
                self._blame(event, f"{what} differs between neighbours")
        return getattr(self, "_" + event.kind)(known, event)

    def _blame(self, event, text):
        self.violations.append(f"{event.entry}: {text}")

    def _couple(self, recorded, fresh):
        """Give the units that both data sets have the randomness they had."""
        added = self.units < 0
        return np.where(added, fresh, recorded[np.where(added, 0, self.units)]) \
            if len(recorded) else fresh

    def _account(self, event, distance, cost):
        """Note a distance in units of the claim, and the cost that it realises."""
        self.ratios[event.entry] = max(self.ratios.get(event.entry, 0.0), distance)
        self.loss[event.entry] = self.loss.get(event.entry, 0.0) + cost
        if distance > 0 and "part" in event.public:
            self.moved.add(event.public["part"] + "/")
        if distance > 1 + 1e-12 or cost > event.cost * (1 + 1e-9):
            self._blame(event, f"distance {distance:.6g} of the claim, cost {cost:.6g} "
                               f"of {event.cost:.6g}")

    def _gaussian(self, known, event):
        if np.shape(known.value) != np.shape(event.value):
            self._blame(event, "shape differs between neighbours")
            return known.output
        shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
        shift = np.asarray(shift, dtype=np.float64)
        self._account(event, float(np.sqrt(np.sum(np.square(shift / event.sensitivity)))),
                      float(np.sum(np.square(shift / event.scale)) / 2))
        return known.output

    def _share(self, known, event):
        """Noise of a client: independent of all data, so it may be coupled."""
        if np.shape(known.output) != np.shape(event.output):
            self._blame(event, "shape differs between neighbours")
            return event.output
        return known.output

    def _laplace(self, known, event):
        shift = np.abs(np.asarray(event.value) - np.asarray(known.value)).astype(np.float64)
        self._account(event, float(np.sum(shift / event.sensitivity)),
                      float(np.sum(shift / event.scale)))
        return known.output

    def _sparse(self, known, event):
        before, after = (dict(zip(*map(np.ndarray.tolist, e.value), strict=True))
                         for e in (known, event))
        square = float(sum((after.get(c, 0) - before.get(c, 0)) ** 2
                           for c in before.keys() | after.keys()))
        self._account(event, np.sqrt(square) / event.sensitivity, square / event.scale**2 / 2)
        return known.output

    def _stability(self, known, event):
        """A cell that only one data set has may not be seen, and holds one unit."""
        before, after = (dict(zip(*map(np.ndarray.tolist, e.value), strict=True))
                         for e in (known, event))
        if set(known.output[0].tolist()) - after.keys():
            self.voided.append(event.entry)
        both = before.keys() & after.keys()
        square = float(sum((after[c] - before[c]) ** 2 for c in both))
        alone = max((d[c] for d in (before, after) for c in d.keys() - both), default=0)
        self._account(event, max(np.sqrt(square), alone) / event.sensitivity,
                      square / event.scale**2 / 2)
        return known.output

    def _choice(self, known, event):
        if np.shape(known.value) != np.shape(event.value):
            self._blame(event, "shape differs between neighbours")
            return known.output
        shift = np.asarray(event.value) - np.asarray(known.value)
        largest = float(np.abs(shift).max(initial=0))
        self._account(event, largest / event.sensitivity,
                      event.cost * largest / event.sensitivity)
        return known.output

    def _lead(self, known, event):
        """The best candidate, told by its lead; another best one may not be told."""
        if np.shape(known.value) != np.shape(event.value):
            self._blame(event, "shape differs between neighbours")
            return known.output
        before, after = (np.sort(e.value)[::-1].astype(np.float64) for e in (known, event))
        moved = float(np.abs(np.asarray(event.value) - known.value).max())
        if known.value.argmax() == event.value.argmax():
            moved = max(moved, abs(after[0] - after[1] - before[0] + before[1]) / 2)
        elif known.output >= 0:
            self.voided.append(event.entry)
        self._account(event, moved / event.sensitivity, event.cost * moved / event.sensitivity)
        return known.output

    def _filter(self, known, event):
        """A friendly-core filter: see :mod:`sklearn_dp._aggregate.friendly.core`.

        An element that may be bad has a score of at most `bad` in both data sets, and survives
        only within delta. All others must have close scores.
        """
        if event.public["fixed"]:
            return self._fixed_filter(known, event)
        common = self.units >= 0
        before = known.value[self.units[common]]
        bad = np.array(event.value <= event.public["bad"])
        bad[common] &= before <= known.public["bad"]
        kept = np.zeros(len(self.units), dtype=bool)
        kept[common] = known.output[self.units[common]]
        gone = np.ones(len(known.value), dtype=bool)
        gone[self.units[common]] = False
        if np.any(kept & bad) or np.any(
            gone & known.output & (known.value <= known.public["bad"])
        ):
            self.voided.append(event.entry)
        kept[~common] = self.keep_added & ~bad[~common]
        if np.count_nonzero(common) > event.public["most"]:
            self.voided.append(event.entry)
            return kept
        shift = (event.value[common] - before).astype(np.float64)
        largest = float(np.abs(shift).max(initial=0.0))
        self._account(event, largest / event.sensitivity,
                      float(np.sum(np.square(shift / event.scale)) / 2))
        return kept

    def _fixed_filter(self, known, event):
        """A filter on a public number of block results: one of them is another, we know not which.

        It is the one whose score moves most, or moving it less would cost less.
        """
        if len(known.value) != len(event.value):
            self._blame(event, "shape differs between neighbours")
            return known.output
        bad = event.public["bad"]
        dropped = known.output & (event.value <= bad)
        if np.any(known.output & (known.value <= bad)) or np.count_nonzero(dropped) > 1:
            self.voided.append(event.entry)
        shift = event.value - known.value
        shift = np.sort(np.abs(shift.astype(np.float64)))[:-1]
        largest = float(shift.max(initial=0.0))
        self._account(event, largest / event.sensitivity,
                      float(np.sum(np.square(shift / event.scale)) / 2))
        return known.output & ~dropped

    def _bernoulli(self, known, event):
        """A smooth filter: probabilities of the common units, close in l1."""
        common = self.units >= 0
        before = known.value[self.units[common]]
        kept = np.zeros(len(self.units), dtype=bool)
        kept[common] = known.output[self.units[common]]
        kept[~common] = self.keep_added & (event.value[~common] > 0)
        if np.any(kept & (event.value <= 0)):
            self.voided.append(event.entry)
        total = float(np.abs(event.value[common] - before).sum() + event.value[~common].sum())
        missing = np.ones(len(known.value), dtype=bool)
        missing[self.units[common]] = False
        total += float(np.sum(known.value[missing]))
        self._account(event, total / event.sensitivity, 0.0)
        return kept

    def _proportional(self, known, event):
        """Eigenvalues of one matrix with respect to the other; the cost at the order 2."""
        ratios = _relative_eigenvalues(known.value, event.value)
        if ratios.min() <= 0:
            self._account(event, np.inf, np.inf)
            return known.output
        far = float(max(ratios.max(), 1 / ratios.min())) - 1
        self._account(event, far / event.sensitivity,
                      float(renyi(2.0, max(far, 1e-12), event.scale, len(ratios))) / 2)
        return known.output

    # Inner draws have no cost of their own: only the premises of the step's theorem are checked.

    def _step(self, known, event):
        return None

    def _sample(self, known, event):
        """A subset of a public number of elements, whatever they are."""
        return known.output

    def _copies(self, known, event):
        """A unit of several copies changes several blocks: the pair shows nothing."""
        gone = np.ones(len(known.value), dtype=bool)
        gone[self.units[self.units >= 0]] = False
        if np.any(event.value[self.units < 0] > 1) or np.any(known.value[gone] > 1):
            self.voided.append("copies")

    def _condition(self, known, event):
        """Without it, on either side, the pair says nothing about what follows."""
        if not (known.value and event.value):
            self.voided.append(event.entry)

    def _inner_laplace(self, known, event):
        shift = np.sort(np.abs(np.ravel(event.value) - np.ravel(known.value)).astype(np.float64))
        # The value of the replaced element itself is the one that moves most, or less is claimed.
        shift = shift[:-1] if event.public["own"] else shift
        self._account(event, float(shift.sum()) / event.sensitivity, 0.0)
        return known.output

    def _inner_gaussian(self, known, event):
        shift = (event.value - known.value).astype(np.float64)
        self._account(event, float(np.sqrt(np.sum(np.square(shift / event.sensitivity)))), 0.0)
        return known.output

    def _inner_choice(self, known, event):
        shift = np.abs(event.value - known.value).max(initial=0)
        self._account(event, float(shift) / event.sensitivity, 0.0)
        return known.output


def _relative_eigenvalues(known, other):
    """Eigenvalues of two exact matrices, each a sum and a count, with respect to each other."""
    a, b = (np.asarray(total, dtype=np.float64) / max(1, count) for total, count in (known, other))
    scale = np.sqrt(np.maximum(np.diag(a), 1e-300))
    try:
        root = np.linalg.inv(np.linalg.cholesky(a / np.outer(scale, scale)))
    except np.linalg.LinAlgError:
        return np.zeros(len(a))
    return np.linalg.eigvalsh(root @ (b / np.outer(scale, scale)) @ root.T)


def _same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
