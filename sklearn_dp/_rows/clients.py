"""Questions to the clients of a federation, and other calls of which each may fail by itself."""

from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from joblib import Parallel, delayed

from .._silence.suppress_output import attempt, relayed_signals
from .threads import thread_pools, workers

_WAITING = 1024  # at most so many threads ask clients


def ask_all(
    function: Callable[[Any], Any],
    clients: Sequence[Any],
    *,
    n_jobs: int | None = None,
    seconds: float | None = None,
) -> list[tuple[Any, BaseException | None]]:
    """Call a function on every client, in threads: pairs (result, error), in their order. Errors
    are returned and not raised, so that one client's failure does not decide about the others. One
    that takes longer than `seconds` is left behind as a daemon: Python cannot end a thread."""
    with relayed_signals(), thread_pools().limit(limits=1):
        return Parallel(
            n_jobs=workers(n_jobs, min(max(len(clients), 1), _WAITING)), prefer="threads"
        )(delayed(_ask_one)(function, client, seconds) for client in clients)


def _ask_one(
    function: Callable[[Any], Any], client: Any, seconds: float | None
) -> tuple[Any, BaseException | None]:
    """Return the answer of one client within some seconds, or an error."""
    if seconds is None:
        return attempt(function, client)
    outcomes: list[tuple[Any, BaseException | None]] = []
    # A thread cannot be killed: as a daemon it at least does not outlive the process.
    worker = Thread(target=lambda: outcomes.append(attempt(function, client)), daemon=True)
    worker.start()
    worker.join(seconds)
    return outcomes[0] if outcomes else (None, TimeoutError("no answer in time"))
