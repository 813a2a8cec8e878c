"""The points of a friendly mean: what they are, where they are, and a sample of them.

A point stands for a privacy unit. Without groups it is a row, wherever the row is
(:class:`Points`); that of a group is the mean of its rows, which takes all of them together
(:func:`unit_points`), in the order that they have in the table: floating-point sums are those in
memory, bit for bit. So the rows of a group that is spread over parts come together by a shuffle of
the engine, from worker to worker (:func:`group_points`). None comes to the place of the fit. Where
the range of groups of a new part begins is unreleased: it goes to the workers, as the weights of
groups do. From there on every row of the new table is a unit, with the weight of its group.

Pairs of points are compared within a sample of a few thousand. The sample, and nothing else of the
rows, is collected at the place of the fit, which is trusted. Which points are in it is a function
of a seed and of their numbers: rows are numbered part after part, so that a table in parts has the
sample, and with it the bits, of the same rows in memory.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._privacy._randomness import UnitDraws
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..._privacy._units import UnitFacts, Units
from ..shared.blocks import MOST_PIECES, TASKS
from ..shared.columns import Columns, ColumnSource
from ..shared.samples import ByPart, UnitNumbers, drawn_places
from ..shared.table import ArraySource, Part, PartSource, Table
from .core import sample_bound
from .mean_facts import most_pairs


def unit_points(X: Any, units: Units) -> np.ndarray:
    """One point for each unit: the (weighted) mean of its rows, a function of these rows alone. `X`
    itself where every row is a unit."""
    X = np.asarray(X, dtype=np.float64)
    if units.index is None:
        return X
    order = np.argsort(units.index, kind="stable")
    index = units.index[order]
    # A row that is there has a step at least: the mean of no steps is none.
    steps = np.maximum(units.weights[order], 1) if units.own_weights else np.ones(len(index))
    sizes = np.bincount(index, steps, minlength=units.size)
    points = np.zeros((units.size, X.shape[1]))
    # Row after row, in the order they have in the data: no other unit takes part.
    np.add.at(points, index, X[order] / (sizes[index] / steps)[:, None])
    return points


class Sample(NamedTuple):
    """Points that are compared with each other; unreleased."""

    points: np.ndarray  # (m, d)
    numbers: np.ndarray | None  # (m,), which of all points they are; None: all of them

    def __repr__(self) -> str:
        return "Sample"  # its points are nothing to print


class Points:
    """The points of a table whose rows are units, in coordinates of `columns`; one pass counts
    them.

    From here on the sources of the table give points. Their `number`, and `totals` of their weights
    (`Units.totals`), are unreleased.
    """

    def __init__(self, table: Table, columns: Columns) -> None:
        self.table, self.columns = table, columns
        self._sizes, self.totals = table.sums(_as_points, columns)
        self.number = sum(self._sizes.values.values())
        self._sample: Sample | None = None

    @property
    def n_features(self) -> int:
        return self.table.n_features

    def within(self, columns: Columns) -> "Points":
        """The same points in coordinates that have been released."""
        return Points(self.table, columns)

    def sample(self, session: PrivacySession, size: float) -> Sample:
        """All points, or about as many of them as can be compared, always the same ones: by coins
        of each point's own, so that the samples of neighbors are neighbors, or equal."""
        if self._sample is None:
            most, draws = most_pairs(self.n_features), None
            if size > most:
                draws = session.addressed_draws(self.number)
            firsts = self._sizes.starts()
            bound = None if draws is None else sample_bound(most / size)
            (found,) = self.table.sums(_sampled, firsts, draws, bound)
            points, places = zip(*found.in_order(), strict=True)
            self._sample = Sample(
                np.concatenate(points), None if draws is None else np.concatenate(places)
            )
        return self._sample


# -- passes ----------------------------------------------------------------------------------------


def _as_points(part: Part, columns: Columns) -> tuple[Part, tuple[ByPart, Any]]:
    """The part with points for rows; how many, and what they weigh."""
    part, units = part.reading(ColumnSource(part.source, columns)), part.units
    return part, (ByPart({part.source.number: units.n_rows}), units.totals)


def _sampled(
    part: Part, firsts: dict[int, int], draws: UnitDraws | None, bound: Any
) -> tuple[Part, tuple[ByPart]]:
    """The points of the part whose draw is within the bound, or all, and their numbers among
    all."""
    number, n = part.source.number, part.units.n_rows
    if draws is None:
        return part, (ByPart({number: (part.source.read()[:], None)}),)
    first = firsts[number]
    places = drawn_places(draws, bound, first, n)
    return part, (ByPart({number: (part.source.read()[places], first + places)}),)


def group_points(table: Table) -> Table:
    """A table with a float64 point for each group, or the table itself where rows are units."""
    facts = table.units
    if not facts.grouped:
        return table
    n_groups, n_parts = UnitNumbers.of(table).size, table.engine.n_parts
    n_parts = min(n_parts, max(TASKS, MOST_PIECES // n_parts))
    ends = n_groups * np.arange(n_parts + 1) // n_parts
    engine = table.shuffle(_by_group, _group_points, n_parts, ends, facts)
    of_points = UnitFacts(
        facts.scale if facts.own_weights else 1, facts.unit_weight, facts.own_weights, unit="group"
    )
    return Table(engine, table.n_features, np.float64, of_points)


@dataclass(frozen=True, repr=False)  # nothing of it is released
class _ByGroup:
    """The rows of a part by the new part that their groups are in; rows are read when asked for."""

    source: PartSource
    rows: np.ndarray  # (n,), int64, in the order of the groups; those of a group in their own
    groups: np.ndarray  # (n,), int64
    weights: np.ndarray  # (n, 2), int64: weights, and what they have in excess
    ends: np.ndarray  # where the new parts begin and end

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inside = slice(self.ends[number], self.ends[number + 1])
        rows = np.asarray(self.source.read()).take(self.rows[inside], axis=0)
        return rows, self.groups[inside], self.weights[inside]


def _by_group(part: Part, ends: np.ndarray, facts: UnitFacts) -> _ByGroup:
    """Which rows of a part go to which new part: all those of a group to the same."""
    units: Any = part.units
    groups = exact_integers(units.index if units.numbers is None else units.numbers[units.index])
    order = np.argsort(groups, kind="stable")
    excess = np.zeros_like(units.weights) if units.excess is None else units.excess
    groups, weights = groups[order], np.stack([units.weights, excess], axis=1)[order]
    return _ByGroup(part.source, order, groups, weights, np.searchsorted(groups, ends))


def _group_points(
    number: int,
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    ends: np.ndarray,
    facts: UnitFacts,
) -> Part:
    """The new part of some groups, of the rows that all parts have of them."""
    # In the order of the parts, so that each group has its rows in the order of the table.
    rows, groups, weights = (np.concatenate(of_parts) for of_parts in zip(*pieces, strict=True))
    size, (weights, excess) = int(ends[number + 1] - ends[number]), weights.T
    units = Units.of_weights(groups - ends[number], size, weights, facts, excess)
    return Part(ArraySource(unit_points(rows, units), number), units.of_points())
