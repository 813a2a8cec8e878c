"""Tables whose rows are made of those of another table, where these are: halves, and points of
units.

Both are drawn by the numbers of units (`_queries/samples.py`), however the rows are cut into parts.
Coins are independent, so a unit that comes or goes is in one half and moves no other unit. Halves
by position would not do: with one row less at the top, a row of another unit goes from one half to
the other.

*Inner tables* are a :class:`.Part` in the state of each part, under a name. A pass over one is a
pass over the outer table, for every engine.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from .._privacy._domain import Domain
from .._privacy._integers import exact_integers
from .._privacy._session import PrivacySession
from .._privacy._unit_draws import UnitDraws, addressed_draws
from .._privacy._units import UnitFacts, Units
from .._rows.rows import Rows
from .._rows.table import ROWS, Engine, Part, PartSource, PassFunction, SplitFunction, Table
from ._query import Step
from .grids import ACTIVE, projected
from .handles import GridRows
from .samples import ByPart, UnitNumbers, numbered
from .table_rows import TableRows


class InnerEngine:
    """Computes on parts that parts of another table hold, by name; see :class:`.Engine`."""

    def __init__(self, table: Table, name: str) -> None:
        self.table, self.name, self.n_parts = table, name, table.engine.n_parts

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """In the next pass over the outer table."""
        self.table.update(_inside, self.name, function, broadcast)

    def reduce(self, function: PassFunction, *broadcast: Any) -> tuple:
        """A pass over the outer table."""
        return self.table.sums(_inside, self.name, function, broadcast)

    def collect_rows(self, function: Callable[..., np.ndarray], *broadcast: Any) -> Any:
        """A value for each inner row."""
        return self.table.rows(_rows_inside, self.name, function, broadcast)

    def exchange(
        self, split: SplitFunction, use: Callable[..., Any], n_tasks: int, *broadcast: Any
    ) -> list:
        """Not for inner rows: engines bring those together that they have read."""
        raise TypeError("rows of an inner table do not travel.")

    def shuffle(
        self, split: SplitFunction, join: Callable[..., Part], n_parts: int, *broadcast: Any
    ) -> Engine:
        """Neither are there new parts of them."""
        raise TypeError("rows of an inner table do not travel.")


def inner_table(
    rows: TableRows,
    name: str,
    n_features: int,
    make: Callable[..., Part],
    *broadcast: Any,
    units: UnitFacts | None = None,
) -> TableRows:
    """A handle of what `make`, a pure function of a module, gives for each part in the next pass.
    Another table of the same name ends. Its rows are units of weight one, unless `units` say what
    else they are."""
    table = rows._raw()
    if units is None and (table.units.grouped or table.units.scale != 1):
        raise TypeError("a row must be all of its unit here.")
    table.update(_made, name, make, broadcast)
    units = replace(units or UnitFacts(), unit=table.units.unit)
    return TableRows(Table(InnerEngine(table, name), n_features, np.float64, units))


def alone(rows: GridRows, name: str) -> GridRows:
    """Return the same rows with a state of their own, each row as a unit."""
    inner = inner_table(rows.table, name, rows.n_features, rows_alone)
    return GridRows(inner, rows.ball, rows.unit)


def rows_alone(part: Part) -> Part:
    """The rows of a part, for a table with a state of its own."""
    return Part(part.source, part.units, {ROWS: part[ROWS]})


class Dropped(Step):
    """Parts let go of inner tables by name, or of rows on a grid: they are the memory of a fit."""

    names: tuple[str, ...] = ()
    rows: bool = False

    def on(self, part: Part) -> Part:
        return part.without(*self.names, *([ROWS] if self.rows else []))


def _made(part: Part, name: str, make: Callable[..., Part], broadcast: tuple) -> tuple[Part, tuple]:
    return part.having(**{name: make(part, *broadcast)}), ()


def _inside(part: Part, name: str, function: PassFunction, broadcast: tuple) -> tuple[Part, tuple]:
    inner, sums = function(part[name], *broadcast)
    return part.having(**{name: inner}), sums


def _rows_inside(
    part: Part, name: str, function: Callable[..., np.ndarray], broadcast: tuple
) -> np.ndarray:
    return function(part[name], *broadcast)


POINTS = "points"
"""Name of the table of :func:`unit_points`, in the state of the parts."""

_SECOND, _HALF = "second half", "half of the points"


def in_second(draws: np.ndarray) -> np.ndarray:
    """True where units are in the second half: a fair coin of each, made of its 64 random bits."""
    return (draws & np.uint64(1)).astype(bool)


def in_first(draws: np.ndarray) -> np.ndarray:
    """True where units are in the first half: the others."""
    return (draws & np.uint64(1)) == 0


def second_half(
    rows: GridRows, numbers: UnitNumbers, draws: UnitDraws, domain: Domain, known: Domain | None
) -> GridRows:
    """The rows of the second half of the units, moved into public bounds and clipped into a domain.
    All rows of a unit are in it or none: what is released of it costs nothing in the other half."""
    table = rows.table
    inner = inner_table(
        table, _SECOND, table.n_features, _chosen_half, numbers, draws, known, units=table.units
    )
    return GridRows.quantize(inner, domain)


def unit_points(
    session: PrivacySession,
    rows: GridRows,
    domain: Domain,
    known: Domain | None,
    numbers: UnitNumbers | None = None,
) -> GridRows:
    """One row of each unit, drawn at random, each of which is then a unit of its own, on the grid.

    Counts of points in balls have sensitivity one for points; a unit of many rows would have to
    share its weight among balls. A row is drawn from the bits that belong to the unit, so adding or
    removing a unit adds or removes one point and leaves the others."""
    table = rows.table
    start = partial(inner_table, table, POINTS, rows.n_features)
    if not rows.units.grouped:  # which is public
        return GridRows(start(rows_alone), rows.ball, rows.unit)
    size = (numbered(table) if numbers is None else numbers).size
    (members,) = table._raw().sums(_members)
    drawn = _drawn_rows(members, addressed_draws(session, size).take(0, size), size)
    inner = start(_drawn_points, drawn, domain, known, table.n_parts, units=UnitFacts())
    return GridRows(inner, rows.ball, rows.unit)


def half_of_points(
    points: GridRows,
    numbers: UnitNumbers,
    draws: UnitDraws,
    *,
    second: bool,
    axes: np.ndarray | None = None,
) -> GridRows:
    """The points along released integer axes (d, q), of which those of a half are looked at."""
    q = points.n_features if axes is None else axes.shape[1]
    inner = inner_table(points.table, _HALF, q, _half_of_part, numbers, draws, second, axes)
    return GridRows(inner, points.limit, points.unit)


def along(rows: Rows, axes: np.ndarray | None) -> Rows:
    """Integer coordinates along the axes, as long as a row may be at the most."""
    if axes is None:
        return rows
    return rows.map(partial(projected, basis=axes, limit=rows.limit), axes.shape[1])


class _ChosenSource(PartSource):
    """Some rows of a source, moved into public bounds."""

    def __init__(self, source: PartSource, places: np.ndarray, within: Any) -> None:
        self.source, self.places, self.within = source, places, within
        self.number = source.number

    def read(self) -> Any:
        return _ChosenRows(self.source.read(), self.places, self.within)

    def n_rows(self) -> int:
        return len(self.places)


class _ChosenRows:
    """These rows, made when they are asked for: each is a function of one row."""

    def __init__(self, X: Any, places: np.ndarray, within: Any) -> None:
        self.X, self.places, self.within = X, places, within
        self.shape = (len(places), X.shape[1])

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> np.ndarray:
        rows = self.X[self.places[part]]
        return rows if self.within is None else self.within.clip_points(rows)


# -- passes ----------------------------------------------------------------------------------------


def _chosen_half(part: Part, numbers: Any, draws: UnitDraws, within: Domain | None) -> Part:
    """The rows of the second half; of their units each is there as a whole."""
    there = in_second(numbers.draws_of(part, draws))
    source = _ChosenSource(part.source, np.flatnonzero(there), within)
    return Part(source, part.units.take(there))


def _half_of_part(
    part: Part, numbers: Any, draws: UnitDraws, second: bool, axes: np.ndarray | None
) -> Part:
    active = (in_second if second else in_first)(numbers.draws_of(part, draws))
    return Part(part.source, part.units, {ROWS: along(part[ROWS], axes), ACTIVE: active})


def _members(part: Part) -> tuple[Part, tuple[ByPart]]:
    """The numbers of the units of a part, and how many rows of each it has."""
    units = part.units
    there, counts = np.unique(cast("np.ndarray", units.index), return_counts=True)
    ids = there if units.numbers is None else units.numbers[there]
    return part, (ByPart({part.source.number: (exact_integers(ids), counts)}),)


def _drawn_rows(members: ByPart, draws: np.ndarray, size: int) -> Any:
    """Which row stands for each unit, by `draws` (uint64, (size,)): units and rows of each part."""
    totals = np.zeros(size, dtype=np.int64)
    for ids, counts in members.values.values():
        totals[ids] += counts
    # 32 random bits times the number of rows, over 2**32: a row whose probability is off by at
    # most 2**-32. This is no noise, so that bias costs no privacy.
    low = draws & np.uint64(2**32 - 1)
    chosen = ((low * totals.view(np.uint64)) >> np.uint64(32)).view(np.int64)
    drawn = {}
    for number in sorted(members.values):  # in the order of the rows
        ids, counts = members.values[number]
        here = (chosen[ids] >= 0) & (chosen[ids] < counts)
        drawn[number] = ids[here], chosen[ids[here]]
        chosen[ids] -= counts
    return drawn


def _drawn_points(
    part: Part, drawn: Any, domain: Domain, within: Domain | None, n_parts: int
) -> Part:
    """The rows of a part that stand for units, in the order of these."""
    units, (ids, ranks) = part.units, drawn[part.source.number]
    numbers = np.arange(units.size) if units.numbers is None else units.numbers
    numbers_of_units = numbers[units.index]
    order = np.argsort(numbers_of_units, kind="stable")
    ids, ranks = ids[np.argsort(ids)], ranks[np.argsort(ids)]
    places = order[np.searchsorted(numbers_of_units[order], ids) + ranks]
    source, alone = _ChosenSource(part.source, places, within), Units(len(places))
    alone.numbers = ids
    return Part(
        source,
        alone,
        {ROWS: Rows.of_source(source, domain, len(places), n_parts=n_parts)},
    )
