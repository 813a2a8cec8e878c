"""Silence around code that sees private rows: nothing of it shows but its result.

What an inner fit warns of, logs, prints or dies of is a fact about private rows. So while any fit
is silent, the output channels are replaced by patches (see :mod:`.output_interception`). Silent
are: `warnings` (also recorded or turned into errors by other threads), `logging`, what goes through
``sys.stdout`` and ``sys.stderr``, exceptions of every kind, what finalizers and threads of the fit
die of. Not silent are: writes below Python (a C library's, ``os.write``), objects that were taken
from ``sys`` before, files, sockets, processes that the fit starts by itself, threads that outlive
it, and the death of the process (`SECURITY.md`).
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from types import FrameType
from typing import Any

import numpy as np

from .output_interception import INTERCEPTION
from .silenced_context import SilencedContext, here, inside

_SIGNALS = frozenset(signal.valid_signals())  # asked for once: it takes as long as a small fit


@contextmanager
def suppress_output() -> Iterator[None]:
    """Nothing that this thread, or one that it starts, says in this block is heard; others are. An
    exception passes through: who wants to have it swallowed uses `attempt`."""
    context = SilencedContext()
    with INTERCEPTION, relayed_signals(), inside(context):
        try:
            yield
        finally:
            context.close()


@contextmanager
def overheard() -> Iterator[StringIO]:
    """Nobody but the caller hears what this thread, or one that it starts, prints and logs here.

    At every level of logging. Warnings go to the blocks of ``catch_warnings`` inside this one,
    which change no filters but those of the thread. So audits may listen side by side.
    """
    heard = StringIO()
    context = SilencedContext(heard)
    with INTERCEPTION, inside(context):
        try:
            yield heard
        finally:
            context.close()


# -- what a call dies of ---------------------------------------------------------------------------


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """The result and None, or None and the exception of whatever kind that came instead.

    An inner fit that is given up is a fact about its rows, so whatever it raises, `SystemExit` too,
    must become the fixed result of a block that failed. What a signal handler raises (Ctrl-C, an
    alarm) passes where signals are relayed, even if the function has swallowed it.
    """
    found: tuple[Any, BaseException | None]
    try:
        found = function(*arguments), None
    except BaseException as error:  # also SystemExit, and a KeyboardInterrupt that is none
        found = None, error
    raised = getattr(here, "raised", None)
    if raised is None:
        return found
    # Without the lines and exceptions of the function in its wake.
    raised.__context__ = raised.__cause__ = None
    raise raised.with_traceback(None)


def attempt_silently(
    function: Callable[..., Any], *arguments: Any
) -> tuple[Any, BaseException | None]:
    """As :func:`attempt`, in a context of its own inside a block of :func:`suppress_output`:
    filters that one fit leaves behind are not those of the next."""
    INTERCEPTION.tighten()
    context = SilencedContext()
    # numpy keeps the state of floating-point errors in the context: set anew, with no hook.
    with inside(context), np.errstate(all="ignore", call=None):  # type: ignore[arg-type]
        try:
            return attempt(function, *arguments)
        finally:
            INTERCEPTION.tighten()
            context.close()


class _Relay:
    """A signal handler of the user, heard also within an inner fit that catches everything: what it
    raises is noted, and :func:`attempt` raises it again, so that Ctrl-C ends a fit."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        try:
            with inside(None):
                return self.handler(number, frame)
        except BaseException as error:
            here.raised = error
            raise


@contextmanager
def relayed_signals() -> Iterator[None]:
    """Note what handlers of signals raise, in the main thread: Python calls them there only."""
    relays: dict[int, _Relay] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        relays = {
            number: _Relay(handler)
            for number, handler in handlers.items()
            if callable(handler) and not isinstance(handler, _Relay)
        }
    # Defaults and handlers of C code are not callable and stay; a relay is not relayed again.
    for number, relay in relays.items():
        signal.signal(number, relay)
    try:
        yield
    finally:
        for number, relay in relays.items():
            # One that was set in the block, by hand, stays.
            if signal.getsignal(number) is relay:
                signal.signal(number, relay.handler)
        if relays:
            vars(here).pop("raised", None)
