"""Force a recording on a fit to other data, and note where the two fits differ.

A fit on the neighbour asks its sessions for releases, and every session hands each event to the
active trace. :class:`Replay` is such a trace. For each event in turn it

1. takes the next event of the recording; kind and plan entry have to be the same, as the sequence
   of releases may depend on released values only;
2. compares sensitivity, scale, cost and public facts, which have to be equal for the same reason;
3. lets the law of that kind compare the two exact statistics (:attr:`Law.replay`), which accounts
   for the distance and the cost that it realizes;
4. returns the recorded output. So the fit on the neighbour sees the releases of the recording, and
   goes the way that they lead to.

As both fits have then the same outputs, everything that they show has to be equal; :mod:`_replay`
sees to it.
"""

from dataclasses import dataclass, field

import numpy as np

from .._privacy._trace import Shares
from .laws import law_of

__all__ = ["Replay"]

_COMPARED = ("sensitivity", "scale", "cost", "public")


@dataclass
class Replay(Shares):
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
        Realized cost of each plan entry, at most what it was charged.
    ratios : dict
        Largest realized distance over claimed sensitivity of each plan entry.
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

    @np.errstate(all="ignore")  # a fit may be strict, but what overflows here is compared as inf
    def record(self, event):
        """Compare an event with the recorded one and return the recorded output."""
        output = self._played(event)
        if event.kind == "share":
            # What the client adds from here on is the share that was recorded.
            event.output = output
            self.add_share(event)
        return output

    def _played(self, event):
        """The output that is forced on the neighbour, after the comparison.

        Where the two fits do not make the same release there is nothing to compare, and the
        neighbour keeps its own output: the violation has been noted.
        """
        law = law_of(event)  # also of a release that is made too often: an error if unknown
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
        for what in _COMPARED:
            if not _same(getattr(known, what), getattr(event, what)):
                self.blame(event, f"{what} differs between neighbours")
        return law.replay(self, known, event)

    def finish(self):
        """Check that nothing of the recording is left over; return the violations."""
        if self._next < len(self.recorded) and not self.violations:
            self.violations.append(f"{self.recorded[self._next].entry}: not released")
        chain = sorted(self.moved, key=len)
        for part, inner in zip(chain, chain[1:], strict=False):
            if not inner.startswith(part):
                self.violations.append(f"one unit is in both parts {part!r} and {inner!r}")
        return self.violations

    def blame(self, event, text):
        """Note a violation."""
        self.violations.append(f"{event.entry}: {text}")

    def account(self, event, distance, cost):
        """Note a distance in units of the claim, and the cost that it realizes.

        Parameters
        ----------
        event : Event
            Of the neighbour.
        distance : float
            Of the two statistics over the sensitivity: more than one is a violation.
        cost : float
            What the pair costs at this distance, in the currency of the event: more than the event
            says is a violation. NaN in either place is one too.
        """
        self.ratios[event.entry] = max(self.ratios.get(event.entry, 0.0), distance)
        self.loss[event.entry] = self.loss.get(event.entry, 0.0) + cost
        if distance > 0 and "part" in event.public:
            self.moved.add(event.public["part"] + "/")
        if not (distance <= 1 + 1e-12 and cost <= event.cost * (1 + 1e-9)):  # NaN is none of it
            self.blame(
                event, f"distance {distance:.6g} of the claim, cost {cost:.6g} of {event.cost:.6g}"
            )


def _same(a, b):
    """Whether two public facts agree: dicts, arrays of any shape, numbers, words."""
    if type(a) is type(b) and type(a) in (float, int, str):
        return a == b  # most of them: some ten times faster than by arrays
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
