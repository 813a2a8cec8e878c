"""What a question is, and the handle on a table that it is asked of.

A question is made of public parameters, a pass over the rows of a part, and a proved claim. Two
things are proved of every question, next to each other and nowhere else:

* its pass is *additive*: what it gives for a part is the sum of what it gives for each row alone,
  and what it leaves in the state of a part for a row is a function of that row alone;
* its *claim* bounds what one unit adds to the sums: what neighbors differ by.

The property test (`tests/_queries/test_queries.py`) checks both, exactly. Parameters are numbers,
arrays (copied), domains and other :class:`Public` objects: never a function, and never what is not
released. The copies make sure that a claim is about what was summed.

Algorithms have a handle on a table: they ask, and let the parts find things out; no more. There is
no way from here to a row, or to a sum that is not sealed.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    NoReturn,
    Self,
    dataclass_transform,
    get_args,
)

import numpy as np

from .._privacy._grid import Domain, Sphere
from .._privacy._units import Claim, Sealed, SealedCells, UnitFacts, Units
from .._rows.table import ROWS, CellCounts, Part
from .._rows.table import Table as _Table

QUESTIONS: list[type] = []
"""Every kind of question and of step."""

_LONGEST = 2.0**25  # norm of a point that integer rows are compared with: see `_rows.rows`
IntegerPoints = Annotated[np.ndarray, "integer points, whose products with rows are exact"]
"""A parameter that is checked to be such points (k, d), or one (d,), wherever it is declared."""

_PLAIN = {type(None), bool, int, float, str, np.bool_, Domain, Sphere}


@dataclass_transform(frozen_default=True, eq_default=False)
class Hidden:
    """An argument of a question that is not public: it goes to the parts, and nobody reads it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, eq=False, repr=False)(cls)

    def __repr__(self) -> str:
        return type(self).__name__


@dataclass_transform(frozen_default=True, eq_default=False)
class Public:
    """A frozen dataclass of public values. Subclasses are made so by being defined."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, eq=False, repr=False)(cls)
        # A text, or a union, is not `IntegerPoints`: its points would be checked by nobody.
        for field in fields(cls):  # type: ignore[arg-type]
            if isinstance(field.type, str) or IntegerPoints in get_args(field.type):
                raise TypeError(f"{cls.__name__}.{field.name}: its type must be plain, no text.")

    def __post_init__(self) -> None:
        values = self.__dict__  # of the fields: nothing else has been set
        for field in fields(self):  # type: ignore[arg-type]
            name = field.name
            values[name] = _public(values[name], type(self), name)
            if field.type is IntegerPoints:
                _check_points(values[name])
        self._check()

    def _check(self) -> None:
        """Raise where the parameters break a premise of the proof."""


def _public(value: Any, owner: type, name: str) -> Any:
    """A public value; a copy of an array, which nobody can write into."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return tuple(_public(each, owner, name) for each in value)
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        value = value.copy(order="K")
        value.flags.writeable = False
    elif not isinstance(value, (np.number, Public, Hidden)):
        raise TypeError(
            f"{owner.__name__}.{name} must be public numbers, and is {type(value).__name__}."
        )
    return value


def _check_points(points: np.ndarray) -> None:
    """Raise unless integer rows can be compared with these points exactly."""
    points = np.atleast_2d(points)
    exact = (points == np.rint(points)).all()
    if not exact or not (np.einsum("ij,ij->i", points, points) <= _LONGEST**2).all():
        raise ValueError("points must be integers, of norms that products of rows with are exact.")


class GridFacts(NamedTuple):
    """Public facts of the integer rows of all parts."""

    n_features: int
    limit: float  # of the norm of a row about the present origin, in steps
    unit: float  # length of a step


class Facts(NamedTuple):
    """Public facts of the rows that are asked."""

    units: UnitFacts
    n_features: int
    grid: GridFacts | None = None

    @property
    def limit(self) -> float:
        """The limit on the norm of an integer row, in steps."""
        return self._grid.limit

    @property
    def unit(self) -> float:
        """Length of a step of the grid."""
        return self._grid.unit

    @property
    def _grid(self) -> GridFacts:
        if self.grid is None:
            raise TypeError("the rows are on no grid.")
        return self.grid


class Step(Public):
    """A pass in which the parts compute facts about their rows, without an answer: it waits for the
    next pass."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        QUESTIONS.append(cls)

    def on(self, part: Part) -> Part:
        """The part with new values of its rows, each a function of that row."""
        raise NotImplementedError


def Several(*answers: Sealed) -> tuple[Sealed, ...]:  # noqa: N802
    """In the place of a class of answers: as many as there are."""
    return answers


class Query(Public):
    """A question, whose answer is sealed: one, or an `Answer` of several of one pass."""

    Answer: ClassVar[Any] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.on is not Query.on:
            QUESTIONS.append(cls)

    def on(self, part: Part) -> tuple[Part, tuple]:
        """The part with new values of its rows, and exact sums over them."""
        raise NotImplementedError

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Return the most that one unit may add to each of the statistics, with the proof."""
        raise NotImplementedError

    def exact(self, sums: tuple) -> tuple:
        """The statistics, of the sums over all parts."""
        return sums

    def sealed(self, sums: tuple, facts: Facts) -> Any:
        """The answer, of the sums over all parts."""
        pairs = zip(self.exact(sums), self.claims(facts), strict=True)
        answers = [self._seal(value, claim, facts.units) for value, claim in pairs]
        return answers[0] if self.Answer is None else type(self).Answer(*answers)

    def _seal(self, value: Any, claim: Claim, units: UnitFacts) -> Sealed:
        return Sealed(value, claim, units, type(self).__name__)


class PointQuery(Query):
    """A question about points: units of weight one, of which neighbors may also *replace* one."""

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        if facts.units.grouped:
            raise TypeError("a row must be all of its unit here.")
        return self._claims(facts)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Return the most that one point may add to each of the statistics, with the proof."""
        raise NotImplementedError


class CellQuery(Query):
    """Weights in public cells: a row is in one of them at most."""

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit adds a non-negative vector of l1 norm at most `scale`; no l2 norm is larger."""
        units = facts.units
        return (Claim(units.scale, units.step, l1=units.scale),)


class SparseQuery(CellQuery):
    """A query about so many cells that empty ones are not stored: a sum of :class:`CellCounts`."""

    def n_cells(self) -> tuple[int, int]:
        """How many cells there are; and how many of these, the last, are shown in any case."""
        raise NotImplementedError

    def _seal(self, value: CellCounts, claim: Claim, units: UnitFacts) -> Sealed:
        exact = value.cells, value.counts
        return SealedCells(exact, claim, units, type(self).__name__, *self.n_cells())


def ask(sums: Callable[..., tuple], query: Query, facts: Facts) -> Any:
    """The sealed answer, of what sums a function over all parts."""
    if not isinstance(query, Query):
        raise TypeError("only a question can be asked.")
    return query.sealed(sums(_asked, query, facts.grid), facts)


def _asked(part: Part, query: Query, grid: GridFacts | None) -> tuple[Part, tuple]:
    _check_grid(part, grid)
    return query.on(part)


def applied(part: Part, step: Step, grid: GridFacts | None) -> tuple[Part, tuple]:
    """A pass without sums."""
    _check_grid(part, grid)
    return step.on(part), ()


def _check_grid(part: Part, grid: GridFacts | None) -> None:
    """Refuse a handle of rows that have been moved since: its claims would be about others."""
    if grid is not None:
        rows = part[ROWS]
        if (rows.n_features, rows.limit, rows.unit) != grid:
            raise TypeError(
                "the rows have been moved since: ask the handle of those that are there."
            )


# -- the handle ------------------------------------------------------------------------------------


class TableRows:
    """The rows of a table, as they came. There is one handle of them, which cannot be copied."""

    __slots__ = ("__table",)

    def __init__(self, table: "_Table | TableRows") -> None:
        self.__table: _Table = table.__table if isinstance(table, TableRows) else table

    @classmethod
    def in_memory(cls, X: np.ndarray, units: Units) -> Self:
        """A handle of rows in memory, for who has them already."""
        return cls(_Table.in_memory(X, units))

    @property
    def n_features(self) -> int:
        return self.__table.n_features

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the rows, which is public."""
        return self.__table.dtype

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a handle of rows cannot be copied or pickled.")

    def _raw(self) -> _Table:
        """The table, for questions that make another handle of it."""
        return self.__table

    @property
    def units(self) -> Any:
        """Public facts of the units."""
        return self.__table.units

    @property
    def n_parts(self) -> int:
        """A public number."""
        return self.__table.engine.n_parts

    def ask(self, query: Query, grid: GridFacts | None = None) -> Any:
        """Sealed answers: one pass over the rows."""
        d = self.n_features if grid is None else grid.n_features
        return ask(self.__table.sums, query, Facts(self.units, d, grid))

    def apply(self, step: Step, grid: GridFacts | None = None) -> None:
        """Let the parts find something out, in the next pass."""
        if not isinstance(step, Step):
            raise TypeError("only a step can be applied.")
        self.__table.update(applied, step, grid)
