"""Record the releases of a fit, and replay them on another one: the hook for auditors of their own.

The instruments of this package (:mod:`._replay`) and those of others sit on the same trace; nothing
is known here about any law.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._privacy._trace import Event, Trace, trace
from .._privacy._warn import warn
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
    replayer = _Replayer(recorded, np.asarray(units))
    with trace(replayer):
        yield replayer.events


def _warn() -> None:
    warn(
        "the releases of fits are recorded with their exact values: what is recorded is not "
        "private, and neither it nor a replayed fit may be published.",
        ExactStatisticsWarning,
    )
