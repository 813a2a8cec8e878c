"""Patches that take the place of Python's output channels while any thread is silent.

Python keeps its warning filters, logs and streams in the process, not in the thread. While a fit is
silent, patches of `CHANNELS` (:mod:`.output_channels`) look at who comes: a thread with a context
(:mod:`.silenced_context`) finds that in their place; every other thread finds what was there
before. ``INTERCEPTION`` installs them when the first thread becomes silent, and removes them when
the last one leaves. In between others may change filters and streams: ``tighten`` installs the
patches again. What is replaced belongs to modules that other threads use at the same time. So every
change is made under one lock, each patch works whether or not it is still in place, and originals
are put back only where the patch is what is found.

``warnings.catch_warnings`` and ``redirect_stdout`` around each fit would change the whole process.
Two threads that enter and leave them in turn restore each other's changes in the wrong order, so a
warning of one fit can end up in the record of another thread, and a filter is gone afterward.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from .output_channels import CHANNELS
from .silenced_context import context_of_thread

_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


class _InSilence:
    """The text pattern of a filter that is for silent threads alone. Its method `match` is asked in
    the thread that warns, so one filter in a list of all applies there only."""

    # What code that copies filters takes for the text (scikit-learn does, for its workers): a
    # pattern without a match, as a copy would apply everywhere.
    pattern = "(?!)"

    def match(self, text: str) -> bool:
        """What `warnings` asks of a pattern; the text of the warning does not matter."""
        return context_of_thread() is not None


# In front of all others, it keeps them from what a silent thread warns of: no error is raised for
# another thread's sake, and nothing is noted in a registry of what has been shown. It is shown, to
# a patch that is closed.
_FILTER = ("always", _InSilence(), Warning, None, 0)


class _Stream:
    """A stream that leads silent threads elsewhere.

    Every attribute, its class too, is that of the stream it leads to at that moment; special
    methods, looked up on the class, are written out. It stays valid for as long as somebody holds
    it: with the patches down every call goes to the stream behind.
    """

    _name = ""  # until `__init__` has run, which what makes copies leaves out
    _stream: Any = None

    def __init__(self, name: str, stream: Any) -> None:
        """A stand-in for the stream `name` of `sys`, which others write to."""
        # Past our own __setattr__, which sets the attributes of the stream behind.
        vars(self).update(_name=name, _stream=stream)

    def _target(self) -> Any:
        """Asked for at every access and never kept: the same object is used by many threads."""
        context = context_of_thread()
        return self._stream if context is None else context.stream(self._name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._target())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._target(), name)

    def __dir__(self) -> Any:
        return dir(self._target())

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
    """Replaces the output channels while a thread of this process is silent.

    Threads leave in another order than they came, so patches are counted (`_inside`, the open
    blocks of silence), not nested. The lock, held while anything of the process is changed, is
    reentrant: a patch that holds it may call another one.
    """

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
        """Close again what has been opened by hand, or by a thread that is not silent.

        Called wherever something may have changed: at each new block of silence, after each inner
        fit, and by patches through which another thread has just changed filters or streams. Every
        missing patch is put up, our filter put first in every list of filters in force, and a
        stand-in in the place of every standard stream that has none.
        """
        with self.lock:
            if not self._inside:
                return
            for way in CHANNELS:
                self._close(*way)
            for filters in _filter_lists():
                self._lead(filters)
            for name in _STREAMS:
                self._wrap(name)

    def _close(self, owner: Any, name: str, make: Callable[[Any, Any], Any]) -> None:
        """Put a patch up, unless there is one of ours already. `name` is looked for in the owner
        itself, not in what it inherits, so that it can be put back."""
        original = vars(owner).get(name)
        if original is None or id(original) in self._patches:
            return
        patch = make(original, self)
        self._originals.append((owner, name, original, patch))
        self._patches.add(id(patch))
        setattr(owner, name, patch)

    def _lead(self, filters: list) -> None:
        """Put our filter in front of all others, as the first one that matches decides. Lists are
        remembered: one that its thread has left may be in force again later."""
        if filters and filters[0] is _FILTER:
            return
        _drop(filters)
        filters.insert(0, _FILTER)
        if not self.known(filters):
            self._lists.append(filters)

    def _wrap(self, name: str) -> None:
        """Put a stand-in in the place of a stream of `sys`, unless there is one.

        Another object there, in a silent thread, is assigned by hand by a fit: others must not
        write into it, so the stand-in comes back. In a thread that is heard it is a redirection: a
        new stand-in leads to it.
        """
        now, known = getattr(sys, name), self._streams.get(name)
        if isinstance(now, _Stream):
            return
        if known is not None and context_of_thread() is not None:
            # A fit has put something else there by hand, and left it.
            setattr(sys, name, known)
        elif now is not None:
            self._streams[name] = _Stream(name, now)
            setattr(sys, name, self._streams[name])

    def behind(self, stream: Any) -> Any:
        """The stream behind a stand-in when the patches are gone; any other one as it is."""
        return stream._stream if isinstance(stream, _Stream) else stream

    def known(self, filters: object) -> bool:
        """Whether a list of filters comes, by identity, from a thread that is not silent."""
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
    """The filters in force: of the process and, from Python 3.14 on, of the context, as either may
    be the one that a warning is judged by."""
    of_context = getattr(warnings, "_get_filters", None)
    lists = [warnings.filters] if of_context is None else [of_context(), warnings.filters]
    return [filters for filters in lists if isinstance(filters, list)]


INTERCEPTION = _Interception()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=INTERCEPTION.renew_lock)
