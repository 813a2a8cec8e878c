"""A point for each group of rows: the mean of its rows, in the order that they have in the table.

The rows of a group that is spread over parts come together by a shuffle of the engine, from worker
to worker. Where the range of groups of a new part begins is unreleased: it goes to the workers.
Every row of the new table is a unit, with the weight of its group.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._units import UnitFacts, Units
from .._rows.table import MOST_PIECES, TASKS, ArraySource, Part, PartSource, Table
from ._query import TableRows
from .samples import UnitNumbers


def unit_points(X: Any, units: Units) -> np.ndarray:
    """One point for each unit: the (weighted) mean of its rows, a function of these alone; `X`
    itself where rows are units."""
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


def points_of(rows: TableRows) -> TableRows:
    """A handle of the points of groups, or the same where rows are units."""
    return TableRows(group_points(rows._raw())) if rows.units.grouped else rows


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
    units = Units(len(rows))  # the rows have weights already, which sum to at most `scale` in each
    units.index, units.size = groups - ends[number], size
    units.weights, units.excess = weights, excess
    units.scale, units.unit_weight = facts.scale, facts.unit_weight
    units.own_weights, units.unit = facts.own_weights, facts.unit
    return Part(ArraySource(unit_points(rows, units), number), units_of_points(units))


def units_of_points(units: Units) -> Units:
    """Units of which one point stands for each: with the weight that its rows have, or one."""
    alone = Units(units.size)
    alone.unit = units.unit
    if units.own_weights:
        # Integers of sum at most `scale`: exact as floats, and no point weighs more than that.
        unit = units.spread(np.arange(units.size))
        alone.weights = exact_integers(np.bincount(unit, units.weights, units.size))
        alone.scale = units.scale
        if units.excess is not None:
            alone.excess = exact_integers(np.bincount(unit, units.excess, units.size))
        alone.own_weights, alone.unit_weight = True, units.unit_weight
    return alone
