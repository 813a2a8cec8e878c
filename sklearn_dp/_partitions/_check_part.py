"""What is checked in each part of a table, where the part is, and errors that quote none of it.

The width, the names and the type of the columns are public: they are read from what describes a
collection, and each part has to agree with them. What a part holds is private. An error names the
part by its number and says what kind of thing is wrong, in words of :mod:`sklearn_dp._door`; what
another library has raised on the way is dropped, with its traceback, because it may quote rows.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._door import Schema, by_name, check_numbers, numbers, schema
from .._rows.single_rows import row_guard, saturated
from .._rows.table import PartSource
from ..exceptions import PartError
from ._digests import digest, digest_of_values

__all__ = [
    "MOST_ROWS",
    "CheckedSource",
    "Columns",
    "Given",
    "Reason",
    "at_hand",
    "columns_of",
    "has_no_columns",
    "quietly",
]

MOST_ROWS = 2**27
"""Public: rows of a part. The integers that a part adds up stay below 2**63 with a wide margin."""


class Reason(Exception):
    """What is wrong with a part, in words that quote nothing; they lack the number of the part."""


@dataclass(frozen=True)
class Columns:
    """What is public of a table in parts: each of its parts has these columns."""

    n_features: int
    names: tuple[str, ...] | None  # in their order; None where columns have no names
    dtype: np.dtype  # float32 or float64: of the rows, once they have been checked

    def in_order(self, piece: Any) -> Any:
        """A part with the columns of X in their order, by names where it has some.

        A `Reason` for a part whose type tells of other columns: that is public.
        """
        piece = np.empty((0, self.n_features)) if has_no_columns(piece) else piece
        if _schema(piece).n_features != self.n_features:
            raise Reason("its number of columns differs from that of X")
        try:
            return by_name(piece, self.names, "X")
        except ValueError:
            pass
        raise Reason(
            "its columns have names, and those of the first part have none"
            if self.names is None
            else "its column names differ from those of X"
        )

    @row_guard
    def check(self, piece: Any) -> np.ndarray:
        """The rows of a part as tables in memory are taken: real, finite, of bounded size.

        The piece is an array or a data frame of any number of rows, none as well. Of type `dtype`;
        not copied where it need not be. A `Reason` says what is wrong, in words that quote nothing.
        """
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
    """Rows of a part, checked whenever they are read: what is read again may have changed.

    `rows` reads a piece: an array or a data frame; `groups` and `weights`, if there are any, the
    group and the weight of each row. The number of the part is for errors.
    """

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
        """Values of rows, if they are those that have been counted, in the same order.

        What a pass keeps for a row, such as the norm that it is clipped by or the weight of its
        group, stands in its place: for another row there it would be wrong, and the row could
        count for more than a sensitivity covers.
        """
        if self._length is not None and len(values) != self._length:
            raise Reason("it must have one entry for each row, in every pass")
        if name in self._known:
            _check_same(name, digest(values), self._known[name])
        return values

    def counted(self, beside: str = "sample_weight") -> "CheckedSource":
        """The same source, which knows how many rows it has, and which rows it will have.

        `beside` is what the weights are, for errors: "sample_weight" or "y".
        """
        other, rows = copy.copy(self), self.read()
        other._length, other._known = len(rows), {"X": digest(rows)}
        for name, read in (("groups", self._groups), (beside, self._weights)):
            if read is not None:
                values = other._values(read, name)
                other._known[name] = quietly(partial(digest_of_values, values), self.number, name)
        return other

    @property
    def digests(self) -> tuple[int, ...]:
        """Of rows, groups and weights, once they have been counted: unreleased."""
        return tuple(self._known.values())

    def check_digests(self, digests: tuple[int, ...]) -> None:
        """Raise `PartError` unless the part is still the one of the first pass.

        The state of a part dies with its worker, digests and all, and is made again from the
        source: with digests of what is there now. A source that is no function of what it reads (a
        shuffle of an unseeded order) then gives rows that other parts have too: they would count
        twice. So the digests of the first pass are held where the fit is, and come back here.

        The error tells nothing of the rows. Where X is a function of what is stored, digests are
        the same whatever the rows are and whichever worker dies. Elsewhere there are two tables
        called X, and a guarantee about the first cannot hold for the second: the storage has
        failed, as when a file is gone.
        """
        for (name, found), first in zip(self._known.items(), digests, strict=True):
            quietly(partial(_check_same, name, found, first), self.number, name)

    def n_rows(self) -> int:
        """Number of rows, without reading them if they have been counted."""
        return len(self.read()) if self._length is None else self._length

    def read_groups(self) -> Any:
        """The group of each row, or None."""
        return self._values(self._groups, "groups")

    def read_weights(self) -> Any:
        """The weight of each row, or None."""
        return self._values(self._weights, "sample_weight")

    def read_targets(self) -> Any:
        """The target of each row, which takes the place of a weight; or None."""
        return self._values(self._weights, "y")

    def _values(self, read: Callable[[], Any] | None, name: str) -> Any:
        if read is None:
            return None
        return quietly(lambda: self._same(name, read(), digest_of_values), self.number, name)


_given: ContextVar[tuple] = ContextVar("sklearn_dp_given", default=())
_kept: ContextVar[dict[int, np.ndarray] | None] = ContextVar("sklearn_dp_kept", default=None)


@contextmanager
def at_hand(pieces: tuple) -> Iterator[None]:
    """What sources read in this block has been brought here by the engine; it is read once.

    The pieces are rows, groups and weights of a part, as far as it has them.
    """
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


def columns_of(piece: Any) -> Columns:
    """The columns of a part, or of an empty table that stands for all of them.

    Of the values nothing is told, not even whether they are finite, or numbers at all: a part is
    asked for its columns before a fit is charged.
    """
    given = _schema(piece)
    return Columns(given.n_features, given.names, given.dtype)


def has_no_columns(piece: Any) -> bool:
    """Whether a part is a list of no rows, which fits any columns."""
    return isinstance(piece, list | tuple) and not len(piece)


def _check_same(name: str, found: int, first: int) -> None:
    """Refuse values that have another digest than those of the first pass."""
    if found != first:
        what = "rows" if name == "X" else "values"
        raise Reason(
            f"its {what} have changed since the first pass, or been reordered: keep {name} in "
            "memory (persist, cache), or write it to a file"
        )


def quietly(call: Callable[[], Any], number: int | None = None, name: str = "X") -> Any:
    """What a call returns; whatever it raises becomes a `PartError` that quotes nothing.

    It tells the parameter, the part, and the type of the error or what we say of it: `Reason` and
    `PartError` are words of ours, anything else is in words of others.
    """
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
    """What the type of a part tells, if it declares no other columns than numbers."""
    given = _in_our_words(lambda: schema(piece))
    _in_our_words(lambda: check_numbers(given))
    return given


def _in_our_words(call: Callable[[], Any]) -> Any:
    """What the door gives for a part, or why it gives nothing."""
    try:
        return call()
    except (TypeError, ValueError) as error:  # in words of `_door`
        reason = str(error)
    raise Reason(reason)
