"""Units of a table in parts: rows, or groups that may be spread over several parts.

The weight of a row in a group of m rows is 1/m, whatever part it is in: the parts first tell how
many rows of each group they hold; the counts are merged at the place of the fit, and each part then
looks up its own groups. Ids are compared by value, and groups have numbers by the order of their
first rows, as in memory. Ids travel here only, and are forgotten at the place of the fit.
"""

from typing import Any

import numpy as np

from .._privacy._entries import entries_of, floats
from .._privacy._integers import exact_integers
from .._privacy._units import UnitFacts, Units, check_one_kind, group_keys
from .table import Part, PartSource, Summed, Table

_PART_ROWS = 2**40  # more than any part has


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
