"""Silence around code that sees private rows: nothing of it shows but its result.

What an inner fit warns of, logs, prints or dies of is a fact about private rows. Python keeps the
ways out in the process, not in the thread: a filter that one thread sets, others lose or inherit.
So while any fit is silent, the ways out are replaced by doors that look at who comes (see
`doors`).

Silent are: `warnings` (also recorded or turned into errors by other threads), `logging`, what goes
through ``sys.stdout`` and ``sys.stderr``, exceptions of every kind, what finalizers and threads of
the fit die of. Not silent are: writes below Python (a C library's, ``os.write``), objects that were
taken from ``sys`` before, files, sockets, processes that the fit starts by itself, threads that
outlive it, and the death of the process. `SECURITY.md` says so.
"""

import signal
import threading
from contextlib import contextmanager

import numpy as np

from .doors import DOORS, Section, here, inside

__all__ = ["attempt", "attempt_silently", "relayed_signals", "silent"]


@contextmanager
def silent():
    """Nothing that this thread, or one that it starts, says in this block is heard."""
    section = Section()
    with DOORS, relayed_signals(), inside(section):
        try:
            yield
        finally:
            section.close()


# -- what a call dies of ---------------------------------------------------------------------------


def attempt(function, *arguments):
    """The result and None, or None and the exception of whatever kind that came instead.

    What a signal handler raises (Ctrl-C, an alarm, a request to end) is no matter of the function:
    where signals are relayed, as in a block of :func:`silent`, it passes, even if the function has
    swallowed it.
    """
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


def attempt_silently(function, *arguments):
    """As :func:`attempt`, in a section of its own; inside a block of :func:`silent`."""
    DOORS.tighten()
    section = Section()
    with inside(section), np.errstate(all="ignore", call=None):
        try:
            return attempt(function, *arguments)
        finally:
            DOORS.tighten()
            section.close()


class _Relay:
    """A signal handler of the user: heard, and what it raises is noted."""

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, number, frame):
        try:
            with inside(None):
                return self.handler(number, frame)
        except BaseException as error:
            here.raised = error
            raise


@contextmanager
def relayed_signals():
    """Note what handlers of signals raise; Python calls them in the main thread only."""
    relays = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        relays = {
            number: _Relay(handler)
            for number, handler in handlers.items()
            if callable(handler) and not isinstance(handler, _Relay)
        }
    for number, relay in relays.items():
        signal.signal(number, relay)
    try:
        yield
    finally:
        for number, relay in relays.items():
            if signal.getsignal(number) is relay:
                signal.signal(number, relay.handler)
        if relays:
            vars(here).pop("raised", None)
