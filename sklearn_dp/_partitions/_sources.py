"""The rows of a table in parts, and the units that they belong to.

Rows are checked whenever they are read. Units are rows, or groups that may be spread over several
parts. The weight of a row in a group of m rows is 1/m, whatever part it is in: the parts first tell
how many rows of each group they hold; the counts are merged at the place of the fit, and each part
then looks up its own groups. Ids are compared by value, and groups have numbers by the order of
their first rows, as in memory. Ids travel here only, and are forgotten at the place of the fit.
"""

import copy
import zlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._columns import Schema, check_numbers
from .._door import NO_WEIGHT, in_order, numbers, schema
from .._privacy._entries import entries_of, exact_integers, floats
from .._privacy._units import UnitFacts, Units, check_one_kind, group_keys
from .._rows.single_rows import row_guard, saturated
from .._rows.table import Engine, Part, PartSource, Summed, Table
from ..exceptions import PartError
from ._dispatch import InputInParts

_PART_ROWS = 2**40  # more than any part has


# -- units -----------------------------------------------------------------------------------------


class GroupSizes(Summed):
    """By their ids, unreleased: numbers of rows of groups, and the places of their first ones (the
    number of the part times 2**40, plus the place of the row in it)."""

    def __init__(self, sizes: dict) -> None:
        self.found = sizes

    def __add__(self, other: "GroupSizes") -> "GroupSizes":
        both = dict(self.found)
        for key, (size, first) in other.found.items():
            known, before = both.get(key, (0, first))
            both[key] = known + size, min(before, first)
        return GroupSizes(both)

    def numbered(self) -> dict:
        """The number of rows of each group, and the number of the group by its first row."""
        order = sorted(self.found, key=lambda key: self.found[key][1])
        return {key: (self.found[key][0], number) for number, key in enumerate(order)}


class _There(PartSource):
    """The rows of a source that have a weight."""

    def __init__(self, source: PartSource, there: np.ndarray) -> None:
        self.source, self.there = source, there
        self.sparse, self.number = source.sparse, source.number

    def read(self) -> Any:
        return self.source.read()[self.there]

    def n_rows(self) -> int:
        return int(np.count_nonzero(self.there))


def open_units(table: Table, *, grouped: bool = False, largest: float | None = None) -> None:
    """Open the parts of a table, and set the `units` of each: one pass tells the sizes of groups;
    `largest` is what a whole unit weighs, as for :meth:`Units.weighted`. A TypeError for groups
    that are dates of several types."""
    whole = Units.of_sizes(np.empty(0, np.int64), np.empty(0, np.int64)) if grouped else Units(0)
    weighted = largest is not None
    scale = Units.weighted(np.empty(0), 1.0)[0].scale if weighted else whole.scale
    weight, unit = float(largest) if largest is not None else 1.0, "group" if grouped else "row"
    table.units = UnitFacts(scale, weight, weighted, grouped, unit)
    table.update(_opened, grouped, largest)
    if grouped:
        (group_sizes,) = table.sums(_sizes)
        check_one_kind(group_sizes.found)
        table.update(_weighed, group_sizes.numbered())


def _opened(source: PartSource, grouped: bool, largest: float | None) -> tuple[Part, tuple]:
    """The part of a source, with the groups of its rows; rows without a weight are not there."""
    groups: Any = source.read_groups() if grouped else None
    keys, index = group_keys(groups) if grouped else ([], None)
    units = Units(source.n_rows())
    if index is not None and len(index) != units.n_rows:
        raise ValueError("groups must have one entry for each row.")
    if largest is not None:
        units, source = weighted_rows(source, largest)
        index = None if index is None else index[source.there]
    return Part(source, units, {"groups": (keys, index)} if grouped else {}), ()


def weighted_rows(source: PartSource, largest: float) -> tuple[Units, _There]:
    """The units of rows that have a weight, and the source of these rows."""
    weights, _ = floats(entries_of(source.read_weights()))  # NaN for what is no number
    if weights.shape != (source.n_rows(),) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight must be finite and not negative, one for each row.")
    units, there = Units.weighted(weights, largest)
    return units, _There(source, there)


def _sizes(part: Part) -> tuple[Part, tuple]:
    keys, index = part["groups"]
    there, first, counts = np.unique(index, return_index=True, return_counts=True)
    start = part.source.number * _PART_ROWS
    places = zip(there.tolist(), first.tolist(), counts.tolist(), strict=True)
    return part, (GroupSizes({keys[i]: (size, start + row) for i, row, size in places}),)


def _weighed(part: Part, groups: dict) -> tuple[Part, tuple]:
    """Give each row the weight that it has in its group."""
    keys, index = part["groups"]
    there = np.bincount(index, minlength=len(keys)).tolist()
    # A group without a row that is there has not been counted. One that has, and is not found,
    # would seem to have no rows elsewhere: an error.
    sums = [groups[key] if here else (1, 0) for key, here in zip(keys, there, strict=True)]
    sizes, numbers = exact_integers(sums).reshape(-1, 2).T
    units = Units.of_sizes(index, sizes, numbers)
    return Part(part.source, units.with_weights_of(part.units)), ()


# -- sources ---------------------------------------------------------------------------------------


_PLAIN = "?bBhHiIlLqQefdFDmM"  # types of NumPy, all bytes of which are value
_ENTRIES = 2**16  # put into words at a time


# They stay where the rows are, and where the fit is for as long as it runs; none is in what has
# been fitted, in a report, or in a message. A digest has 32 bits: other rows go unseen with a
# chance of 2**-32. They do not guard against those who mean to deceive.
def digest(array: np.ndarray) -> int:
    """A number that changes when rows do, or their order; of an array of shape (n, d)."""
    checksum = 0
    step = max(1, 2**20 // max(1, array.shape[1]))  # what is copied, if rows are not contiguous
    for start in range(0, len(array), step):
        piece = np.ascontiguousarray(array[start : start + step]).view(np.uint8)
        checksum = zlib.crc32(piece.data, checksum)
    return checksum


def digest_of_values(values: Any) -> int:
    """Return the digest of groups, weights or targets in any container, equal in every process."""
    entries = entries_of(values)
    if isinstance(entries, np.ndarray):
        if entries.dtype.char in _PLAIN:
            return digest(entries.reshape(-1, 1))
        entries = entries.tolist()
    if {tuple, frozenset} & set(map(type, entries)):
        entries = list(map(_in_order, entries))
    checksum = 0
    for start in range(0, len(entries), _ENTRIES):
        words = repr(entries[start : start + _ENTRIES])  # those of 1, 1.0 and "1" differ
        checksum = zlib.crc32(words.encode("utf-8", "surrogatepass"), checksum)
    return checksum


def _in_order(value: Any) -> Any:
    """An id whose words are the same in every process: a set has no order of its own."""
    if isinstance(value, frozenset):
        return sorted(repr(_in_order(one)) for one in value)
    return tuple(map(_in_order, value)) if isinstance(value, tuple) else value


# -- check part ------------------------------------------------------------------------------------
# The width, the names and the type of the columns are public: they are read from what describes a
# collection, and each part has to agree with them. What a part holds is private. An error names the
# part by its number and says what kind of thing is wrong, in words of :mod:`sklearn_dp._door`; what
# another library has raised on the way is dropped, with its traceback, because it may quote rows.


MOST_ROWS = 2**27
"""Public: rows of a part. The integers that a part adds up stay below 2**63 with a wide margin."""


class Reason(Exception):
    """An error of a part, in words that quote nothing; they lack the number of the part."""


@dataclass(frozen=True)
class Columns:
    """Public facts of a table in parts: each of its parts has these columns."""

    n_features: int
    names: tuple[str, ...] | None  # in their order; None where columns have no names
    dtype: np.dtype  # float32 or float64: of the rows, once they have been checked

    def in_order(self, piece: Any) -> Any:
        """A part with the columns of X in their order, by names; a `Reason` for other columns."""
        piece = np.empty((0, self.n_features)) if has_no_columns(piece) else piece
        if _schema(piece).n_features != self.n_features:
            raise Reason("its number of columns differs from that of X")
        try:
            return in_order(piece, self.names)
        except ValueError:
            pass
        raise Reason(
            "its columns have names, and those of the first part have none"
            if self.names is None
            else "its column names differ from those of X"
        )

    @row_guard
    def check(self, piece: Any) -> np.ndarray:
        """The rows of a part, of type `dtype`: real, finite, of bounded size, copied where need be;
        or a `Reason` in words that quote nothing."""
        piece = self.in_order(piece)
        rows = _in_our_words(lambda: numbers(piece, _schema(piece), min_rows=0))
        if len(rows) > MOST_ROWS:
            raise Reason(f"it has more than {MOST_ROWS} rows: cut X into more parts")
        if rows.dtype != self.dtype:
            # float32 to float64 is exact. The other way, rows would be others than those given.
            if len(rows) and self.dtype == np.float32:
                raise Reason("it contains float64 where X contains float32")
            rows = rows.astype(self.dtype)
        return saturated(rows)


class CheckedSource(PartSource):
    """Rows of a part, checked whenever they are read: what is read again may have changed. `rows`,
    `groups` and `weights` read a piece; the number of the part is for errors."""

    def __init__(
        self,
        number: int,
        columns: Columns,
        rows: Callable[[], Any],
        groups: Callable[[], Any] | None = None,
        weights: Callable[[], Any] | None = None,
    ) -> None:
        self.number, self.columns = number, columns
        self._rows, self._groups, self._weights = rows, groups, weights
        self._length: int | None = None
        self._known: dict[str, int] = {}

    def read(self) -> np.ndarray:
        """The rows of the part; those of this step, where they have been read."""
        kept = _kept.get()
        if kept is None:
            return self._read()
        if self.number not in kept:
            kept[self.number] = self._read()
        return kept[self.number]

    def _read(self) -> np.ndarray:
        return quietly(
            lambda: self._same("X", self.columns.check(self._rows()), digest), self.number
        )

    def _same(self, name: str, values: Any, digest: Callable[[Any], int]) -> Any:
        """Values of rows, if they are those that have been counted, in the same order: what a pass
        keeps for a row, such as the weight of its group, would else be that of another one, and
        could count for more than a sensitivity covers."""
        if self._length is not None and len(values) != self._length:
            raise Reason("it must have one entry for each row, in every pass")
        if name in self._known:
            _check_same(name, digest(values), self._known[name])
        return values

    def counted(self, beside: str = "sample_weight") -> "CheckedSource":
        """The source with the number and digests of its rows; `beside` names its weights."""
        other, rows = copy.copy(self), self.read()
        other._length, other._known = len(rows), {"X": digest(rows)}
        for name, read in (("groups", self._groups), (beside, self._weights)):
            if read is not None:
                values = other._values(read, name)
                other._known[name] = quietly(partial(digest_of_values, values), self.number, name)
        return other

    @property
    def digests(self) -> tuple[int, ...]:
        """Digests of rows, groups and weights, once they have been counted: unreleased."""
        return tuple(self._known.values())

    def check_digests(self, digests: tuple[int, ...]) -> None:
        """Raise `PartError` unless the part is still the one of the first pass.

        The state of a part dies with its worker, digests and all, and is made again from the
        source. One that is no function of what it reads (a shuffle of an unseeded order) then gives
        rows that other parts have too: they would count twice. So the digests of the first pass are
        held where the fit is, and come back here.

        The error tells nothing of the rows. Where X is a function of what is stored, digests are
        the same whatever the rows are and whichever worker dies. Elsewhere there are two tables
        called X, and a guarantee about the first cannot hold for the second."""
        for (name, known), first in zip(self._known.items(), digests, strict=True):
            quietly(partial(_check_same, name, known, first), self.number, name)

    def n_rows(self) -> int:
        """Number of rows, without reading them if they have been counted."""
        return len(self.read()) if self._length is None else self._length

    def read_groups(self) -> Any:
        """The group of each row, or None."""
        return self._values(self._groups, "groups")

    def read_weights(self) -> Any:
        """The weight of each row, or None."""
        return self._values(self._weights, "sample_weight")

    def read_targets(self, checked: Callable[[Any], np.ndarray]) -> np.ndarray:
        """The target of each row, in the place of a weight; the check quotes nothing."""
        given = self._values(self._weights, "y")

        def column() -> np.ndarray:
            try:
                return checked(given)
            except ValueError as error:
                words = str(error)
            raise Reason(words.replace("y must", "it must", 1))

        return quietly(column, self.number, "y")

    def _values(self, read: Callable[[], Any] | None, name: str) -> Any:
        if read is None:
            return None
        return quietly(lambda: self._same(name, read(), digest_of_values), self.number, name)


_kept: ContextVar[dict[int, np.ndarray] | None] = ContextVar("sklearn_dp_kept", default=None)


def columns_of(piece: Any) -> Columns:
    """The columns of a part, or of an empty table that stands for all of them. Of the values
    nothing is told: a part is asked for its columns before a fit is charged."""
    given = _schema(piece)
    return Columns(given.n_features, given.names, given.dtype)


def has_no_columns(piece: Any) -> bool:
    """True if a part is a list of no rows, which fits any columns."""
    return isinstance(piece, list | tuple) and not len(piece)


def _check_same(name: str, digest: int, first: int) -> None:
    """Refuse values that have another digest than those of the first pass."""
    if digest != first:
        what = "rows" if name == "X" else "values"
        raise Reason(
            f"its {what} have changed since the first pass, or been reordered: keep {name} in "
            "memory (persist, cache), or write it to a file"
        )


def quietly(call: Callable[[], Any], number: int | None = None, name: str = "X") -> Any:
    """Return the result of a call; whatever it raises becomes a `PartError` of the parameter, the
    part, and words of ours (`Reason`, `PartError`) or else the type of the error."""
    place = name if number is None else f"{name}, part {number}"
    try:
        return call()
    except PartError as error:
        words = str(error)
    except Reason as error:
        words = f"{place}: {str(error).removesuffix('.')}."
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # other code may ask to end the process
        words = f"{place}: it could not be read ({type(error).__name__})."
    # Outside the handlers: the other error would hang on to this one, with frames that hold rows.
    raise PartError(words)


def _schema(piece: Any) -> Schema:
    """Return the schema of a part, if it declares no other columns than numbers."""
    given = _in_our_words(lambda: schema(piece))
    _in_our_words(lambda: check_numbers(given))
    return given


def _in_our_words(call: Callable[[], Any]) -> Any:
    """Read a part through the door, or say why it cannot be read."""
    try:
        return call()
    except (TypeError, ValueError) as error:  # in words of `_door`
        reason = str(error)
    raise Reason(reason)


# -- input -----------------------------------------------------------------------------------------


class EngineInput(InputInParts):
    """A table in parts that can be opened.

    >>> from sklearn_dp._partitions import engine_of
    >>> X = engine_of([np.zeros((3, 2)), np.ones((1, 2))])
    >>> X.n_features, X.feature_names, str(X.dtype), X.engine.n_parts
    (2, None, 'float64', 2)
    """

    @cached_property
    def engine(self) -> Engine:
        """One for a single pass, or for tests."""
        return self.start(None)

    def opened(self, n_jobs: int | None, max_weight: float = 1.0) -> Table:
        """The table, read once."""
        engine = self.start(n_jobs)
        largest = max_weight if self.weighted else None
        n_rows, first = engine.reduce(_counted, "y" if self.targets else "sample_weight", largest)
        # Unreleased, and only looked at as in memory, where no rows at all are refused.
        if not n_rows:
            if self.weighted:
                raise ValueError(NO_WEIGHT)
            raise ValueError("X: Found array with 0 sample(s) while a minimum of 1 is required.")
        table = Table(engine, self.n_features, self.dtype, UnitFacts())
        # From here on part of what each state is made by, also when it is made again.
        table.update(_checked, first.digests)
        open_units(table, grouped=self.grouped, largest=largest)
        return table


class _Digests(Summed):
    """Digests of parts when they were first read, by their numbers: unreleased."""

    def __init__(self, digests: dict[int, tuple[int, ...]]) -> None:
        self.digests = digests

    def __add__(self, other: "_Digests") -> "_Digests":
        return _Digests(self.digests | other.digests)


def _counted(
    source: CheckedSource, beside: str, largest: float | None
) -> tuple[CheckedSource, tuple]:
    """Rows without a weight are not there."""
    counted = source.counted(beside)
    there = counted if largest is None else weighted_rows(counted, largest)[1]
    return counted, (there.n_rows(), _Digests({counted.number: counted.digests}))


def _checked(source: CheckedSource, digests: dict) -> tuple[CheckedSource, tuple]:
    source.check_digests(digests[source.number])
    return source, ()


def check_list(
    values: Any, name: str, n_parts: int | None, is_piece: Callable[[Any], bool], piece: str
) -> None:
    """Refuse what is no list of a piece for each of `n_parts`, by types alone: before the charge.
    `is_piece` tells by the type of something whether it is what `piece` says in words. A TypeError
    for other containers and elements, a ValueError for another number."""
    if values is None:
        return
    words = f"{name} must be a list with {piece} for each part of X"
    if not isinstance(values, list | tuple):
        raise TypeError(f"{words}, not {type(values).__name__}.")
    for value in values:
        if not is_piece(value):
            raise TypeError(f"{words}: it contains {type(value).__name__}.")
    if n_parts is not None and len(values) != n_parts:
        raise ValueError(f"{words}: their number differs.")


def is_list_of_values(piece: Any) -> bool:
    """True if something is one-dimensional and holds values; none of them is looked at.

    >>> is_list_of_values([1, 2]), is_list_of_values(np.ones(3)), is_list_of_values(3.0)
    (True, True, False)
    """
    if isinstance(piece, str | bytes | bytearray | memoryview | dict | set | frozenset | type):
        return False
    sized = hasattr(piece, "__len__") and not hasattr(piece, "__dask_graph__")
    return sized and getattr(piece, "ndim", 1) == 1
