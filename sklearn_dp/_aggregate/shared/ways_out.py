"""The ways out of Python, each with the function that makes its door.

A door takes the place of a function or method of the standard library while any thread is silent;
:mod:`.doors` puts all of them up and takes them down. `WAYS`, at the end, lists what is guarded.

A maker gets the original, and the object that puts the doors up: a door that has let another thread
change filters or streams asks it to close again what has come open. A door asks
:func:`.sections.section_of_thread` who comes. A thread without a section gets the original.

What a door may rely on, and what it must not do:

* It may run in any thread, at any time, also while doors go up or come down. So it decides by the
  thread's own section alone, and calls the original that it was made with where there is none.
* It must be right also when it is no longer in place: somebody may have kept it ("from sys import
  stdout"), or a ``with`` block that was entered through a door may be left after the doors are
  gone.
* It must not change what threads without a section see. A server around a fit keeps its warnings,
  logs and redirections; a fit that silenced them would hide errors that are not its own.

Private names of the standard library are replaced too (``warnings._showwarnmsg``, ``Logger._log``).
Public functions are not the only callers of these, so a door in front of the public ones alone
would leave a way around. A name that a version of Python does not have is passed over.
"""

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from .sections import Section, inside, section_of_thread

__all__ = ["WAYS"]


def _closed(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """A function that does nothing in a silent thread.

    For what only has effects: logging, and the hook for errors in finalizers. Their callers expect
    None.
    """

    def door(*arguments: Any, **options: Any) -> Any:
        return None if section_of_thread() is not None else original(*arguments, **options)

    return door


def _show(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """`warnings._showwarnmsg`: a warning of a silent thread goes to its section.

    Our filter has let the warning pass this far, whatever the process's own filters say of it. What
    the code of the fit wanted to happen is decided by the section's filters.
    """

    def door(message: Any) -> Any:
        section = section_of_thread()
        return original(message) if section is None else section.show(message)

    return door


def _add_filter(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """`simplefilter` and `filterwarnings`: those of a silent thread are its section's.

    Filters for a module are left out: which one a warning came from is not told.

    ``module=`` is the fourth entry of an item. A silent fit that sets a filter for a module loses
    it. Since its warnings are never shown, only a record or an error that it relied on could miss
    something.
    """

    def door(*item: Any, append: Any) -> None:
        section = section_of_thread()
        if section is None:
            original(*item, append=append)
            doors.tighten()
        elif item[3] is None:
            section.filters.insert(len(section.filters) if append else 0, item)

    return door


def _reset_filters(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """`resetwarnings`: a silent thread forgets its own filters."""

    def door() -> None:
        section = section_of_thread()
        if section is None:
            original()
            doors.tighten()
        else:
            section.filters.clear()

    return door


def _enter_catch(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """`catch_warnings`: a silent thread notes its own filters, and gets a log if it asks for one.

    The original would copy the filters of the process, and put the copy back at the exit: with
    threads in between, that undoes what others have set.

    What it needs at the exit is kept on the object itself: the section, a copy of its filters, the
    list of filters that the process had, and the log. So nested blocks undo each other in the right
    order.
    """

    def door(self: Any) -> Any:
        section = section_of_thread()
        if section is None:
            with doors.lock:
                found = original(self)
                doors.tighten()
            return found
        log: list | None = [] if getattr(self, "_record", False) else None
        self._silent = section, list(section.filters), warnings.filters, log
        if log is not None:
            section.logs.append(log)
        if getattr(self, "_filter", None) is not None:
            warnings.simplefilter(*self._filter)
        return log

    return door


def _exit_catch(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """The end of `catch_warnings`: the section, or the process, gets back what it had.

    How the block was entered decides how it is left: a block that was entered in silence is undone
    in the section that it was entered in, even if that section has ended.
    """

    def door(self: Any, *error: Any) -> None:
        entered = vars(self).pop("_silent", None)
        with doors.lock:
            if entered is None:
                original(self, *error)
            else:
                section, section.filters, filters, log = entered
                if log is not None:
                    section.logs[:] = [other for other in section.logs if other is not log]
                # Code that assigns ``warnings.filters = [...]`` inside of the block trusts it to
                # restore the old list. A list that another thread has put there in between is
                # known, and stays.
                if warnings.filters is not filters and not doors.known(warnings.filters):
                    warnings.filters = filters  # put there by hand, in reliance on this exit
            doors.tighten()

    return door


class _Redirected:
    """What a silent thread had redirected a stream to, before it did so again.

    It takes the place of the old stream on the redirection's own stack, and is recognized there
    when the block is left.
    """

    def __init__(self, section: Section, name: str) -> None:
        self.section, self.name, self.target = section, name, section.targets.get(name)

    def put_back(self) -> None:
        self.section.targets[self.name] = self.target


def _enter_redirect(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """`redirect_stdout` and `redirect_stderr`: a silent thread redirects in its own section.

    ``redirect_stdout`` keeps a stack of what it has to put back, `_old_targets`. A stand-in on it
    would be put back after the doors are gone, and would then lead to a stream of long ago. So the
    stream behind is put on the stack.
    """

    def door(self: Any) -> Any:
        section = section_of_thread()
        if section is not None:
            self._old_targets.append(_Redirected(section, self._stream))
            section.targets[self._stream] = self._new_target
            return self._new_target
        with doors.lock:
            found = original(self)
            # The stream behind a stand-in: at the exit, there may be no doors.
            self._old_targets[-1] = doors.behind(self._old_targets[-1])
            doors.tighten()
        return found

    return door


def _exit_redirect(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """The end of a redirection, by whoever began it.

    The top of the stack tells whether a silent thread began it.
    """

    def door(self: Any, *error: Any) -> None:
        if isinstance(self._old_targets[-1], _Redirected):
            self._old_targets.pop().put_back()
            return
        with doors.lock:
            original(self, *error)
            doors.tighten()

    return door


def _start(original: Callable[..., Any], doors: Any) -> Callable[..., Any]:
    """A thread that a silent one starts is as silent, for as long.

    A thread has no section of its own. Without this door a fit that starts a thread would be heard
    through it. The section ends with the block of silence: a thread that outlives it is heard
    again, as `SECURITY.md` says.
    """

    def door(self: Any) -> Any:
        section = section_of_thread()
        if section is not None:
            self.run = _silent_run(section, self.run)
        return original(self)

    return door


def _silent_run(section: Section, run: Callable[[], None]) -> Callable[[], None]:
    """What a thread runs, inside the section of the thread that started it: its own `run`.

    An error that ends a thread goes to ``threading.excepthook``, which prints it. So it is
    swallowed here while the section is in use. The fit cannot rely on seeing it: threads never hand
    errors to whoever started them.
    """

    def silent_run() -> None:
        with inside(section):
            try:
                run()
            except BaseException:
                if section.active:
                    return  # a hook for what threads die of would see it
                raise

    return silent_run


# Each way out: who owns it, its name there, and what makes its door.
WAYS: tuple[tuple[Any, str, Callable[[Any, Any], Any]], ...] = (
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
