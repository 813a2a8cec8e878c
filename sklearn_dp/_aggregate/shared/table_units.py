"""Units of a table in parts: rows, or groups that may be spread over several parts.

The weight of a row in a group of m rows is 1/m, whatever part it is in. So the parts first tell
which groups they hold and how many rows of each; the counts are merged at the place of the fit, and
each part then looks up the sizes of its own groups. Ids are compared as in memory, by value: no
number is given to a group, so neither the parts nor their order can change what a row weighs.

What travels here, and nowhere else in a fit, are the ids of groups. They go to the place of the fit
and back, and are forgotten there.
"""

from typing import Any

import numpy as np

from ..._privacy._groups import check_one_kind, group_keys
from ..._privacy._units import UnitFacts, Units
from .table import Part, PartSource, Summed, Table

__all__ = ["GroupSizes", "open_units"]


class GroupSizes(Summed):
    """Numbers of rows of groups, by their ids: unreleased.

    Parameters
    ----------
    sizes : dict of id to int
    """

    def __init__(self, sizes: dict) -> None:
        self.sizes = sizes

    def __add__(self, other: "GroupSizes") -> "GroupSizes":
        both = dict(self.sizes)
        for key, size in other.sizes.items():
            both[key] = both.get(key, 0) + size
        return GroupSizes(both)


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
    """Open the parts of a table, and find out what each of their rows weighs.

    Parameters
    ----------
    table : Table
        Its engine has not been asked for anything yet. Its `units` are set here.
    grouped : bool
        Whether the sources have groups: then one pass tells their sizes.
    largest : float, optional
        Where the sources have weights: what a whole unit weighs, as for :meth:`Units.weighted`.

    Raises
    ------
    TypeError
        For groups that are dates of several types, which cannot be compared.
    """
    whole = Units.of_sizes(np.empty(0, np.int64), np.empty(0, np.int64)) if grouped else Units(0)
    own = largest is not None
    scale = Units.weighted(np.empty(0), 1.0)[0].scale if own else whole.scale
    table.units = UnitFacts(scale, float(largest) if largest is not None else 1.0, own)
    table.update(_opened, grouped, largest)
    if grouped:
        (found,) = table.sums(_sizes)
        check_one_kind(found.sizes)
        table.update(_weighed, found.sizes)


def _opened(source: PartSource, grouped: bool, largest: float | None) -> tuple[Part, tuple]:
    """The part of a source, with the groups of its rows; rows without a weight are not there."""
    groups: Any = source.read_groups() if grouped else None
    keys, index = group_keys(groups) if grouped else ([], None)
    units = Units(source.n_rows())
    if index is not None and len(index) != units.n_rows:
        raise ValueError("groups must have one entry for each row.")
    if largest is not None:
        weights = np.asarray(source.read_weights(), dtype=np.float64)
        if weights.shape != (units.n_rows,) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("sample_weight must be finite and not negative, one for each row.")
        units, there = Units.weighted(weights, largest)
        source, index = _There(source, there), None if index is None else index[there]
    return Part(source, units, {"groups": (keys, index)} if grouped else {}), ()


def _sizes(part: Part) -> tuple[Part, tuple]:
    keys, index = part["groups"]
    counts = np.bincount(index, minlength=len(keys)).tolist()
    sizes = {key: size for key, size in zip(keys, counts, strict=True) if size}
    return part, (GroupSizes(sizes),)


def _weighed(part: Part, sizes: dict) -> tuple[Part, tuple]:
    """Give each row the weight that it has in its group."""
    keys, index = part["groups"]
    there = np.bincount(index, minlength=len(keys)).tolist()
    # A group without a row that is there has not been counted. One that has, and is not found,
    # would seem to have no rows elsewhere: an error.
    members = [sizes[key] if number else 1 for key, number in zip(keys, there, strict=True)]
    units = Units.of_sizes(index, np.array(members, dtype=np.int64))
    return Part(part.source, units.times(part.units)), ()
