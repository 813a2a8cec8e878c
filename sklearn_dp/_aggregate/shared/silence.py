"""Silence around code that sees private rows: nothing of it shows but its result.

What an inner fit warns of, logs, prints or dies of is a fact about private rows. Python keeps the
ways out in the process, not in the thread: a filter that one thread sets, others lose or inherit.
So while any fit is silent, the ways out are replaced by ones that look at who comes: threads
of inner fits find a closed door, and one room of their own, where their own filters, logs and
redirections work; all other threads find what was there before. The last one to leave puts
everything back.

Silent are: `warnings` (also recorded or turned into errors by other threads), `logging`, what goes
through ``sys.stdout`` and ``sys.stderr``, exceptions of every kind, what finalizers and threads of
the fit die of. Not silent are: writes below Python (a C library's, ``os.write``), objects that were
taken from ``sys`` before, files, sockets, processes that the fit starts by itself, threads that
outlive it, and the death of the process. `SECURITY.md` says so.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np

__all__ = ["attempt", "attempt_silently", "relayed_signals", "silent"]

_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_here = threading.local()  # .section: the room of a silent thread; .raised: by a signal handler


class _Section:
    """The room of a silent thread, and of the threads that it starts."""

    def __init__(self):
        self.active, self.filters, self.logs, self.targets, self._sink = True, [], [], {}, None

    def stream(self, name):
        """Where a stream leads to: whatever the fit has redirected it to, or nowhere."""
        return self.targets.get(name) or self._nowhere()

    def _nowhere(self):
        if self._sink is None:
            self._sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return self._sink

    def close(self):
        self.active = False
        if self._sink is not None:
            self._sink.close()

    def show(self, message):
        """Treat a warning as the filters of this section say; it is never shown."""
        for action, pattern, category, *_ in self.filters:
            if issubclass(message.category, category) and (
                    pattern is None or pattern.match(str(message.message))):
                if action == "error":
                    raise message.message
                if action == "ignore":
                    return
                break
        if self.logs:
            self.logs[-1].append(message)


def _section():
    """The section of this thread, or None where it may be heard."""
    section = getattr(_here, "section", None)
    return section if section is not None and section.active else None


@contextmanager
def _inside(section):
    outer, _here.section = getattr(_here, "section", None), section
    try:
        yield
    finally:
        _here.section = outer


@contextmanager
def silent():
    """Nothing that this thread, or one that it starts, says in this block is heard."""
    section = _Section()
    with _doors, relayed_signals(), _inside(section):
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
    raised = getattr(_here, "raised", None)
    if raised is None:
        return found
    # Without the lines and exceptions of the function in its wake.
    raised.__context__ = raised.__cause__ = None
    raise raised.with_traceback(None)


def attempt_silently(function, *arguments):
    """As :func:`attempt`, in a section of its own; inside a block of :func:`silent`."""
    _doors.tighten()
    section = _Section()
    with _inside(section), np.errstate(all="ignore", call=None):
        try:
            return attempt(function, *arguments)
        finally:
            _doors.tighten()
            section.close()


class _Relay:
    """A signal handler of the user: heard, and what it raises is noted."""

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, number, frame):
        try:
            with _inside(None):
                return self.handler(number, frame)
        except BaseException as error:
            _here.raised = error
            raise


@contextmanager
def relayed_signals():
    """Note what handlers of signals raise; Python calls them in the main thread only."""
    relays = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        relays = {number: _Relay(handler) for number, handler in handlers.items()
                  if callable(handler) and not isinstance(handler, _Relay)}
    for number, relay in relays.items():
        signal.signal(number, relay)
    try:
        yield
    finally:
        for number, relay in relays.items():
            if signal.getsignal(number) is relay:
                signal.signal(number, relay.handler)
        if relays:
            vars(_here).pop("raised", None)


# -- the doors -------------------------------------------------------------------------------------


class _InSilence:
    """The text pattern of a filter that is for silent threads alone."""

    def match(self, text):
        return _section() is not None


# In front of all others, it keeps them from what a silent thread warns of: no error is raised for
# another thread's sake, and nothing is noted in a registry of what has been shown. It is shown, to
# a door that is closed.
_FILTER = ("always", _InSilence(), Warning, None, 0)


class _Stream:
    """A stream that leads silent threads elsewhere."""

    def __init__(self, name, stream):
        vars(self).update(_name=name, _stream=stream)

    def _target(self):
        section = _section()
        return self._stream if section is None else section.stream(self._name)

    def __getattr__(self, name):
        return getattr(self._target(), name)

    def __setattr__(self, name, value):
        setattr(self._target(), name, value)

    def __iter__(self):
        return iter(self._target())

    def __enter__(self):
        return self._target().__enter__()

    def __exit__(self, *error):
        return self._target().__exit__(*error)


class _Doors:
    """Replaces the ways out while a thread of this process is silent."""

    def __init__(self):
        self.lock, self._inside, self._originals = threading.RLock(), 0, []
        self._lists, self._streams = [], {}

    def __enter__(self):
        with self.lock:
            self._inside += 1
            self.tighten()

    def __exit__(self, *error):
        with self.lock:
            self._inside -= 1
            if self._inside == 0:
                self._open()

    def tighten(self):
        """Close again what has been opened by hand, or by a thread that is not silent."""
        with self.lock:
            if not self._inside:
                return
            for way in _WAYS:
                self._close(*way)
            for filters in _filter_lists():
                self._lead(filters)
            for name in _STREAMS:
                self._wrap(name)

    def _close(self, owner, name, make):
        original = vars(owner).get(name)
        if original is None or any(door is original for *_, door in self._originals):
            return
        door = make(original)
        self._originals.append((owner, name, original, door))
        setattr(owner, name, door)

    def _lead(self, filters):
        """Put our filter in front of all others."""
        if filters and filters[0] is _FILTER:
            return
        _drop(filters)
        filters.insert(0, _FILTER)
        if not self.known(filters):
            self._lists.append(filters)

    def _wrap(self, name):
        now, known = getattr(sys, name), self._streams.get(name)
        if isinstance(now, _Stream):
            return
        if known is not None and _section() is not None:
            # A fit has put something else there by hand, and left it.
            setattr(sys, name, known)
        elif now is not None:
            self._streams[name] = _Stream(name, now)
            setattr(sys, name, self._streams[name])

    def known(self, filters):
        """Whether a list of filters comes from a thread that is not silent."""
        return any(known is filters for known in self._lists)

    def _open(self):
        for owner, name, original, door in reversed(self._originals):
            if vars(owner).get(name) is door:
                setattr(owner, name, original)
        for filters in (*self._lists, *_filter_lists()):
            _drop(filters)
        for name in _STREAMS:
            now = getattr(sys, name)
            if isinstance(now, _Stream):
                setattr(sys, name, now._stream)
        self._originals, self._lists, self._streams = [], [], {}

    def renew_lock(self):
        """In the child of a fork: the thread that held it is not there."""
        self.lock = threading.RLock()


def _drop(filters):
    filters[:] = [item for item in filters if item is not _FILTER]


def _filter_lists():
    """The filters in force: of the process and, in newer Pythons, of the context."""
    of_context = getattr(warnings, "_get_filters", None)
    lists = [warnings.filters] if of_context is None else [of_context(), warnings.filters]
    return [filters for filters in lists if isinstance(filters, list)]


def _closed(original):
    """A function that does nothing in a silent thread."""
    def door(*arguments, **options):
        return None if _section() is not None else original(*arguments, **options)
    return door


def _show(original):
    def door(message):
        section = _section()
        return original(message) if section is None else section.show(message)
    return door


def _add_filter(original):
    def door(*item, append):
        section = _section()
        if section is None:
            original(*item, append=append)
            _doors.tighten()
        elif item[3] is None:
            section.filters.insert(len(section.filters) if append else 0, item)
    return door


def _reset_filters(original):
    def door():
        section = _section()
        if section is None:
            original()
            _doors.tighten()
        else:
            section.filters.clear()
    return door


def _enter_catch(original):
    def door(self):
        section = _section()
        if section is None:
            with _doors.lock:
                found = original(self)
                _doors.tighten()
            return found
        log = [] if getattr(self, "_record", False) else None
        self._silent = section, list(section.filters), warnings.filters, log
        if log is not None:
            section.logs.append(log)
        if getattr(self, "_filter", None) is not None:
            warnings.simplefilter(*self._filter)
        return log
    return door


def _exit_catch(original):
    def door(self, *error):
        entered = vars(self).pop("_silent", None)
        with _doors.lock:
            if entered is None:
                original(self, *error)
            else:
                section, section.filters, filters, log = entered
                if log is not None:
                    section.logs[:] = [other for other in section.logs if other is not log]
                if warnings.filters is not filters and not _doors.known(warnings.filters):
                    warnings.filters = filters  # put there by hand, in reliance on this exit
            _doors.tighten()
    return door


class _Redirected:
    """What a silent thread had redirected a stream to, before it did so again."""

    def __init__(self, section, name):
        self.section, self.name, self.target = section, name, section.targets.get(name)

    def put_back(self):
        self.section.targets[self.name] = self.target


def _enter_redirect(original):
    def door(self):
        section = _section()
        if section is not None:
            self._old_targets.append(_Redirected(section, self._stream))
            section.targets[self._stream] = self._new_target
            return self._new_target
        with _doors.lock:
            found = original(self)
            if isinstance(self._old_targets[-1], _Stream):  # at the exit, there may be no doors
                self._old_targets[-1] = self._old_targets[-1]._stream
            _doors.tighten()
        return found
    return door


def _exit_redirect(original):
    def door(self, *error):
        if isinstance(self._old_targets[-1], _Redirected):
            self._old_targets.pop().put_back()
            return
        with _doors.lock:
            original(self, *error)
            _doors.tighten()
    return door


def _start(original):
    """A thread that a silent one starts is as silent, for as long."""
    def door(self):
        section = _section()
        if section is not None:
            self.run = _silent_run(section, self.run)
        return original(self)
    return door


def _silent_run(section, run):
    def silent_run():
        with _inside(section):
            try:
                run()
            except BaseException:
                if section.active:
                    return  # a hook for what threads die of would see it
                raise
    return silent_run


_WAYS = (
    (warnings, "_showwarnmsg", _show), (warnings, "_add_filter", _add_filter),
    (warnings, "resetwarnings", _reset_filters),
    (warnings.catch_warnings, "__enter__", _enter_catch),
    (warnings.catch_warnings, "__exit__", _exit_catch),
    (logging.Logger, "_log", _closed), (logging.Logger, "handle", _closed),
    (logging, "basicConfig", _closed), (sys, "unraisablehook", _closed),
    (contextlib._RedirectStream, "__enter__", _enter_redirect),
    (contextlib._RedirectStream, "__exit__", _exit_redirect),
    (threading.Thread, "start", _start),
)

_doors = _Doors()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_doors.renew_lock)
