"""The doors: what takes the place of Python's ways out while any thread is silent.

Python keeps its warning filters, logs and streams in the process, not in the thread. While a fit
is silent these ways out are replaced by doors that look at who comes. A thread with a section
finds a closed door and a room of its own, where its own filters, logs and redirections work; every
other thread finds what was there before. The last one to leave puts everything back.

How to read this module:

1. :class:`.sections.Section` is the room: what the code of a fit may do to warnings and streams.
2. ``_WAYS``, at the end, lists each way out of Python with the function that makes its door. A door
   asks :func:`.sections.section_of_thread` who comes.
3. ``DOORS`` (:class:`_Doors`) puts doors up when the first thread becomes silent, and takes them
   down when the last one leaves. In between others may change filters and streams, in silent and in
   other threads: ``tighten`` puts the doors up again.

All attributes that are replaced belong to modules that other threads use at the same time. So every
change is made under one lock, each door works whether or not it is still in place, and originals
are put back only where the door is what is found.

What a door may rely on, and what it must not do:

* It may run in any thread, at any time, also while doors go up or come down. So it decides by the
  thread's own section alone, and calls the original that it was made with where there is none.
* It must be right also when it is no longer in place: somebody may have kept it ("from sys import
  stdout"), or a ``with`` block that was entered through a door may be left after the doors are
  gone.
* It must not change what threads without a section see. A server around a fit keeps its warnings,
  logs and redirections; a fit that silenced them would hide errors that are not its own.

Why not ``warnings.catch_warnings`` and ``redirect_stdout`` around each fit: both change the whole
process. Two threads that enter and leave them in turn restore each other's changes in the wrong
order, so a warning of one fit can end up in the record of another thread, and a filter that a
thread set is gone afterwards.

Private names of the standard library are replaced too (``warnings._showwarnmsg``, ``Logger._log``).
Public functions are not the only callers of these, so a door in front of the public ones alone
would leave a way around. A name that a version of Python does not have is passed over (``_close``).
"""

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from .sections import Section, inside, section_of_thread

__all__ = ["DOORS"]

_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


class _InSilence:
    """The text pattern of a filter that is for silent threads alone.

    A filter's text pattern is anything with a method `match`. It is asked in the thread that warns,
    so this one filter, in a list that all threads share, applies to silent threads only.
    """

    def match(self, text: str) -> bool:
        """What `warnings` asks of a pattern; the text does not matter.

        Parameters
        ----------
        text : str
            Of the warning.

        Returns
        -------
        silent : bool
        """
        return section_of_thread() is not None


# In front of all others, it keeps them from what a silent thread warns of: no error is raised for
# another thread's sake, and nothing is noted in a registry of what has been shown. It is shown, to
# a door that is closed.
_FILTER = ("always", _InSilence(), Warning, None, 0)


class _Stream:
    """A stream that leads silent threads elsewhere.

    Every attribute is that of the stream it leads to at that moment, so it passes for a stream
    wherever one is asked for by its methods. Special methods are looked up on the class, so those
    that streams have are written out.

    It stays valid for as long as somebody holds it: with the doors down no thread has a section,
    and every call goes to the stream behind.
    """

    def __init__(self, name: str, stream: Any) -> None:
        """A stand-in for one stream.

        Parameters
        ----------
        name : str
            In `sys`; a section redirects by it.
        stream : file object
            What threads without a section write to.
        """
        # Past our own __setattr__, which sets the attributes of the stream behind.
        vars(self).update(_name=name, _stream=stream)

    def _target(self):
        """Asked for at every access and never kept: the same object is used by many threads."""
        section = section_of_thread()
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
    """Replaces the ways out while a thread of this process is silent.

    Doors are counted, not nested: `_inside` is how many blocks of silence are open in all threads.
    The first one puts them up, the last one takes them down. They cannot be stacked and removed one
    by one, as threads leave in another order than they came.

    Attributes
    ----------
    lock : RLock
        Held while anything of the process is changed. Reentrant: a door that holds it may call
        another one.
    """

    def __init__(self) -> None:
        # A fork in the middle of a fit copies both; see `renew_lock`.
        self.lock, self._inside = threading.RLock(), 0
        # (owner, name, original, door) of each door that is up
        self._originals: list[tuple[Any, str, Any, Any]] = []
        # filter lists of threads that are not silent, and the stand-ins of streams, by name
        self._lists: list[list] = []
        self._streams: dict[str, _Stream] = {}

    def __enter__(self):
        """One more block of silence; the first one puts the doors up."""
        with self.lock:
            self._inside += 1
            self.tighten()

    def __exit__(self, *error):
        """One block of silence less; the last one takes the doors down."""
        with self.lock:
            self._inside -= 1
            if self._inside == 0:
                self._open()

    def tighten(self) -> None:
        """Close again what has been opened by hand, or by a thread that is not silent.

        It is called wherever something may have changed: at each new block of silence, after each
        inner fit, and by doors through which another thread has just changed filters or streams.
        What is in place already is left alone, so it may be called at any time and as often as one
        likes.

        1. Put up every door that is missing.
        2. Put our filter first in every list of filters that is in force.
        3. Put a stand-in in the place of every standard stream that has none.
        """
        with self.lock:
            if not self._inside:
                return
            for way in _WAYS:
                self._close(*way)
            for filters in _filter_lists():
                self._lead(filters)
            for name in _STREAMS:
                self._wrap(name)

    def _close(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put a door up, unless what is there is one of ours already.

        Parameters
        ----------
        owner : module or class
        name : str
            Looked for in the owner itself and not in what it inherits. That way the original can be
            put back as it was.
        make : callable
            From the original to the door.
        """
        original = vars(owner).get(name)
        if original is None or any(door is original for *_, door in self._originals):
            return
        door = make(original)
        self._originals.append((owner, name, original, door))
        setattr(owner, name, door)

    def _lead(self, filters: list) -> None:
        """Put our filter in front of all others.

        Only the first filter that matches counts, so a filter in front decides. It is moved, not
        added, where the list has it further behind. Lists are remembered, since a list that has
        been left by its thread may be in force again later.
        """
        if filters and filters[0] is _FILTER:
            return
        _drop(filters)
        filters.insert(0, _FILTER)
        if not self.known(filters):
            self._lists.append(filters)

    def _wrap(self, name: str) -> None:
        """Put a stand-in in the place of a stream.

        Parameters
        ----------
        name : str
            Of a stream in `sys`.

        Notes
        -----
        Three cases of what is found there:

        1. a stand-in: nothing to do;
        2. another object, in a silent thread: a fit has assigned to ``sys.stdout`` by hand. Other
           threads must not write into its buffer, so the stand-in comes back.
        3. another object, in a thread that is heard: it has redirected its stream. A new stand-in
           leads to that one from now on.
        """
        now, known = getattr(sys, name), self._streams.get(name)
        if isinstance(now, _Stream):
            return
        if known is not None and section_of_thread() is not None:
            # A fit has put something else there by hand, and left it.
            setattr(sys, name, known)
        elif now is not None:
            self._streams[name] = _Stream(name, now)
            setattr(sys, name, self._streams[name])

    def known(self, filters: object) -> bool:
        """Whether a list of filters comes from a thread that is not silent.

        By identity: two lists may be equal, and belong to two threads.
        """
        return any(known is filters for known in self._lists)

    def _open(self) -> None:
        """Put back all that is still as we left it; what others have put there since stays.

        In reverse order, so that what was replaced last is put back first. Where another object
        than our door is found, somebody has replaced the door itself: it is left there, and it goes
        on to call the door, which passes everything on when no thread is silent.
        """
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

    def renew_lock(self) -> None:
        """In the child of a fork: the thread that held it is not there.

        Only the thread that forks goes on in the child. Had another one held the lock, nobody would
        ever release it, and the child's first fit would wait for ever.
        """
        self.lock = threading.RLock()


def _drop(filters: list) -> None:
    """Take our filter out of a list, in place: others hold the same list.

    A new list would leave the old one, with our filter in it, in the hands of whoever holds it.
    """
    filters[:] = [item for item in filters if item is not _FILTER]


def _filter_lists() -> list[list]:
    """The filters in force: of the process and, in newer Pythons, of the context.

    From Python 3.14 on, filters may belong to a context (``sys.flags.context_aware_warnings``), and
    ``warnings._get_filters`` gives those of the present one. Both lists are led, as either may be
    the one that a warning is judged by.
    """
    of_context = getattr(warnings, "_get_filters", None)
    lists = [warnings.filters] if of_context is None else [of_context(), warnings.filters]
    return [filters for filters in lists if isinstance(filters, list)]


# -- doors: functions of the original that make what takes its place -----------------------------


def _closed(original):
    """A function that does nothing in a silent thread.

    For what only has effects: logging, and the hook for errors in finalizers. Their callers expect
    None.
    """

    def door(*arguments, **options):
        return None if section_of_thread() is not None else original(*arguments, **options)

    return door


def _show(original):
    """`warnings._showwarnmsg`: a warning of a silent thread goes to its section.

    Our filter has let the warning pass this far, whatever the process's own filters say of it. What
    the code of the fit wanted to happen is decided by the section's filters.
    """

    def door(message):
        section = section_of_thread()
        return original(message) if section is None else section.show(message)

    return door


def _add_filter(original):
    """`simplefilter` and `filterwarnings`: those of a silent thread are its section's.

    Filters for a module are left out: which one a warning came from is not told.

    ``module=`` is the fourth entry of an item. A silent fit that sets a filter for a module loses
    it. Since its warnings are never shown, only a record or an error that it relied on could miss
    something.
    """

    def door(*item, append):
        section = section_of_thread()
        if section is None:
            original(*item, append=append)
            DOORS.tighten()
        elif item[3] is None:
            section.filters.insert(len(section.filters) if append else 0, item)

    return door


def _reset_filters(original):
    """`resetwarnings`: a silent thread forgets its own filters."""

    def door():
        section = section_of_thread()
        if section is None:
            original()
            DOORS.tighten()
        else:
            section.filters.clear()

    return door


def _enter_catch(original):
    """`catch_warnings`: a silent thread notes its own filters, and gets a log if it asks for one.

    The original would copy the filters of the process, and put the copy back at the exit: with
    threads in between, that undoes what others have set.

    What it needs at the exit is kept on the object itself: the section, a copy of its filters, the
    list of filters that the process had, and the log. So nested blocks undo each other in the right
    order.
    """

    def door(self):
        section = section_of_thread()
        if section is None:
            with DOORS.lock:
                found = original(self)
                DOORS.tighten()
            return found
        log: list | None = [] if getattr(self, "_record", False) else None
        self._silent = section, list(section.filters), warnings.filters, log
        if log is not None:
            section.logs.append(log)
        if getattr(self, "_filter", None) is not None:
            warnings.simplefilter(*self._filter)
        return log

    return door


def _exit_catch(original):
    """The end of `catch_warnings`: the section, or the process, gets back what it had.

    How the block was entered decides how it is left: a block that was entered in silence is undone
    in the section that it was entered in, even if that section has ended.
    """

    def door(self, *error):
        entered = vars(self).pop("_silent", None)
        with DOORS.lock:
            if entered is None:
                original(self, *error)
            else:
                section, section.filters, filters, log = entered
                if log is not None:
                    section.logs[:] = [other for other in section.logs if other is not log]
                # Code that assigns ``warnings.filters = [...]`` inside of the block trusts it to
                # restore the old list. A list that another thread has put there in between is
                # known, and stays.
                if warnings.filters is not filters and not DOORS.known(warnings.filters):
                    warnings.filters = filters  # put there by hand, in reliance on this exit
            DOORS.tighten()

    return door


class _Redirected:
    """What a silent thread had redirected a stream to, before it did so again.

    It takes the place of the old stream on the redirection's own stack, and is recognized there
    when the block is left.
    """

    def __init__(self, section, name):
        self.section, self.name, self.target = section, name, section.targets.get(name)

    def put_back(self):
        self.section.targets[self.name] = self.target


def _enter_redirect(original):
    """`redirect_stdout` and `redirect_stderr`: a silent thread redirects in its own section.

    ``redirect_stdout`` keeps a stack of what it has to put back, `_old_targets`. A stand-in on it
    would be put back after the doors are gone, and would then lead to a stream of long ago. So the
    stream behind is put on the stack.
    """

    def door(self):
        section = section_of_thread()
        if section is not None:
            self._old_targets.append(_Redirected(section, self._stream))
            section.targets[self._stream] = self._new_target
            return self._new_target
        with DOORS.lock:
            found = original(self)
            if isinstance(self._old_targets[-1], _Stream):  # at the exit, there may be no doors
                self._old_targets[-1] = self._old_targets[-1]._stream
            DOORS.tighten()
        return found

    return door


def _exit_redirect(original):
    """The end of a redirection, by whoever began it.

    The top of the stack tells whether a silent thread began it.
    """

    def door(self, *error):
        if isinstance(self._old_targets[-1], _Redirected):
            self._old_targets.pop().put_back()
            return
        with DOORS.lock:
            original(self, *error)
            DOORS.tighten()

    return door


def _start(original):
    """A thread that a silent one starts is as silent, for as long.

    A thread has no section of its own. Without this door a fit that starts a thread would be heard
    through it. The section ends with the block of silence: a thread that outlives it is heard
    again, as `SECURITY.md` says.
    """

    def door(self):
        section = section_of_thread()
        if section is not None:
            self.run = _silent_run(section, self.run)
        return original(self)

    return door


def _silent_run(section: Section, run: Callable[[], None]) -> Callable[[], None]:
    """What a thread runs, inside the section of the thread that started it.

    An error that ends a thread goes to ``threading.excepthook``, which prints it. So it is
    swallowed here while the section is in use. The fit cannot rely on seeing it: threads never hand
    errors to whoever started them.

    Parameters
    ----------
    section : Section
    run : callable
        The thread's own `run`.

    Returns
    -------
    silent_run : callable
    """

    def silent_run():
        with inside(section):
            try:
                run()
            except BaseException:
                if section.active:
                    return  # a hook for what threads die of would see it
                raise

    return silent_run


# Each way out: who owns it, its name there, and what makes its door.
_WAYS: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (warnings, "_showwarnmsg", _show),
    (warnings, "_add_filter", _add_filter),
    (warnings, "resetwarnings", _reset_filters),
    (warnings.catch_warnings, "__enter__", _enter_catch),
    (warnings.catch_warnings, "__exit__", _exit_catch),
    (logging.Logger, "_log", _closed),
    (logging.Logger, "handle", _closed),
    (logging, "basicConfig", _closed),
    (sys, "unraisablehook", _closed),
    (contextlib._RedirectStream, "__enter__", _enter_redirect),
    (contextlib._RedirectStream, "__exit__", _exit_redirect),
    (threading.Thread, "start", _start),
)

DOORS = _Doors()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=DOORS.renew_lock)
