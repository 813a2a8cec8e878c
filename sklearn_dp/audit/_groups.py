"""What an audit knows of groups: their ids as given, and which of them are equal.

On purpose, nothing here is shared with the kernel's own coding of groups (`_privacy/_units.py`): an
error there must not hide itself.
"""

from datetime import date
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["fresh_id", "ids", "refilled", "unit_numbers"]


def ids(groups: Any) -> list[Any]:
    """The ids of any array-like as a list of Python objects, as they are.

    No array is made of them, which might convert them: numpy makes equal texts of 1 and "1".
    """
    return list(groups)


def unit_numbers(groups: Any) -> np.ndarray:
    """The number of the unit of each row: how many units come first before it.

    By a dictionary over the ids as given: with no array, no sorting and no conversion.
    """
    seen: dict[object, int] = {}
    numbers = []
    for value in ids(groups):
        if value not in seen:
            seen[value] = len(seen)
        numbers.append(seen[value])
    return np.array(numbers, dtype=np.int64)


def fresh_id(groups: Any, rng: np.random.Generator) -> Any:
    """An id that no unit has: of the kind of the others, or of any where anything can be held.

    In half of the cases where the container takes any object, an id of another kind than the
    others: converting or sorting such a mixture is what goes wrong.
    """
    values = ids(groups)
    known = set(values)
    numbers = [int(k) for k in rng.permutation(len(known) + 2)]
    candidates = list(_of_any_kind(numbers[0]))
    rng.shuffle(candidates)
    alike = [new for k in numbers for new in _alike(values, k)]
    # A list has no dtype and takes any object, like an array of objects.
    typed = str(getattr(groups, "dtype", "object")).lower() != "object"
    if alike and (typed or rng.random() < 0.5):
        candidates = alike + candidates
    return next(new for new in candidates if new not in known)


def refilled(groups: Any, values: Any) -> Any:
    """An array of the kind of `groups` with other ids; a list where it cannot hold them.

    Its ids are equal to `values`, which is checked: a conversion that merges two ids would make the
    audit wrong about which rows are one unit.
    """
    if isinstance(groups, (list, tuple)):
        return type(groups)(values)
    try:
        full = _refilled(groups, values)
        return full if ids(full) == values else values
    except (ArithmeticError, TypeError, ValueError):
        return values


def _refilled(groups: Any, values: Any) -> Any:
    if not isinstance(groups, np.ndarray):
        # Categories of pandas are those that occur; it is about to refuse others.
        dtype = "category" if str(groups.dtype) == "category" else groups.dtype
        return type(groups)(values, dtype=dtype)
    if groups.dtype.kind in "US":
        return np.array(values, dtype=groups.dtype.type)  # as wide as it takes
    full = np.empty(len(values), dtype=groups.dtype)
    for place, value in enumerate(values):
        full[place] = value
    return full


def _alike(values: Any, k: int) -> list[Any]:
    """Ids of the kind of the first of those there are."""
    first = values[0] if values else 0
    if isinstance(first, (bool, np.bool_)):
        return [bool(k % 2)]
    if isinstance(first, (np.datetime64, np.timedelta64)):
        return [first + k]
    if isinstance(first, Integral):
        return [k]
    if isinstance(first, Real):
        return [k + 0.5]
    if isinstance(first, bytes):
        return [first + b"%d" % k]
    if isinstance(first, str):
        return [first + str(k)]
    if isinstance(first, date):
        return [first.replace(year=1900 + k)]
    return []


def _of_any_kind(k: int) -> tuple[Any, ...]:
    """Ids that make trouble for whoever converts, sorts or prints them."""
    return (
        0.5 + k,
        -1 - k,
        2**53 + 1 + k,
        2**63 + k,
        2**70 + k,
        f"unit {k}",
        str(k),
        b"unit",
        ("unit", k),
        frozenset({k, "unit"}),
        date(1900 + k % 100, 1, 1),
    )
