"""The output channels of Python (`CHANNELS`), each with the function that makes its patch.

A maker gets the original, and the object that installs the patches: a patch that has let another
thread change filters or streams asks it to close again what has come open. What a patch may rely
on, and what it must not do:

* It may run in any thread, at any time, also while patches are installed or removed. So it decides
  by the thread's own context alone, and calls the original that it was made with where there is
  none.
* It must be right also when it is no longer in place: somebody may have kept it, or a ``with``
  block that was entered through a patch may be left after the patches are gone.
* It must not change what threads without a context see: a server around a fit keeps its warnings,
  logs and redirections.

Private names of the standard library are replaced too (``warnings._showwarnmsg``, ``Logger._log``),
as public functions are not their only callers. A name that a version does not have is passed over.
"""

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from .silenced_context import SilencedContext, context_of_thread, inside


def _closed(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """A function of effects only (a handler, the finalizers' hook): nothing in a silent thread."""

    def patch(*arguments: Any, **options: Any) -> Any:
        return None if context_of_thread() is not None else original(*arguments, **options)

    return patch


def _log(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`Logger._log`: what a silent thread logs, an audit may note."""

    def patch(self: Any, level: int, msg: object, args: Any, **options: Any) -> Any:
        context = context_of_thread()
        if context is None:
            return original(self, level, msg, args, **options)
        return context.log(msg, args)

    return patch


def _handle(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`Logger.handle`: the same for a record that code has made by itself."""

    def patch(self: Any, record: Any) -> Any:
        context = context_of_thread()
        return original(self, record) if context is None else context.log(record.msg, record.args)

    return patch


def _is_enabled(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`Logger.isEnabledFor`: an audit notes every level, as somebody may turn it on."""

    def patch(self: Any, level: int) -> Any:
        context = context_of_thread()
        return (context is not None and context.heard is not None) or original(self, level)

    return patch


def _show(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`warnings._showwarnmsg`: a warning of a silent thread goes to its context, whose filters
    decide."""

    def patch(message: Any) -> Any:
        context = context_of_thread()
        return original(message) if context is None else context.show(message)

    return patch


def _add_filter(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`simplefilter` and `filterwarnings`: those of a silent thread are its context's, but for
    filters for a module (the fourth entry of an item): which one a warning came from is not told.
    """

    def patch(*item: Any, append: Any) -> None:
        context = context_of_thread()
        if context is None:
            original(*item, append=append)
            interception.tighten()
        elif item[3] is None:
            context.filters.insert(len(context.filters) if append else 0, item)

    return patch


def _reset_filters(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`resetwarnings`: a silent thread forgets its own filters."""

    def patch() -> None:
        context = context_of_thread()
        if context is None:
            original()
            interception.tighten()
        else:
            context.filters.clear()

    return patch


def _enter_catch(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`catch_warnings`: a silent thread notes its own filters, and gets a log if it asks for one.

    The original would put a copy of the process's filters back at the exit, and undo what others
    have set. What is needed there is kept on the object itself: the context, a copy of its filters,
    the list that the process had, and the log; so nested blocks undo each other in order.
    """

    def patch(self: Any) -> Any:
        context = context_of_thread()
        if context is None:
            with interception.lock:
                found = original(self)
                interception.tighten()
            return found
        log: list | None = [] if getattr(self, "_record", False) else None
        self._silent = context, list(context.filters), warnings.filters, log
        if log is not None:
            context.logs.append(log)
        if getattr(self, "_filter", None) is not None:
            warnings.simplefilter(*self._filter)
        return log

    return patch


def _exit_catch(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """The end of `catch_warnings`, in the context it was entered in, even if that has ended."""

    def patch(self: Any, *error: Any) -> None:
        entered = vars(self).pop("_silent", None)
        with interception.lock:
            if entered is None:
                original(self, *error)
            else:
                context, context.filters, filters, log = entered
                if log is not None:
                    context.logs[:] = [other for other in context.logs if other is not log]
                # Code that assigns ``warnings.filters = [...]`` inside of the block trusts it to
                # restore the old list. A list that another thread has put there in between is
                # known, and stays.
                if warnings.filters is not filters and not interception.known(warnings.filters):
                    warnings.filters = filters  # put there by hand, in reliance on this exit
            interception.tighten()

    return patch


class _Redirected:
    """What a silent thread had redirected a stream to: on the redirection's own stack."""

    def __init__(self, context: SilencedContext, name: str) -> None:
        self.context, self.name, self.target = context, name, context.targets.get(name)

    def put_back(self) -> None:
        self.context.targets[self.name] = self.target


def _enter_redirect(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """`redirect_stdout` and `redirect_stderr`: a silent thread redirects in its own context. On the
    stack `_old_targets` is the stream behind: a stand-in would be put back after the patches are
    gone.
    """

    def patch(self: Any) -> Any:
        context = context_of_thread()
        if context is not None:
            self._old_targets.append(_Redirected(context, self._stream))
            context.targets[self._stream] = self._new_target
            return self._new_target
        with interception.lock:
            found = original(self)
            # The stream behind a stand-in: at the exit, there may be no patches.
            self._old_targets[-1] = interception.behind(self._old_targets[-1])
            interception.tighten()
        return found

    return patch


def _exit_redirect(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """The end of a redirection; the top of the stack tells whether a silent thread began it."""

    def patch(self: Any, *error: Any) -> None:
        if isinstance(self._old_targets[-1], _Redirected):
            self._old_targets.pop().put_back()
            return
        with interception.lock:
            original(self, *error)
            interception.tighten()

    return patch


def _start(original: Callable[..., Any], interception: Any) -> Callable[..., Any]:
    """A thread that a silent one starts is as silent, until its block ends (see `SECURITY.md`)."""

    def patch(self: Any) -> Any:
        context = context_of_thread()
        if context is not None:
            self.run = _silent_run(context, self.run)
        return original(self)

    return patch


def _silent_run(context: SilencedContext, run: Callable[[], None]) -> Callable[[], None]:
    """What a thread runs inside the context of the thread that started it. An error that ends it
    would be printed by ``threading.excepthook``, so it is swallowed while the context is in use."""

    def silent_run() -> None:
        with inside(context):
            try:
                run()
            except BaseException:
                if context.active:
                    return  # a hook for what threads die of would see it
                raise

    return silent_run


# Each output channel: who owns it, its name there, and what makes its patch.
CHANNELS: tuple[tuple[Any, str, Callable[[Any, Any], Any]], ...] = (
    (warnings, "_showwarnmsg", _show),
    (warnings, "_add_filter", _add_filter),
    (warnings, "resetwarnings", _reset_filters),
    (warnings.catch_warnings, "__enter__", _enter_catch),
    (warnings.catch_warnings, "__exit__", _exit_catch),
    (logging.Logger, "isEnabledFor", _is_enabled),
    (logging.Logger, "_log", _log),
    (logging.Logger, "handle", _handle),
    (logging, "basicConfig", _closed),
    (sys, "unraisablehook", _closed),
    (contextlib._RedirectStream, "__enter__", _enter_redirect),
    (contextlib._RedirectStream, "__exit__", _exit_redirect),
    (threading.Thread, "start", _start),
)
