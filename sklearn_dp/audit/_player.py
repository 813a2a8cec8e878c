"""Force a recording on a fit to other data, and note where the two fits differ.

A fit on the neighbor asks its sessions for releases, and every session hands each event to the
active trace. :class:`Replay` is such a trace. For each event in turn it

1. takes the next event of the recording; kind and plan entry have to be the same, as the sequence
   of releases may depend on released values only;
2. compares sensitivity, scale, cost and public facts, which have to be equal for the same reason;
3. lets the law of that kind compare the two exact statistics (:attr:`Law.replay`), which accounts
   for the distance and the cost that it realizes;
4. returns the recorded output. So the fit on the neighbor sees the releases of the recording, and
   goes the way that they lead to.

As both fits have then the same outputs, everything that they show has to be equal; :mod:`_replay`
sees to it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._privacy._trace import Event, Shares, Trace
from .mechanisms import law_of

__all__ = ["Recorder", "Replay"]

_COMPARED = ("sensitivity", "scale", "cost", "public")


class Recorder(Trace):
    """A recording for a replay: both count as forcing outputs, since both fits have to show the
    same, their reports included."""

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
    # the parts of the units (see `_privacy._parallel_composition`) whose releases have moved: one
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
        """The output that is forced on the neighbor, after the comparison.

        Where the two fits do not make the same release there is nothing to compare, and the
        neighbor keeps its own output: the violation has been noted.
        """
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
        """Note a distance in units of the claim, and the cost that it realizes.

        The event is that of the neighbor. A distance of the two statistics of more than one
        sensitivity is a violation, and so is a cost, in the currency of the event, of more than the
        event says. NaN in either place is one too.
        """
        self.ratios[event.entry] = max(self.ratios.get(event.entry, 0.0), distance)
        self.loss[event.entry] = self.loss.get(event.entry, 0.0) + cost
        if distance > 0 and "part" in event.public:
            self.moved.add(event.public["part"] + "/")
        if not (distance <= 1 + 1e-12 and cost <= event.cost * (1 + 1e-9)):  # NaN is none of it
            self.blame(
                event, f"distance {distance:.6g} of the claim, cost {cost:.6g} of {event.cost:.6g}"
            )


def _same(a: Any, b: Any) -> bool:
    """Whether two public facts agree: dicts, arrays of any shape, numbers, words."""
    if type(a) is type(b) and type(a) in (float, int, str):
        return a == b  # most of them: some ten times faster than by arrays
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
