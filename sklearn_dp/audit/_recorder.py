"""Record the releases of a fit, and replay them on another one: the hook for auditors of their own.

The instruments of this package (:mod:`._replay`) and those of others sit on the same trace; nothing
is known here about any law.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._privacy._trace import Event, Trace, trace
from ..exceptions import ExactStatisticsWarning
from ._player import Replay

__all__ = ["record_releases", "replay_releases"]


class _Recorder(Trace):
    """A trace that asks somebody else for the outputs."""

    def __init__(self, force: Callable[[Event], Any]) -> None:
        super().__init__()
        self._force = force

    def record(self, event: Event) -> Any:
        event.output = self._force(event)
        return super().record(event)


@contextmanager
def record_releases(force: Callable[[Event], Any] | None = None) -> Iterator[list[Event]]:
    """Record every release of the fits in this context, with the exact value before noise.

    For audits on data that may be known. What is recorded is **not private**.

    Parameters
    ----------
    force : callable, optional
        ``force(event)`` is called at each release and gives the output with which the fit goes on,
        in grid steps; by default its own, ``event.output``.

    Yields
    ------
    events : list of Event
        Grows as the fits release. In order; of each one the plan entry that pays, the value before
        noise, the claimed sensitivity, the noise scale, the cost, the output, and in `draws` the
        law and the scale that the sampler has really used.

    Warns
    -----
    ExactStatisticsWarning
        Always.

    See Also
    --------
    replay_releases : Force a recording on a fit of other data.
    replay_audit : The audit of this package, which compares by itself.

    Notes
    -----
    Sees the sessions that are opened in this context, in this thread and process. Randomness that
    is no noise is recorded too (kinds "seed", "draws", "order", "sample"), and so are the draws of
    a step that is charged as a whole (their kinds begin with "inner"); neither costs anything by
    itself.

    Events refuse to be pickled, and their repr has no exact value.

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
    recorder = Trace() if force is None else _Recorder(force)
    with trace(recorder):
        yield recorder.events


class _Replayer(Replay):
    """A replay of which the comparison is left to others."""

    def __init__(self, recorded: Any, units: np.ndarray) -> None:
        super().__init__(recorded, units)
        self.events: list[Event] = []

    def record(self, event: Event) -> Any:
        event.output = super().record(event)
        self.events.append(event)
        return event.output


@contextmanager
def replay_releases(recorded: Sequence[Event], units: ArrayLike) -> Iterator[list[Event]]:
    """Force the recorded outputs on the fit in this context, and record what is before the noise.

    With the outputs of a recording forced, a fit of a neighbour has to make the same releases in
    the same order: kinds, entries, sensitivities, scales and costs must be equal, and the values as
    close as is claimed. To compare them is up to the caller.

    Parameters
    ----------
    recorded : sequence of Event
        From :func:`record_releases`, of one fit.
    units : array-like of int of shape (n_units,)
        For each unit of the present data its index in the recorded ones, or -1 where it was added:
        what concerns single units (their blocks, whether a filter keeps them) follows them.

    Yields
    ------
    events : list of Event
        As of :func:`record_releases`, with the outputs that were forced. A release that the
        recording does not have in this place keeps its own output.

    Warns
    -----
    ExactStatisticsWarning
        Always.

    See Also
    --------
    neighbouring_pairs : Neighbours with their `units`.
    """
    _warn()
    replayer = _Replayer(recorded, np.asarray(units))
    with trace(replayer):
        yield replayer.events


def _warn() -> None:
    warnings.warn(
        "the releases of fits are recorded with their exact values: what is recorded is not "
        "private, and neither it nor a replayed fit may be published.",
        ExactStatisticsWarning,
        stacklevel=4,
    )
