"""Contexts of silent threads: what the code of an inner fit says there, nobody else hears, but for
an audit that listens.

Which thread is in which context is kept in the thread itself (`here`). :mod:`.output_interception`
asks for it at each of Python's output channels.
"""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

here = threading.local()  # .context: the context of a silent thread; .raised: by a signal handler


class SilencedContext:
    """The context of a silent thread, and of the threads that it starts.

    One is made for each block of silence and each inner fit. It holds what would be the process's
    state in ordinary Python: so what one fit sets, no other fit and no other thread meets.

    * `active`: whether it is still in use. Threads that outlive it are heard again;
    * `filters`: warning filters that the code inside has set, as in `warnings.filters`;
    * `logs`: of the blocks ``catch_warnings(record=True)`` that it is in, the innermost one last;
    * `targets`: where it has redirected streams to, by their names;
    * `has_turn`: whether it is in a block of :func:`.global_generators.own_streams`;
    * `heard`: what it prints and logs, at every level, where an audit listens; else None.
    """

    def __init__(self, heard: TextIO | None = None) -> None:
        self.heard = heard
        outer = context_of_thread()
        self.active = True
        self.has_turn: bool = outer is not None and outer.has_turn
        self.filters: list[tuple] = []
        self.logs: list[list] = []
        self.targets: dict[str, Any] = {}
        self._sink: TextIO | None = None

    def stream(self, name: str) -> Any:
        """Where a stream leads to: to what the fit has redirected it, to an audit, or nowhere."""
        return self.targets.get(name) or self.heard or self._nowhere()

    def _nowhere(self) -> TextIO:
        # A real file: code inside may ask it for its number, its encoding or its buffer.
        if self._sink is None:
            self._sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return self._sink

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
        """Treat a warning as the filters of this context say: as an error or a record, never shown.
        The filters of the process, which another thread may change at any time, do not count."""
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
