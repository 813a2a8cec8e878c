"""Foreign code that sees private rows: suppress its output, and seed its random generators.

Nothing of such code shows but its result. What an inner fit warns of, logs, prints or dies of is a
fact about private rows. Silent are: `warnings`, `logging`, what goes through ``sys.stdout`` and
``sys.stderr``, exceptions of every kind, what finalizers and threads of the fit die of. Not silent
are: writes below Python, objects that were taken from ``sys`` before, files, sockets, processes
that the fit starts by itself, threads that outlive it, and the death of the process
(`SECURITY.md`).

Python keeps warning filters, logs and streams in the process, not in the thread. So while any fit
is silent, patches (`CHANNELS`) stand in the place of the output channels: a thread with a
`SilencedContext` finds that instead, every other thread what was there before. A patch decides by
the thread's own context alone. Blocks of ``warnings.catch_warnings`` around each fit would not do:
two threads that enter and leave them in turn restore each other's changes in the wrong order. Nor
would a worker process: fits that were given a threading backend, or that no pickle can hold, run
here.

The global generators of numpy and of Python are seeded, too. What one block gets would depend on
how much the blocks before it have drawn. So each block (and each row, of a function of single rows)
starts a stream of its own. Afterward the generators are as they were before. They belong to the
process, so threads take turns. `SECURITY.md` says what is not seen.
"""

import contextlib
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from types import FrameType
from typing import Any, TextIO
from zlib import crc32

import numpy as np

from ._privacy._ledger import no_charges

here = threading.local()  # .context: the context of a silent thread; .raised: by a signal handler


class SilencedContext:
    """The context of a silent thread, and of the threads that it starts, for each block and each
    inner fit: what is the process's state in ordinary Python."""

    def __init__(self, heard: TextIO | None = None) -> None:
        outer = context_of_thread()
        self.heard = heard  # what it prints and logs, at every level, where an audit listens
        self.active = True  # threads that outlive it are heard again
        # whether it is in a block of `global_generators.own_streams`
        self.has_turn: bool = outer is not None and outer.has_turn
        self.filters: list[tuple] = []  # that the code inside has set, as in `warnings.filters`
        # of the blocks ``catch_warnings(record=True)`` that it is in, the innermost one last
        self.logs: list[list] = []
        self.targets: dict[str, Any] = {}  # where it has redirected streams to, by their names
        self._sink: TextIO | None = None

    def stream(self, name: str) -> Any:
        """Where a stream leads to: to what the fit has redirected it, to an audit, or nowhere."""
        target = self.targets.get(name) or self.heard or self._sink
        if target is None:
            # A real file: code inside may ask it for its number, its encoding or its buffer.
            target = self._sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return target

    def log(self, message: object, arguments: Any) -> None:
        """Note what would be logged, where an audit listens."""
        if self.heard is not None:
            try:
                text = logging.LogRecord("", 0, "", 0, message, arguments, None).getMessage()
            except Exception:  # arguments that do not fit: `logging` prints what there is
                text = f"{message} {arguments}"
            print(text, file=self.heard)

    def close(self) -> None:
        """End the silence; threads that still run check `active` at each channel, and are heard."""
        self.active = False
        if self._sink is not None:
            self._sink.close()

    def show(self, message: warnings.WarningMessage) -> None:
        """Treat a warning as the filters of this context say: as an error or a record."""
        for action, pattern, category, *_ in self.filters:
            if issubclass(message.category, category) and (
                pattern is None or pattern.match(str(message.message))
            ):
                if action == "error":
                    raise message.message  # type: ignore[misc]
                if action == "ignore":
                    return
                break
        if self.logs:
            self.logs[-1].append(message)


def context_of_thread() -> SilencedContext | None:
    """The context of this thread, or None where it may be heard: one look for every patch."""
    context = getattr(here, "context", None)
    return context if context is not None and context.active else None


@contextmanager
def inside(context: SilencedContext | None) -> Iterator[None]:
    """Run a block in a context, of which the innermost counts; None, for signal handlers: heard."""
    outer, here.context = getattr(here, "context", None), context
    try:
        yield
    finally:
        here.context = outer


# -- output channels -------------------------------------------------------------------------------
# What a silent thread does in the place of the function `original`. Private names of the standard
# library are replaced too, as public functions are not their only callers.


def _nothing(context: Any, original: Any, *arguments: Any, **options: Any) -> None:
    """Do nothing."""


def _log(
    context: Any, original: Any, logger: Any, level: int, msg: Any, args: Any, **_: Any
) -> None:
    context.log(msg, args)


def _handle(context: Any, original: Any, logger: Any, record: Any) -> None:
    context.log(record.msg, record.args)


def _add_filter(context: Any, original: Any, *item: Any, append: Any) -> None:
    """Filters are the context's, but for those for a module (the fourth entry of an item): which
    one a warning came from is not told."""
    if item[3] is None:
        context.filters.insert(len(context.filters) if append else 0, item)


def _enter_catch(context: Any, original: Any, block: Any) -> Any:
    """A silent thread notes its own filters, on the object itself, and gets a log if it asks."""
    log: list | None = [] if getattr(block, "_record", False) else None
    block._silent = context, list(context.filters), warnings.filters, log
    if log is not None:
        context.logs.append(log)
    if getattr(block, "_filter", None) is not None:
        warnings.simplefilter(*block._filter)
    return log


def _exit_catch(context: Any, original: Any, block: Any, *error: Any) -> None:
    """In any thread: a block ends in the context it was entered in, even if that has ended."""
    entered = vars(block).pop("_silent", None)
    if entered is None:
        original(block, *error)
        return
    context, context.filters, filters, log = entered
    context.logs[:] = [other for other in context.logs if other is not log]
    # Code that assigns ``warnings.filters = [...]`` inside of the block, as scikit-learn's workers
    # do, trusts it to restore the old list. One that another thread has put there is known, and
    # stays.
    if warnings.filters is not filters and not INTERCEPTION.known(warnings.filters):
        warnings.filters = filters


def _enter_redirect(context: Any, original: Any, block: Any) -> Any:
    """In any thread: a silent one redirects in its own context. On the stack of others is the
    stream behind a stand-in, which would be put back after the patches are gone."""
    if context is not None:
        block._old_targets.append((context, context.targets.get(block._stream)))
        context.targets[block._stream] = block._new_target
        return block._new_target
    entered = original(block)
    block._old_targets[-1] = INTERCEPTION.behind(block._old_targets[-1])
    return entered


def _exit_redirect(context: Any, original: Any, block: Any, *error: Any) -> None:
    """In any thread: the top of the stack tells whether a silent one began the redirection."""
    if isinstance(block._old_targets[-1], tuple):
        context, target = block._old_targets.pop()
        context.targets[block._stream] = target
    else:
        original(block, *error)


def _start(context: Any, original: Any, thread: Any) -> Any:
    """A thread that a silent one starts is as silent, until its block ends (see `SECURITY.md`)."""
    thread.run = _silent_run(context, thread.run)
    return original(thread)


def _silent_run(context: SilencedContext, run: Callable[[], None]) -> Callable[[], None]:
    """Run a thread inside the context of the thread that started it. An error that ends it would be
    printed by ``threading.excepthook``, so it is swallowed while the context is in use."""

    def silent_run() -> None:
        with inside(context):
            try:
                run()
            except BaseException:
                if context.active:
                    return  # a hook for what threads die of would see it
                raise

    return silent_run


# Who meets a patch: silent threads; others too, which may open by the original what is closed; or
# any thread meets what is in its place.
_SILENT, _OPENS, _ANY = range(3)
# Each output channel: who owns it, its name there, what silent threads do, and who meets it.
CHANNELS: tuple[tuple[Any, str, Callable[..., Any], int], ...] = (
    (warnings, "_showwarnmsg", lambda context, _, message: context.show(message), _SILENT),
    (warnings, "_add_filter", _add_filter, _OPENS),
    (warnings, "resetwarnings", lambda context, _: context.filters.clear(), _OPENS),
    (warnings.catch_warnings, "__enter__", _enter_catch, _OPENS),
    (warnings.catch_warnings, "__exit__", _exit_catch, _ANY),
    # An audit notes every level, as somebody may turn it on.
    (
        logging.Logger,
        "isEnabledFor",
        lambda context, original, *given: context.heard is not None or original(*given),
        _SILENT,
    ),
    (logging.Logger, "_log", _log, _SILENT),
    (logging.Logger, "handle", _handle, _SILENT),
    (logging, "basicConfig", _nothing, _SILENT),
    (sys, "unraisablehook", _nothing, _SILENT),
    (contextlib._RedirectStream, "__enter__", _enter_redirect, _ANY),
    (contextlib._RedirectStream, "__exit__", _exit_redirect, _ANY),
    (threading.Thread, "start", _start, _SILENT),
)


# -- interception ----------------------------------------------------------------------------------


_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


class _InSilence:
    """The text pattern of a filter for silent threads: `match` is asked in the warning thread."""

    # What code that copies filters takes for the text (scikit-learn does, for its workers): a
    # pattern without a match, as a copy would apply everywhere.
    pattern = "(?!)"

    def match(self, text: str) -> bool:
        """Match in silent threads; the text of the warning does not matter."""
        return context_of_thread() is not None


# In front of all others, it keeps them from what a silent thread warns of: no error is raised for
# another thread's sake, and nothing is noted in a registry of what has been shown. It is shown, to
# a patch that is closed.
_FILTER = ("always", _InSilence(), Warning, None, 0)


class _Stream:
    """A stream that leads silent threads elsewhere, with every attribute of where it leads to."""

    _name = ""  # until `__init__` has run, which what makes copies leaves out
    _stream: Any = None

    def __init__(self, name: str, stream: Any) -> None:
        # Past our own __setattr__, which sets the attributes of the stream behind.
        vars(self).update(_name=name, _stream=stream)

    def _target(self) -> Any:
        context = context_of_thread()
        return self._stream if context is None else context.stream(self._name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._target())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target(), name, value)

    def __repr__(self) -> str:
        return repr(self._target())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._target().__reduce_ex__(protocol)

    def __iter__(self) -> Any:
        return iter(self._target())

    def __next__(self) -> Any:
        return next(self._target())

    def __enter__(self) -> Any:
        return self._target().__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._target().__exit__(*error)


class _Interception:
    """Replaces the output channels while a thread of this process is silent. Open blocks of silence
    are counted (`_inside`), not nested. The lock is reentrant: a patch may call another one."""

    def __init__(self) -> None:
        # A fork in the middle of a fit copies both; see `renew_lock`.
        self.lock, self._inside = threading.RLock(), 0
        # (owner, name, original, patch) of each patch that is up
        self._originals: list[tuple[Any, str, Any, Any]] = []
        # and the identities of these patches
        self._patches: set[int] = set()
        # filter lists of threads that are not silent, and the stand-ins of streams, by name
        self._lists: list[list] = []
        self._streams: dict[str, _Stream] = {}

    def __enter__(self) -> None:
        """One more block of silence; the first one installs the patches."""
        with self.lock:
            self._inside += 1
            self.tighten()

    def __exit__(self, *error: Any) -> None:
        """One block of silence less; the last one removes the patches."""
        with self.lock:
            self._inside -= 1
            if self._inside == 0:
                self._open()

    def tighten(self) -> None:
        """Close again what has been opened by hand, or by a thread that is not silent: at each new
        block of silence, after each inner fit, and by patches."""
        with self.lock:
            if not self._inside:
                return
            for way in CHANNELS:
                self._close(*way)
            for filters in _filter_lists():
                self._lead(filters)
            for name in _STREAMS:
                self._wrap(name)

    def _close(self, owner: Any, name: str, silent: Callable[..., Any], whom: int) -> None:
        """Put a patch up, unless there is one of ours, or the owner itself has no such name."""
        original = vars(owner).get(name)
        if original is None or id(original) in self._patches:
            return
        patch = self._patched(original, silent, whom)
        self._originals.append((owner, name, original, patch))
        self._patches.add(id(patch))
        setattr(owner, name, patch)

    def _patched(self, original: Any, silent: Callable[..., Any], whom: int) -> Any:
        """A function by whose context a thread meets the original, or what is silent."""

        def patch(*arguments: Any, **options: Any) -> Any:
            context = context_of_thread()
            if context is not None and whom != _ANY:
                return silent(context, original, *arguments, **options)
            if whom == _SILENT:
                return original(*arguments, **options)
            with self.lock:
                if whom == _ANY:
                    result = silent(context, original, *arguments, **options)
                else:
                    result = original(*arguments, **options)
                self.tighten()
            return result

        return patch

    def _lead(self, filters: list) -> None:
        """Put our filter in front of all others, as the first one that matches decides."""
        if filters and filters[0] is _FILTER:
            return
        _drop(filters)
        filters.insert(0, _FILTER)
        if not self.known(filters):
            self._lists.append(filters)

    def _wrap(self, name: str) -> None:
        """Put a stand-in in the place of a stream of `sys`, unless there is one. What a silent
        thread has assigned there by hand, others must not write into, so the stand-in comes back.
        In a thread that is heard it is a redirection: a new stand-in leads to it."""
        now, known = getattr(sys, name), self._streams.get(name)
        if isinstance(now, _Stream):
            return
        if known is not None and context_of_thread() is not None:
            setattr(sys, name, known)
        elif now is not None:
            self._streams[name] = _Stream(name, now)
            setattr(sys, name, self._streams[name])

    def behind(self, stream: Any) -> Any:
        """The stream behind a stand-in when the patches are gone; any other one as it is."""
        return stream._stream if isinstance(stream, _Stream) else stream

    def known(self, filters: object) -> bool:
        """True if a list of filters comes, by identity, from a thread that is not silent."""
        return any(known is filters for known in self._lists)

    def _open(self) -> None:
        """Put back, in reverse order, all that is still as we left it. Where others have replaced a
        patch, theirs stays, and calls the patch, which passes everything on."""
        for owner, name, original, patch in reversed(self._originals):
            if vars(owner).get(name) is patch:
                setattr(owner, name, original)
        for filters in (*self._lists, *_filter_lists()):
            _drop(filters)
        for name in _STREAMS:
            setattr(sys, name, self.behind(getattr(sys, name)))
        self._originals, self._lists, self._streams = [], [], {}
        self._patches = set()

    def renew_lock(self) -> None:
        """In the child of a fork, where the thread that may have held the lock is not there."""
        self.lock = threading.RLock()


def _drop(filters: list) -> None:
    """Take our filter out of a list, in place: others hold the same list."""
    filters[:] = [item for item in filters if item is not _FILTER]


def _filter_lists() -> list[list]:
    """The filters in force: of the process and, from Python 3.14 on, of the context."""
    of_context = getattr(warnings, "_get_filters", None)
    lists = [warnings.filters] if of_context is None else [of_context(), warnings.filters]
    return [filters for filters in lists if isinstance(filters, list)]


INTERCEPTION = _Interception()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=INTERCEPTION.renew_lock)


# -- blocks of silence -----------------------------------------------------------------------------


_SIGNALS = frozenset(signal.valid_signals())  # asked for once: it takes as long as a small fit


@contextmanager
def suppress_output() -> Iterator[None]:
    """Nothing that this thread, or one that it starts, says in this block is heard. An exception
    passes through: who wants to have it swallowed uses `attempt`."""
    context = SilencedContext()
    with INTERCEPTION, relayed_signals(), inside(context):
        try:
            yield
        finally:
            context.close()


@contextmanager
def overheard() -> Iterator[StringIO]:
    """Nobody but the caller hears what this thread, or one that it starts, prints and logs here.
    Warnings go to the blocks of ``catch_warnings`` inside this one."""
    heard = StringIO()
    context = SilencedContext(heard)
    with INTERCEPTION, inside(context):
        try:
            yield heard
        finally:
            context.close()


# -- what a call dies of ---------------------------------------------------------------------------


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """The result and None, or None and the exception of whatever kind, `SystemExit` too, that came
    instead: an inner fit that is given up is a fact about its rows. What a signal handler raises
    (Ctrl-C) passes where signals are relayed, even if the function has swallowed it."""
    outcome: tuple[Any, BaseException | None]
    try:
        outcome = function(*arguments), None
    except BaseException as error:  # also SystemExit, and a KeyboardInterrupt that is none
        outcome = None, error
    raised = getattr(here, "raised", None)
    if raised is None:
        return outcome
    # Without the lines and exceptions of the function in its wake.
    raised.__context__ = raised.__cause__ = None
    raise raised.with_traceback(None)


def attempt_silently(
    function: Callable[..., Any], *arguments: Any
) -> tuple[Any, BaseException | None]:
    """As :func:`attempt`, in a context of its own inside a block of :func:`_silence`."""
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
    """A signal handler of the user: :func:`attempt` raises what it raised in an inner fit."""

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


# -- random generators -----------------------------------------------------------------------------


_lock = threading.RLock()
_stream = np.random.MT19937(0)  # to make one takes as long as a small fit
_numpy: Any = np.random  # not all of its functions are in the stubs of older versions


@contextmanager
def own_streams() -> Iterator[Callable[[int], None]]:
    """Yield a function that starts a new stream, from a seed below 2**32, in both generators, for
    one thread of the process at a time. No ledger is charged in it: that is a state which blocks
    share, too."""
    with _turn(), _restored(), no_charges():

        def start(seed: int) -> None:
            # A user may have set another one; that of the process may not take a seed.
            if _numpy.get_bit_generator() is not _stream:
                _numpy.set_bit_generator(_stream)
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)

        yield start


def row_by_row(function: Callable[[np.ndarray], Any], X: np.ndarray) -> list[np.ndarray]:
    """The output of other people's code for each row, given to it alone, so that no row has a part
    in what another one gets. What it draws is a function of the row too."""
    results = []
    with own_streams() as start_stream:
        for row in X:
            start_stream(crc32(row.tobytes()))
            results.append(np.asarray(function(row[None].copy())))
    return results


@contextmanager
def _turn() -> Iterator[None]:
    """The lock, unless a thread that waits for this one has it: inner code may fit in threads."""
    context = context_of_thread()
    if context is not None and context.has_turn:
        yield
        return
    with _lock:
        if context is not None:
            context.has_turn = True
        try:
            yield
        finally:
            if context is not None:
                context.has_turn = False


@contextmanager
def _restored() -> Iterator[None]:
    """Put both generators back as they were: the objects and their states."""
    generator = _numpy.get_bit_generator()
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    state_of_python = random.getstate()
    try:
        yield
    finally:
        _numpy.set_bit_generator(generator)
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(state_of_python)


def _renew_lock() -> None:
    """In the child of a fork: the thread that held it is not there."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
