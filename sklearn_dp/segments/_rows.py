"""Which rows are in which segment: listed values of a public key, compared row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _door, _door_entries
from .._privacy._entries import dtype_of, is_column, kind_of, places_among
from .._privacy._units import Units, code_groups

MOST_SEGMENTS = 10_000


def checked_values(values: Any) -> list[Any]:
    """The listed values of a key, as plain Python values that differ."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple | range):
        raise TypeError("values must be a list of the public values of the key.")
    if not 1 <= len(values) <= MOST_SEGMENTS:
        raise ValueError(f"values must list between 1 and {MOST_SEGMENTS} values.")
    for value in values:
        if not isinstance(value, str | int | float | np.integer | np.floating) or value != value:
            raise TypeError(
                "values must contain strings and numbers; turn dates into text, in by as well."
            )
    if len({*map(str, values)}) != len(values) or len({*values}) != len(values):
        raise ValueError("values must differ, also as strings: 1 and '1' look alike in a result.")
    return list(values)


def part_labels(values: Sequence[Any]) -> list[str]:
    """The label of each segment in a report: its value, without slashes; by number where two agree.

    >>> part_labels(["north", "east/west", 3]), part_labels(["a/b", "a|b"])
    (['north', 'east|west', '3'], ['segment 0', 'segment 1'])
    """
    labels = [str(value).replace("/", "|") for value in values]
    if len(set(labels)) == len(labels) and all(labels):
        return labels
    return [f"segment {number}" for number in range(len(values))]


def without_column(X: Any, column: str | int | None, key: Any) -> tuple[Any, Any]:
    """Rows without the column of the key, by names of a DataFrame or numbers; and the key."""
    if column is None:
        return X, key
    try:
        return _door_entries.without_column(X, column)
    except MemoryError:
        raise
    except Exception:  # of a table that has no such column, or of code that it brings along
        pass
    raise ValueError("by must be a column of X: the name of one in a DataFrame, or its number.")


def segment_of_rows(key: Any, values: Sequence[Any], n_rows: int) -> np.ndarray:
    """The number of the value of each row, -1 for rows of none: a function of each row alone.

    Values are compared by hash and equality, as in a dict. What has neither is no listed value."""
    check_key(key, values)
    rows = _door.column(key, "by")
    if len(rows) != n_rows:
        raise ValueError("by must have one entry for each row.")
    return places_among(rows, values)


def check_key(key: Any, values: Sequence[Any]) -> None:
    """Refuse by its type alone a key that has no entries, or none that can be a listed value."""
    if not is_column(key):
        raise ValueError("by must have one entry for each row.")
    kind = kind_of(dtype_of(key))
    listed = {"text" if isinstance(value, str) else "number" for value in values}
    if kind not in {*listed, "object"}:
        types = "texts" if listed == {"text"} else "numbers" if listed == {"number"} else "either"
        raise TypeError(
            f"by must hold what values lists ({types}): its type is {dtype_of(key)}. Turn dates "
            "and intervals into text, in by and in values."
        )


def units_in_one_segment(groups: Any, segment: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """The number of the unit of each row, None where rows are units; and the segment of each row,
    -1 where its unit has more rows in another segment (as many in one that is listed before it). So
    a unit is in one segment only, by its own rows; an error, or a warning, would tell that some
    unit is in two."""
    if groups is None:
        return None, segment
    units = code_groups(groups)
    if len(units) != len(segment):
        raise ValueError("groups must have one entry for each row.")
    inside = np.flatnonzero(segment >= 0)
    pairs, counts = np.unique(
        np.stack([units[inside], segment[inside]]), axis=1, return_counts=True
    )
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    owner, first = np.unique(pairs[0, order], return_index=True)
    segment_of_unit = np.full(int(units.max(initial=-1)) + 1, -1, dtype=np.int64)
    segment_of_unit[owner] = pairs[1, order[first]]
    return units, np.where(segment_of_unit[units] == segment, segment, -1)


@dataclass(frozen=True)
class UnitsBySegment:
    """The units of rows, segment by segment; one entry of each array for each row."""

    segment: np.ndarray  # number of the segment of each row, -1 for none
    groups: np.ndarray | None  # number of the unit of each row; None: rows are units
    weights: np.ndarray | None  # own weights of rows; None: they have none
    largest: float | None  # what a whole unit weighs, where they have

    def of(self, X: np.ndarray, number: int | None = None) -> tuple[np.ndarray, Units]:
        """Rows of a segment, or of all of them, and their units, all of whose rows are there."""
        inside = self.segment >= 0 if number is None else self.segment == number
        groups = None if self.groups is None else self.groups[inside]
        if self.weights is None or self.largest is None:
            return X[inside], Units(int(inside.sum()), groups)
        units, there = Units.weighted(self.weights[inside], float(self.largest), groups)
        return X[inside][there], units
