"""Work on several parts, or for several clients, at the same time.

Each thread or process has one thread of the BLAS. Calls to the clients of a federation may fail,
each by itself.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from functools import cache
from threading import Lock, Thread
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import ThreadpoolController

from .._silence import attempt, relayed_signals, suppress_output

_BUSY = max(32, os.cpu_count() or 1)  # and so many compute: more take memory, and no less time


@cache
def thread_pools() -> ThreadpoolController:
    """Looking for thread pools costs milliseconds: once per process."""
    return ThreadpoolController()


def in_threads(
    function: Callable[[Any], Any], items: Iterable[Any], n_jobs: int | None = None
) -> Iterator[Any]:
    """Yield the result of a function for each item, in order, by threads; few are in memory."""
    items = list(items)
    most = min(n_threads(n_jobs), len(items))
    if most < 2:
        yield from map(function, items)
        return
    # No call of joblib, which would add 12 ms to each pass, mostly asleep, where these threads add
    # 0.2. How many there are is what its settings say, and one thread of BLAS for each of ours.
    contexts = [copy_context() for _ in items]  # NumPy's error state, and what an audit looks at
    with thread_pools().limit(limits=1), ThreadPoolExecutor(most) as pool:
        yield from pool.map(lambda context, item: context.run(function, item), contexts, items)


def in_workers(
    function: Callable[..., Any],
    tasks: Iterable[tuple],
    n_jobs: int | None = None,
    most: int = _BUSY,
) -> list[Any]:
    """The results of a function for tuples of arguments, in silence, by `most` processes."""
    # This thread is silent too: what joblib says of its workers may be what the rows did to them.
    with suppress_output(), one_thread():
        return Parallel(n_jobs=workers(n_jobs, most))(
            delayed(function)(*arguments) for arguments in tasks
        )


class _OneOfBlas:
    """The limit of BLAS, which is the process's: the first block sets it, the last takes it back;
    else the first of several threads to end would give the others more threads, and other bits."""

    def __init__(self) -> None:
        self._lock, self._blocks = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._limit = _pools("blas").limit(limits=1)
            self._blocks += 1

    def __exit__(self, *raised: Any) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._limit.restore_original_limits()


_ONE_OF_BLAS = _OneOfBlas()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP with one thread in this block, whatever other threads do meanwhile."""
    with _ONE_OF_BLAS, _pools("openmp").limit(limits=1):  # that of OpenMP is the thread's own
        yield


@cache
def _pools(api: str) -> ThreadpoolController:
    return thread_pools().select(user_api=api)


def in_this_thread() -> AbstractContextManager[Any]:
    """A block whose tasks of joblib are worked on here, whatever backend somebody has chosen."""
    return parallel_config(backend="sequential")


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: a public number."""
    return min(effective_n_jobs(n_jobs), _BUSY)


def workers(n_jobs: int | None, most: int) -> int | None:
    """Joblib starts as many workers as it is told to, however little there is to do."""
    return n_jobs if n_jobs is None else min(n_jobs, most)


# -- clients ---------------------------------------------------------------------------------------


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
