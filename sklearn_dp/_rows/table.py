"""Tables in parts, and the pieces that a part is read in.

One place, or many, may hold the rows. Every number that a fit takes from the rows is an exact
integer sum of functions of single rows. So a fit is a sequence of *passes*: released values go to
the parts, each part applies a function to its rows, and integers are added up, which has no order:
the result has the same bits for every way of cutting the rows into parts.

An :class:`Engine` holds the parts and computes on them. A :class:`PartSource` reads the rows of a
part; the first pass makes a :class:`Part` of it, which keeps named values of each row from one pass
to the next. A :class:`Table` is what the algorithms see.

A function of a pass lives at the top of a module, so that it can be pickled by its name. It is
*pure*, so that a part that is lost, or computed twice, gives the same sums. What travels to the
place of the fit is exact sums, never a value of a row (but for a bounded sample, see
`friendly.refine`); they are unreleased until a session has added noise.

Pieces that are kept are in memory, or in a file if large, which tells that there are many rows, as
time and memory do (`SECURITY.md`).
"""

import mmap
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np

from .._privacy._trace import altered
from .._privacy._units import Units
from ..exceptions import PartError
from .single_rows import row_guard
from .threads import in_threads, in_workers, n_threads

_KEPT_BYTES = 2**28  # beyond this size pieces go to a temporary file
_BESIDE_BYTES = 2**26  # and one array for each of all parts, beyond this size
_FILE_BYTES = 2**28  # of a file of such arrays: it goes away when none of them is needed
_ALIGNED = 64


# -- pieces ----------------------------------------------------------------------------------------


def kept(pieces: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Copies of arrays of rows, each of which is read once; beyond 256 MB in a nameless file."""
    held, rest = _up_to_limit(map(np.array, pieces))  # others may fill the same array again
    return held if rest is None else np.split(*_in_file(chain(_let_go(held), rest), "r"))


def joined(pieces: Iterable[np.ndarray]) -> np.ndarray:
    """One array of such pieces, at least one: in memory or, beyond 256 MB, in such a file."""
    held, rest = _up_to_limit(pieces)
    if rest is None:
        return np.concatenate(held)
    return np.asarray(_in_file(chain(_let_go(held), rest), "r+")[0])


def _up_to_limit(pieces: Iterable[np.ndarray]) -> tuple[Any, Any]:
    """Pieces in memory, and those that are left to be read, where all are too many."""
    held: list[np.ndarray] = []
    size, pieces = 0, iter(pieces)
    for rows in pieces:
        held.append(rows)
        size += rows.nbytes
        if size > _KEPT_BYTES:
            return held, pieces
    return held, None


def _let_go(held: list[np.ndarray]) -> Iterable[np.ndarray]:
    """Each is let go once it is written."""
    left = deque(held)
    held.clear()
    return (left.popleft() for _ in range(len(left)))


def _in_file(pieces: Iterable[np.ndarray], mode: Any) -> tuple[np.ndarray, np.ndarray]:
    """A view of a file, and where pieces but the first begin."""
    lengths = []
    with tempfile.TemporaryFile() as file:
        for rows in pieces:
            file.write(np.ascontiguousarray(rows).data)
            lengths.append(len(rows))
        file.flush()
        shape = (sum(lengths), *rows.shape[1:])
        return np.memmap(file, rows.dtype, mode, shape=shape), np.cumsum(lengths)[:-1]


class ArraysBeside:
    """Arrays that parts keep from one pass to the next, in temporary files where they are large,
    into which they are written: a full disk raises an error then."""

    def __init__(self) -> None:
        self._file: Any = None
        self._lock, self._end = Lock(), 0
        self._view = np.empty(0, dtype=np.uint8)

    def moved(self, value: Any, n_parts: int) -> Any:
        """The value, with large arrays in a file: it is one of them, or a tuple, or has some."""
        if isinstance(value, np.ndarray):
            large = value.nbytes * n_parts > _BESIDE_BYTES and value.dtype != object
            return self._copied(value) if large and not _in_a_file(value) else value
        if isinstance(value, tuple):
            found = [self.moved(each, n_parts) for each in value]
            return type(value)._make(found) if hasattr(value, "_make") else tuple(found)
        own = vars(value) if hasattr(value, "__dict__") else {}
        own.update({k: self.moved(v, n_parts) for k, v in own.items() if isinstance(v, np.ndarray)})
        return value

    def _copied(self, array: np.ndarray) -> np.ndarray:
        data = np.ascontiguousarray(array)
        with self._lock:
            start = -(-self._end // _ALIGNED) * _ALIGNED
            if start + data.nbytes > len(self._view):
                size, start = max(_FILE_BYTES, data.nbytes), 0
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                self._file.truncate(size)
                self._view = np.asarray(np.memmap(self._file, np.uint8, "r", shape=size))
            self._file.seek(start)
            left = data.reshape(-1).view(np.uint8).data
            while left:
                left = left[self._file.write(left) :]
            self._end = start + data.nbytes
            return self._view[start : self._end].view(data.dtype).reshape(data.shape)


def _in_a_file(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


# -- tables in parts -------------------------------------------------------------------------------


PARTS = "entries of a part"  # where an audit wants parts of few rows
PART_ENTRIES = 2**20  # of an array, at least, for each thread: two smaller parts take longer
TASKS = 64
"""That pieces of parts are handed out in, at least: a task costs as much as a small fit."""
MOST_PIECES = 2**18
"""Of all parts for all tasks: each costs an engine a fraction of a millisecond."""
_WIDE = 2**62  # two integers of at most this much do not wrap when they are added


ROWS = "rows"
"""Name of the integer rows in the state of a part."""


class Summed:
    """The base class for results of parts, other than integers and arrays, that are added up."""

    def __add__(self, other: Any) -> Any:
        raise TypeError("a sum must say how it is added")


@dataclass(frozen=True, repr=False)
class CellCounts(Summed):
    """Counts of those cells, of very many, that hold anything: unreleased."""

    cells: np.ndarray  # int64, increasing
    counts: np.ndarray  # int64, positive

    @classmethod
    def of(cls, dense: np.ndarray) -> Self:
        """Build the counts from an array with a count for every cell."""
        cells = np.flatnonzero(dense)
        return cls(cells, dense[cells])

    def __add__(self, other: "CellCounts") -> "CellCounts":
        cells, index = np.unique(np.append(self.cells, other.cells), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, index, np.append(self.counts, other.counts))
        return CellCounts(cells, counts)


def add_sums(one: tuple, other: tuple) -> tuple:
    """Exact totals of two parts, or of totals so far: integers that never wrap."""
    return tuple(_added(a, b) for a, b in zip(one, other, strict=True))


def _added(a: Any, b: Any) -> Any:
    if isinstance(a, Summed):
        return a + b
    if not isinstance(a, np.ndarray):
        return int(a) + int(b)
    # As in `sum_type`: both types hold the same numbers, so which one it is does not show.
    largest = max(int(np.abs(x).max(initial=0)) for x in (a, b))
    if largest < _WIDE and a.dtype != object and b.dtype != object:
        return a + b
    return a.astype(object) + b.astype(object)


class PartSource:
    """How the rows of a part are read: as `SparseRows` if `sparse`, at no cost if `in_memory`; rows
    are numbered by the `number` of the part. Engines derive from it."""

    sparse = False
    in_memory = False
    number = 0

    def read(self) -> Any:
        """The rows (rows, n_features): finite floats, or `SparseRows`; in each pass that needs
        them."""
        raise TypeError("a source must read")

    def n_rows(self) -> int:
        """Number of rows, for those that know it without reading."""
        return len(self.read())

    def read_groups(self) -> Any:
        """The group of each row, as a user gives it; None: rows are units."""
        return None

    def read_weights(self) -> Any:
        """The weight of each row; None: all alike."""
        return None


class ArraySource(PartSource):
    """Rows in memory."""

    in_memory = True

    def __init__(self, X: Any, number: int = 0) -> None:
        self._X, self.sparse, self.number = X, not isinstance(X, np.ndarray), number

    def read(self) -> Any:
        return self._X


@dataclass(frozen=True, repr=False)  # neither is anything to print, or to log
class Part:
    """The rows of a part, and what passes have found out about them; unreleased."""

    source: PartSource
    units: Units  # of these rows; a group of several parts has a share of its weight in each
    # values that later passes need, by name: mostly arrays with an entry for each row
    state: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.state[name]

    def reading(self, source: PartSource) -> "Part":
        """The part with rows of another source: as many, of the same units."""
        return replace(self, source=source)

    def having(self, **values: Any) -> "Part":
        """The part with further values, or new ones."""
        return replace(self, state={**self.state, **values})

    def without(self, *names: str) -> "Part":
        """The part without some values that no later pass asks for."""
        return replace(self, state={k: v for k, v in self.state.items() if k not in names})


PassFunction = Callable[..., tuple[Any, tuple]]
SplitFunction = Callable[..., Any]


class Engine(Protocol):
    """Who holds the parts of a table, at least one, a public number, and computes on them.

    The state of a part is its :class:`PartSource` at first. A function maps ``(state, *broadcast)``
    to ``(new state, sums)``; the sums are a tuple of integers, integer arrays and :class:`Summed`.
    Each part counts exactly once, whatever is retried or computed twice. No result depends on the
    order of the parts."""

    n_parts: int

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """Give every part its new state, now or when it is asked for; sums are dropped."""
        ...

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """Run a function on each part, and return the totals of its sums, by :func:`add_sums`."""
        ...

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """A collection like the input, with ``function(state, *broadcast)`` for the rows; lazy, but
        for the local engine."""
        ...

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """What ``use(number, pieces, *broadcast)`` gives for each task, of the pieces of all parts
        that ``split(state, *broadcast)`` has for its number. They go from part to task."""
        ...

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> "Engine":
        """An engine of new parts, ``join(number, pieces, *broadcast)``; pieces as in `exchange`."""
        ...


class LocalEngine:
    """Parts of this process, in turn or by `n_jobs` threads, which change no bit of a sum.
    `guarded`, where code of others runs: an error tells its type and its part, and nothing else."""

    def __init__(self, sources: Any, n_jobs: int | None = None, *, guarded: bool = True) -> None:
        self.states = list(sources)
        self.n_parts, self.n_jobs, self.guarded = len(self.states), n_jobs, guarded
        self._beside = ArraysBeside()
        if not self.n_parts:
            raise ValueError("a table must have at least one part.")

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """Give every part its new state; see :class:`Engine`."""
        deque(self._each(lambda number: self._step(number, function, broadcast)), maxlen=0)

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """Run a function on each part, and return the totals of its sums."""
        return reduce(add_sums, self._each(lambda number: self._step(number, function, broadcast)))

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> np.ndarray:
        """An array with the values of all rows, in their order."""
        results = self._each(lambda number: self._moved(function(self.states[number], *broadcast)))
        return joined(results)

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """The results of tasks, by `n_jobs` processes; see :class:`Engine`."""
        call = partial(self._exchanged, split, use, broadcast)
        safe = partial(_guarded, call, place="X: rows of several parts") if self.guarded else call
        return safe(n_tasks)

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> "LocalEngine":
        """New parts of this process, with rows in a file where they are many."""
        call = partial(self._shuffled, split, join, broadcast)
        safe = partial(_guarded, call, place="X: rows of several parts") if self.guarded else call
        return LocalEngine(safe(n_parts), self.n_jobs, guarded=self.guarded)

    def _shuffled(self, split: SplitFunction, join: Any, broadcast: tuple, n_parts: int) -> list:
        parts: list[Part] = []

        def rows() -> Any:
            for arguments in self._tasks(split, broadcast, n_parts):
                part = join(*arguments)
                parts.append(part.reading(PartSource()))
                yield part.source.read()

        held = kept(rows())
        sources = [ArraySource(array, number) for number, array in enumerate(held)]
        return [part.reading(array) for part, array in zip(parts, sources, strict=True)]

    def _exchanged(self, split: SplitFunction, use: Any, broadcast: tuple, n_tasks: int) -> list:
        return in_workers(use, self._tasks(split, broadcast, n_tasks), self.n_jobs, n_tasks)

    def _tasks(self, split: SplitFunction, broadcast: tuple, n_tasks: int) -> Any:
        """The arguments of each task, made one after the other; rows are read once for all."""
        held = self.states
        if not all(type(state.source) is ArraySource for state in held):  # read by each task
            read = partial(_guarded, lambda number: self.states[number].source.read())
            rows = kept(map(read, range(self.n_parts)))
            sources = [ArraySource(array, held[i].source.number) for i, array in enumerate(rows)]
            held = [state.reading(array) for state, array in zip(held, sources, strict=True)]
        parts = list(self._each(lambda number: split(held[number], *broadcast)))
        return ((i, [part[i] for part in parts], *broadcast) for i in range(n_tasks))

    def _step(self, number: int, function: PassFunction, broadcast: tuple) -> tuple:
        steps = broadcast[0] if function is chained else ((function, broadcast),)
        sums = _in_turn(self.states, number, steps)
        part = self.states[number]
        if isinstance(part, Part) and not part.source.in_memory:
            moved = {name: self._moved(value) for name, value in part.state.items()}
            self.states[number] = replace(part, units=self._moved(part.units), state=moved)
        return sums

    def _moved(self, value: Any) -> Any:
        return self._beside.moved(value, self.n_parts)

    def _each(self, function: Callable[[int], Any]) -> Iterator[Any]:
        """Yield the result of a function for each part in turn: large sums are not collected."""
        safe = partial(_guarded, function) if self.guarded else function
        if self.n_parts == 1:
            return iter([safe(0)])
        return in_threads(safe, range(self.n_parts), self.n_jobs)


def _guarded(function: Callable[[int], Any], number: int, place: str | None = None) -> Any:
    """A function of a part, or of what `place` names, with errors that quote nothing."""
    try:
        return function(number)
    except PartError:
        raise
    except Exception as error:  # also of the memory: NumPy's tells how many rows did not fit
        kind = type(error).__name__
    # Outside the handler: the error itself, and its frames, may hold values of the data.
    raise PartError(f"{place or f'part {number}'} could not be read or processed ({kind}).")


class Table:
    """Rows in parts, as algorithms see them: passes over all rows, and public facts."""

    def __init__(self, engine: Engine, n_features: int, dtype: Any, units: Any) -> None:
        self.engine, self.n_features, self.dtype = engine, n_features, np.dtype(dtype)
        self.units = units
        self._waiting: list[tuple[PassFunction, tuple]] = []

    @classmethod
    def in_memory(cls, X: Any, units: Units, n_jobs: int | None = None) -> Self:
        """A table of rows in memory, an array or `SparseRows`: one part, or one for each thread."""
        n_parts = 1
        if isinstance(X, np.ndarray):
            # The number of parts depends on the private number of rows, as the time of a fit does,
            # and shows in no bit of what is summed.
            n_parts = max(1, min(n_threads(n_jobs), X.size // altered().get(PARTS, PART_ENTRIES)))
        ends = [len(X) * number // n_parts for number in range(n_parts + 1)]
        places = [slice(start, stop) for start, stop in zip(ends, ends[1:], strict=False)]
        parts = [Part(ArraySource(X), units)]
        if n_parts > 1:
            parts = [
                Part(ArraySource(X[place], number), units.take(place))
                for number, place in enumerate(places)
            ]
        return cls(LocalEngine(parts, n_jobs, guarded=False), X.shape[1], X.dtype, units.facts)

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """A function of every part that sums nothing: it waits for the next pass."""
        self._waiting.append((function, broadcast))

    def sums(self, function: PassFunction, *broadcast: Any) -> tuple:
        """Unreleased: the exact totals of a function of the parts, in one pass. It goes from a
        :class:`Part` and broadcast values to (:class:`Part`, tuple of sums)."""
        steps, self._waiting = (*self._waiting, (function, broadcast)), []
        return self.engine.reduce(chained, steps)

    def rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """Unreleased: a value for each row, where the rows are; see :class:`Engine`."""
        self._finish()
        return self.engine.collect_rows(function, *broadcast)

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """Unreleased: what tasks make of rows that they get from all parts; see :class:`Engine`."""
        self._finish()
        return self.engine.exchange(split, use, n_tasks, *broadcast)

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> Engine:
        """Unreleased: an engine of parts that all parts have given rows to; see :class:`Engine`."""
        self._finish()
        return self.engine.shuffle(split, join, n_parts, *broadcast)

    def _finish(self) -> None:
        if self._waiting:
            steps, self._waiting = tuple(self._waiting), []
            self.engine.update(chained, steps)


def chained(state: Any, steps: tuple) -> tuple[Any, tuple]:
    """Several functions of a part in one guarded pass; the sums are those of the last one."""
    states = [state]
    sums = _in_turn(states, 0, steps)
    return states[0], sums


@row_guard
def _in_turn(states: list, number: int, steps: tuple) -> tuple:
    """Run a function on a part in its place: what is dropped is freed before the next one."""
    sums: tuple = ()
    for function, broadcast in steps:
        states[number], sums = function(states[number], *broadcast)
    return sums


def opened(source: PartSource) -> tuple[Part, tuple]:
    """The part of a source whose rows are units."""
    return Part(source, Units(source.n_rows())), ()
