"""The points of groups that are spread over the parts of a table.

The point of a group is the mean of its rows, which takes all of them in the order that they have in
the table: floating-point sums are those in memory, bit for bit. So the rows of each group come
together by a shuffle of the engine, from worker to worker. None comes to the place of the fit.

1. A pass tells how many groups there are. Their numbers are known since the table has been opened
   (:mod:`..shared.table_units`): those of their first rows.
2. Each new part gets the groups of a range of numbers, and so points have the numbers, and the
   order, that they have in memory. Where a range begins is unreleased: it goes to the workers, as
   the weights of groups do.

From here on every row of the new table is a unit, with the weight that the rows of its group have.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._privacy._rounding import exact_integers
from ..._privacy._units import UnitFacts, Units
from ..shared.block_fits import MOST_PIECES
from ..shared.blocks import TASKS
from ..shared.table import ArraySource, Part, PartSource, Table
from ..shared.unit_numbers import UnitNumbers
from .points import unit_points


def group_points(table: Table) -> Table:
    """A table with a point for each group, or the opened table itself where rows are units.

    The points are float64; in as many parts, but for very many.
    """
    facts = table.units
    if not facts.grouped:
        return table
    n_groups, n_parts = UnitNumbers.of(table).size, table.engine.n_parts
    n_parts = min(n_parts, max(TASKS, MOST_PIECES // n_parts))
    ends = n_groups * np.arange(n_parts + 1) // n_parts
    engine = table.shuffle(_by_group, _as_points, n_parts, ends, facts)
    of_points = UnitFacts(
        facts.scale if facts.own_weights else 1, facts.unit_weight, facts.own_weights
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


def _as_points(
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
