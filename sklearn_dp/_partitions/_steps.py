"""The code that runs where a part is, on a cluster: one step of one part, and the totals of
several.

A worker's own error never leaves it: its words and its traceback may quote rows, and clusters log
them and try again. A step that fails ends with a :class:`Failure`, which is raised where the fit
is. What the cluster does again, because a worker died, is the same pure function on the same state.
"""

import copy
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np

from .._rows.single_rows import row_guard
from .._rows.table import Part, PassFunction, SplitFunction, add_sums
from ..exceptions import PartError
from ._sources import CheckedSource, Columns, Reason, _kept, columns_of, quietly

_given: ContextVar[tuple] = ContextVar("sklearn_dp_given", default=())


@contextmanager
def at_hand(pieces: tuple) -> Iterator[None]:
    """Give sources read in this block the pieces of a part that the engine has brought."""
    given, kept = _given.set(pieces), _kept.set({})
    try:
        yield
    finally:
        _given.reset(given)
        _kept.reset(kept)


@dataclass(frozen=True)
class Given:
    """A piece that the engine brings along with each step: reads what is :func:`at_hand`."""

    place: int = 0

    def __call__(self) -> Any:
        piece = _given.get()[self.place]
        if isinstance(piece, Reason):  # in the place of what a worker could not read
            raise piece
        return piece


FAN_IN = 16
"""How many sums are added at a time: those of many parts are added up in a tree."""


@dataclass(frozen=True, order=True)
class Failure:
    """The first thing that went wrong with a part, in words that quote nothing."""

    part: int
    words: str


@dataclass(frozen=True, repr=False)  # its state is nothing to print
class Step:
    """A part after a step: its state, which stays where it is, and its sums, which travel."""

    part: int  # its number
    state: Any
    sums: Any = ()


class Message:
    """Released values, and the function of a pass, on their way to the parts: no tuple, into which
    a cluster would look."""

    def __init__(self, function: Callable, broadcast: tuple) -> None:
        self.function, self.broadcast = function, broadcast


def run(before: Step, message: Message, *pieces: Any) -> Step:
    """The next step of a part, by a pure function; a part that has failed stays so."""
    made = _guarded(before, message, pieces)
    if isinstance(made, Failure):
        return Step(before.part, None, made)
    state, sums = made
    return Step(before.part, state, sums)


def rows_of(before: Step, message: Message, *pieces: Any) -> np.ndarray:
    """A value for each row of a part; what went wrong is raised, without words of others."""
    made = _guarded(before, message, pieces)
    if isinstance(made, Failure):
        raise PartError(made.words)
    return made


def of_source(source: CheckedSource, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function to the rows of a part, for answers without a pass."""
    return function(source.read())


class Split:
    """A function that gives a piece of a part for each of some tasks; see `Engine.exchange`."""

    def __init__(self, function: Callable, n_tasks: int) -> None:
        self.function, self.n_tasks, self.__name__ = function, n_tasks, function.__name__

    def __call__(self, state: Any, *broadcast: Any) -> list:
        result = self.function(state, *broadcast)
        return [result[number] for number in range(self.n_tasks)]


def pieces_of(before: Step, message: Message, *pieces: Any) -> list:
    """A piece of a part for each task, by the :class:`Split` of the message, or its failure."""
    made = _guarded(before, message, pieces)
    split: Any = message.function
    return [made] * split.n_tasks if isinstance(made, Failure) else made


@row_guard
def used(number: int, message: Message, pieces: Sequence[Any]) -> Any:
    """Run a task on the pieces of all parts, in their order, or return the first failure."""
    failures = [piece for piece in pieces if isinstance(piece, Failure)]
    if failures:
        return min(failures)
    try:
        return message.function(number, list(pieces), *message.broadcast)
    except Exception as error:
        kind = type(error).__name__
    return Failure(0, f"X: rows of several parts could not be processed together ({kind}).")


def joined(number: int, message: Message, pieces: Sequence[Any]) -> Step:
    """A new part, made of the pieces of all parts in their order: the first step of it."""
    made = used(number, message, pieces)
    return Step(number, None, made) if isinstance(made, Failure) else Step(number, made)


@row_guard
def _guarded(before: Step, message: Message, pieces: tuple) -> Any:
    """Apply a function to a part, or return its first failure: nothing else is shown or logged."""
    if isinstance(before.sums, Failure):
        return before.sums
    try:
        with at_hand(pieces):
            return message.function(before.state, *message.broadcast)
    except PartError as error:
        words = str(error)
    except Exception as error:
        words = f"X, part {before.part}: it could not be processed ({type(error).__name__})."
    return Failure(before.part, words)


def total(sums: Sequence[Any]) -> Any:
    """Exact totals of the sums of some parts, or the failure of the first part that has one."""
    failures = [one for one in sums if isinstance(one, Failure)]
    return min(failures) if failures else reduce(add_sums, sums)


def raised(sums: Any) -> tuple:
    """Totals that have come back; a failure is raised."""
    if isinstance(sums, Failure):
        raise PartError(sums.words)
    return sums


class ClusterEngine:
    """Parts that a cluster holds; see :class:`sklearn_dp._rows.table.Engine`.

    The class of each cluster says how it runs tasks: `_next` makes one for each part, `_brought`
    makes tasks that get pieces of all parts, `_total` and `_results` wait for what these give, and
    `_asked` calls the cluster, whose errors become ours."""

    n_parts: int
    _steps: Any  # the states of the parts, or what will be
    _next: Callable[..., Any]
    _brought: Callable[..., Any]
    _total: Callable[..., Any]
    _results: Callable[..., list]
    _asked: Callable[[Callable[[], Any]], Any]

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """Give every part its new state, now or when it is asked for."""
        self._steps = self._asked(lambda: self._next(run, function, broadcast))

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """Run a pass now, keep the new states, and return the totals of the sums."""
        return raised(self._asked(lambda: self._total(function, broadcast)))

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """An array for each part, in a collection of the cluster's."""
        return self._asked(lambda: self._next(rows_of, function, broadcast))

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """Run tasks on rows that all parts give them, from worker to worker."""
        name = name_of(use, broadcast)
        results = self._asked(
            lambda: self._results(self._brought(used, split, use, n_tasks, broadcast), name)
        )
        failures = [one for one in results if isinstance(one, Failure)]
        if failures:
            raise PartError(min(failures).words)
        return results

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> Self:
        """New parts, whose rows stay in the states."""
        other = copy.copy(self)
        other.n_parts = n_parts
        other._steps = self._asked(lambda: self._brought(joined, split, join, n_parts, broadcast))
        other._hold_no_rows()
        return other

    def _hold_no_rows(self) -> None:
        """Forget where the rows are read: they are in the states."""
        raise TypeError("a cluster must say what it holds")


def asked(
    engine: str,
    others: str,
    call: Callable[[], Any],
    failed: Callable[[], int | None] = lambda: None,
) -> Any:
    """The answer of a cluster, named `engine`; an error of it tells its type, and the part where
    `failed` finds the number. `others` says what else an error may be about."""
    try:
        return call()
    except PartError as error:
        words, kind = str(error), None
    except (Exception, CancelledError) as error:
        words, kind = "", type(error).__name__
    # Outside the handlers: the error of a cluster brings the message of a worker along.
    if kind is not None:
        number = failed()
        words = (
            f"{'X' if number is None else f'X, part {number}'}: {engine} could not compute it "
            f"({kind}). The cause may also be {others}."
        )
    raise PartError(words)


def columns_or_words(piece: Any) -> Columns | str:
    """The columns of the first part, or what is wrong with it: no error leaves a worker."""
    try:
        return quietly(lambda: columns_of(piece), 0)
    except PartError as error:
        return str(error)


def name_of(function: Callable, broadcast: tuple) -> str:
    """Return the name of a pass for dashboards: that of the last function of several."""
    steps = broadcast[0] if broadcast else ()
    if (
        isinstance(steps, tuple)
        and steps
        and isinstance(steps[-1], tuple)
        and callable(steps[-1][0])
    ):
        function = steps[-1][0]
    return getattr(function, "__name__", "pass").strip("_")
