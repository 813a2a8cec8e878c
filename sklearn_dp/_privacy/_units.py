"""Privacy units: which rows belong together, and how much each of them weighs.

Which rows are a group: :mod:`._groups`.

How a group becomes a unit: each of its m rows gets the weight 1/m, rounded down to whole steps of
2^-20, so that all of its rows together count for at most one. A statistic that adds up weighted
rows then has the sensitivity of one row, whatever the sizes of the groups are; nobody has to know,
or to bound, how many rows a person has. The weights need no release: a row's weight depends on its
own group alone, so a neighbor without that group has the same weights for all other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ._groups import check_container, code_groups
from ._rounding import exact_integers

_WEIGHT_STEPS = 2**20


@dataclass(frozen=True)
class UnitFacts:
    """Public facts of some units: what a sum of rows needs to be released."""

    scale: int = 1  # weight of a whole unit, in integer steps
    unit_weight: float = 1.0  # what a whole unit weighs, where rows have weights of their own
    own_weights: bool = False  # whether they have
    grouped: bool = False  # whether a unit may have several rows
    # what a unit is: a "group" also where there is one point for each, which stands for its rows
    unit: str = "row"

    @property
    def step(self) -> float:
        """Length of a weight step, in units."""
        return 1.0 / self.scale


class Units:
    """Which rows form one privacy unit, and how much each of them weighs.

    Rows of the same value in `groups` belong to one unit; see :func:`code_groups`. None: every row
    is a unit. Arrays have an entry for each row:

    * `scale`: weight of a whole unit, in integer steps (1 without groups);
    * `weights`: weight of each row; those of a unit sum to at most `scale`. None: one each;
    * `index`: the unit of each row, in the order of their first rows, or None;
    * `unit`: what a unit is, a "row" or a "group";
    * `own_weights`: whether rows have weights of their own (see :meth:`weighted`), and
      `unit_weight`, what a whole unit weighs where they have;
    * `excess`: by how much the own weight of each row exceeds that of a whole unit, in steps of
      `weights`; that of a unit counts as one unit at most. None: not known, and taken for nothing;
    * `numbers`: of the units among those of all parts, where these are the rows of one; or None,
      for 0, 1, ...
    """

    weights: Any  # ndarray of int64, or None
    own_weights = False
    unit_weight = 1.0
    unit = "row"
    excess: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def __init__(self, n_rows: int, groups: Any = None) -> None:
        self.n_rows = int(n_rows)
        if groups is None:
            self.scale, self.weights, self.index, self.size = 1, None, None, self.n_rows
            return
        self.index, self.unit = code_groups(groups), "group"
        if len(self.index) != self.n_rows:
            raise ValueError("groups must have one entry for each row.")
        members = np.bincount(self.index)
        self.scale, self.size = _WEIGHT_STEPS, len(members)
        # floor: the weights of a unit of m rows sum to m * floor(scale / m) <= scale.
        self.weights = exact_integers((_WEIGHT_STEPS // members)[self.index])

    @classmethod
    def of_sizes(
        cls, index: np.ndarray, sizes: np.ndarray, numbers: np.ndarray | None = None
    ) -> Self:
        """Units of some rows, whose groups may have more rows elsewhere. `sizes` are numbers of
        rows everywhere, `index` is the group of each row, `numbers` the number of each group, in
        all parts the same."""
        units = cls(len(index))
        units.index, units.size, units.scale = index, len(sizes), _WEIGHT_STEPS
        units.numbers, units.unit = numbers, "group"
        # As above: wherever its m rows are, their weights sum to m * floor(scale / m) <= scale.
        units.weights = exact_integers((_WEIGHT_STEPS // sizes)[index])
        return units

    def times(self, rows: Units) -> Self:
        """Return these units with the weights of their rows multiplied in, if `rows` have
        weights."""
        if rows.own_weights:
            # As in `weighted`: at most the weight in the group, and below 2**41.
            if rows.excess is not None:
                self.excess = self.weights * rows.excess // _WEIGHT_STEPS
            self.weights = self.weights * rows.weights // _WEIGHT_STEPS
            self.own_weights, self.unit_weight = True, rows.unit_weight
        return self

    @classmethod
    def weighted(
        cls, weights: np.ndarray, largest: float, groups: Any = None
    ) -> tuple[Units, np.ndarray]:
        """Units of rows that have weights of their own, and which rows are there.

        Weights are finite and at least 0. Those larger than `largest`, which is public, count as
        this one, and a row of this weight as a whole unit. Rows that weigh less than a step,
        `largest` / 2**20, are not there: the units are those that there would be without them, bit
        for bit.
        """
        # A function of the weight of one row and of `largest`: at most a whole unit, rounded down.
        parts, more = (
            exact_integers(np.floor(np.minimum(part, largest) / largest * _WEIGHT_STEPS))
            for part in (weights, np.maximum(weights - largest, 0.0))
        )
        there = parts > 0
        if groups is not None:
            groups = code_groups(groups)
            if len(groups) != len(parts):
                raise ValueError("groups must have one entry for each row.")
            groups = groups[there]
        units = cls(int(there.sum()), groups)
        whole = _WEIGHT_STEPS if groups is None else units.weights
        # whole * part / 2**20 is at most `whole`, whatever the weights are: those of a unit sum to
        # at most `scale`, as without weights. Products stay below 2**41.
        units.weights = whole * parts[there] // _WEIGHT_STEPS
        units.excess = whole * more[there] // _WEIGHT_STEPS
        units.scale, units.unit_weight = _WEIGHT_STEPS, float(largest)
        units.own_weights = True
        return units, there

    @property
    def totals(self) -> np.ndarray:
        """Unreleased: sums over all rows, in steps, to each of which a unit adds at most `scale`.
        Of the weight; where rows have weights of their own, of the squared weight of units, or what
        is no less, and of the excess, too."""
        if self.weights is None:
            return np.array([self.n_rows])
        weight = int(self.weights.sum())
        if not self.own_weights:
            return np.array([weight])
        # A weight w of at most `scale` has a square of at most `scale` w, so this is at most the
        # weight. Other rows of a group may be elsewhere: its weight takes the place of its square.
        squares = weight if self.index is not None else int((self.weights**2 // self.scale).sum())
        # Rows have at most `_WEIGHT_STEPS` of excess each, as they have of weight.
        return np.array([weight, squares, 0 if self.excess is None else int(self.excess.sum())])

    @property
    def facts(self) -> UnitFacts:
        """Public facts of these units."""
        grouped = self.index is not None
        return UnitFacts(self.scale, self.unit_weight, self.own_weights, grouped, self.unit)

    @property
    def step(self) -> float:
        """Length of a weight step, in units."""
        return 1.0 / self.scale

    def spread(self, per_unit: np.ndarray) -> np.ndarray:
        """A value (or row) of each unit, for each of its rows."""
        return per_unit if self.index is None else per_unit[self.index]

    def weigh(self, rows: np.ndarray) -> np.ndarray:
        """Rows times their weights, rounded toward zero: |row| never grows. Integer-valued rows
        (n_rows, d) of norm at most 2**26. The rows of one unit together have a norm of at most the
        longest of them."""
        if self.weights is None:
            return rows
        # Both factors are integers, |row| <= 2**26 and the weight at most 2**20: exact.
        return np.trunc(rows * (self.weights[:, None] * self.step))

    def take(self, rows: Any) -> Units:
        """Return these units restricted to some rows (a mask, indices or a slice)."""
        other = object.__new__(Units)
        other.scale, other.size, other.unit_weight = self.scale, self.size, self.unit_weight
        other.own_weights, other.numbers, other.unit = self.own_weights, self.numbers, self.unit
        other.weights = None if self.weights is None else self.weights[rows]
        other.excess = None if self.excess is None else self.excess[rows]
        other.index = None if self.index is None else self.index[rows]
        if isinstance(rows, slice):
            other.n_rows = len(range(*rows.indices(self.n_rows)))
            return other
        other.n_rows = int(np.count_nonzero(rows)) if np.asarray(rows).dtype == bool else len(rows)
        return other


def unit_of(groups: Any) -> str:
    """Return the unit that a fit with these groups protects; wrong types are refused, and no value
    is looked at. Asked before the ledger is charged, which has to know the unit."""
    if groups is None:
        return "row"
    check_container(groups)
    return "group"
