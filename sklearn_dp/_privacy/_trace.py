"""Record a fit: the instrument of the privacy audit.

A :class:`Trace` that is put into the machine with :func:`trace` sees every release of every session
opened meanwhile: the exact statistic, its claimed sensitivity, the noise scale and the output. An
audit may put another output in its place. Outside an audit no statistic is ever kept.

An audit may also break something on purpose: another source of noise, a mutant. That is done in a
context (:func:`altering`), never to a class; sessions there have "altered" noise in their reports.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_ALTERED = ContextVar("sklearn_dp_altered", default=_NOTHING)
_ACTIVE = ContextVar("sklearn_dp_trace", default=None)
_DRAWS: ContextVar[list["Draw"] | None] = ContextVar("sklearn_dp_draws", default=None)
# The trace of this context, or None; the substitutions that an audit has made in it, if any; and,
# while a release is recorded, the list of what its samplers draw.
active_trace, altered, draws_of_release = _ACTIVE.get, _ALTERED.get, _DRAWS.get


@contextmanager
def trace(recorder: Any) -> Iterator[Any]:
    """Let `recorder` see the releases of the sessions opened in this context."""
    token = _ACTIVE.set(recorder)
    try:
        yield recorder
    finally:
        _ACTIVE.reset(token)


@contextmanager
def altering(what: Any, value: Any) -> Iterator[None]:
    """Put a value in the place of something while this context lasts."""
    token = _ALTERED.set({**altered(), what: value})
    try:
        yield
    finally:
        _ALTERED.reset(token)


@dataclass(frozen=True)
class Draw:
    """One call of a sampler, as the sampler saw it.

    Parameters
    ----------
    law : str
        "gaussian", "laplace" or "choice" (exponential mechanism).
    scale : float or ndarray
        Standard deviation, Laplace scale or rate of the choice, per grid step: the value actually
        used, not the claimed one.
    size : int
        Number of draws.
    """

    law: str
    scale: Any
    size: int


@contextmanager
def drawn() -> Iterator[list[Draw]]:
    """Collect what the samplers draw in this context."""
    draws: list[Draw] = []
    token = _DRAWS.set(draws)
    try:
        yield draws
    finally:
        _DRAWS.reset(token)


@dataclass
class Event:
    """One release, with the private statistic behind it.

    Not private: it contains exact statistics of the data. It cannot be pickled, and its repr
    excludes them.

    Parameters
    ----------
    kind : str
        "gaussian", "laplace", "sparse", "stability", "choice", "lead", "filter", "bernoulli",
        "proportional", "draws", "copies", "order", "seed", "share" (of a client, of the noise),
        "fit" (a whole fit inside; see :mod:`sklearn_dp._privacy._session`); "step" and what
        it draws inside, "inner_laplace", "inner_gaussian", "inner_choice", "sample", "runs" (of a
        search) and "condition" (see :mod:`sklearn_dp._privacy.mechanisms.pure`).
    entry : str
        Name of the plan entry that pays.
    value : object
        The exact statistic (integers), before noise.
    sensitivity : float or ndarray
        The claimed sensitivity of `value`, in grid steps.
    scale : float or ndarray
        Noise scale in grid steps.
    cost : float
        Cost in zCDP, rho; for the pure mechanisms their epsilon.
    public : dict
        Everything else that must be equal for neighbors (unit, threshold, ...).
    output : object
        What was released, in grid steps.
    units : ndarray of int, optional
        Indices of the units on which a filter decides; by default all.
    draws : tuple of Draw
        What the samplers drew for `output`: the distribution and scale that were actually used.
    """

    kind: str
    entry: str = ""
    value: Any = field(default=None, repr=False)
    sensitivity: Any = None
    scale: Any = None
    cost: float = 0.0
    public: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    units: Any = field(default=None, repr=False)
    draws: tuple[Draw, ...] = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a recorded release contains exact statistics of the data and cannot be pickled"
        )


class Shares:
    """The noise that clients have added to a sum so far, which only an audit may know."""

    _added: dict[str, Any]

    def add_share(self, event: Event) -> None:
        """Note the output of an event of kind "share"."""
        self._added[event.entry] = self._added.get(event.entry, 0) + event.output

    def take_shares(self, entry: str) -> Any:
        """All the shares for a release, which then belong to it."""
        return self._added.pop(entry, 0)


class Trace(Shares):
    """A recording of all the events of a fit, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._added = {}

    def record(self, event: Event) -> Any:
        """Note an event; the session goes on with the output that this returns."""
        self.events.append(event)
        if event.kind == "share":
            self.add_share(event)
        return event.output

    @property
    def forces(self) -> bool:
        """True if it may put another output in the place of one that was drawn."""
        return type(self).record is not Trace.record
