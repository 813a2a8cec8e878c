"""Numbers that budgets and plans are made of: what is accepted, how it is rounded, how it adds up.

*What is accepted.* Python and NumPy count truth values and lengths of time among the numbers, and
an array of one element passes for one; a budget of ``True`` or of three seconds is a mistake. Every
check raises a TypeError for what is no number and a ValueError for one out of range, and both name
the parameter. The values of parameters are public, so messages may quote them; those of data never
come here.

*Words* for units, relations, warnings and missing libraries stand here as well. A guarantee is
about one unit and one relation; guarantees about others do not add up with it. Of "add or remove"
and "replace" neither implies the other at the same cost: two neighbors of the second kind are two
steps of the first apart, and of the first they have different sizes.

"add or remove" is what nearly all fits protect: the number of rows is then as private as the rows.
"replace" is for blocks and tuples of a public number. "... the rows of" is for clients that are
known to take part: the neighbor's client stays, with no rows or with others.

*Rounding to the safe side.* A float in a proof is at least (or at most) the real number it stands
for.

* a number that is known as a fraction: `float_up`, `float_down`;
* floats that are added and compared exactly, again and again: `in_steps`, `steps_up`, `steps_down`;
* a sum of floats: `sum_up`, `sum_down` (the same, of the exact sum);
* the result of one or two operations: `round_up`, `round_down`, also for arrays;
* the result of a formula without cancellation: `formula_up`, `formula_down`;
* the result of a root search: `move_until`, with a test that is safe by itself;
* a sensitivity that a caller states: `floats_up`.

*Disjoint sets of units*: each unit pays for the releases that look at it.

Between fits: a key ("region") lists its values ("north", "south"), and each unit lies in at most
one of them. A charge to a value is paid by the units of that value alone, so a unit pays what is
common, and what is charged to one value of each key. `ledger_terms` has the proof.

Names are plain text: what prints nothing (line breaks, characters of no width, halves of surrogate
pairs) is refused, and so are two values that only look different in memory ("é" in one character
and in two). Nothing is normalized: a value is found by its own characters only.

Inside a fit: a part is a path of labels, like ("second half", "inside"). Parts with different
labels below the same one look at disjoint sets of units; which unit is where is decided by earlier
releases, by the unit itself and by its own random bits. So adding or removing a unit changes what
is released about one chain of parts, each in the other, and a fit costs the maximum over all chains
(parallel composition).

The reason: given the releases so far, the next one has a divergence of zero if the unit is
outside of its part, and of at most its cost otherwise, and which of the two holds is known
before it is made. The charges along each chain that a unit could follow, whether there are any
such units or not, sum to at most the plan's total: that is fully adaptive composition [1]_.

References
----------
.. [1] V. Feldman and T. Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021.
"""

from __future__ import annotations

import math
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

from ..exceptions import LedgerError

#: Subnormal floats carry no relative precision and their reciprocals overflow.
SMALLEST_DELTA = sys.float_info.min

# Numbers to Python, and truth values or lengths of time to everybody else.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)


# -- what is accepted ------------------------------------------------------------------------------


def is_real(value: Any) -> TypeGuard[Real]:
    """True if this is a real number, an infinite one or a NaN among them.

    >>> [is_real(value) for value in (1, 0.5, np.float32(2), math.nan, True, "1", 1j)]
    [True, True, True, True, False, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, _NO_NUMBERS)


def is_integer(value: Any) -> TypeGuard[int]:
    """True if this is a number of an integer type.

    >>> [is_integer(value) for value in (1, np.int8(1), 1.0, True)]
    [True, True, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, _NO_NUMBERS)


def real_array(values: Any) -> np.ndarray:
    """Numbers as an array of float64; a TypeError for complex ones, dates and texts."""
    array = np.asarray(values)
    texts = array.dtype == object and any(isinstance(each, str | bytes) for each in array.flat)
    if array.dtype.kind not in "biufO" or texts:
        raise TypeError("complex numbers, dates and texts are not real numbers")
    return np.asarray(array, dtype=np.float64)


def plain_text(name: str, text: object) -> str:
    """The characters of a text, also of NumPy's classes and of an Enum."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {type(text).__name__}")
    return str.__str__(text)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless the parameter `name` is one of some words."""
    # Some objects compare with words and give no truth value, as arrays do.
    if not isinstance(value, str) or value not in choices:
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {given}")


def check_number(name: str, value: object) -> float:
    """``value`` as a finite float, or an error that names the parameter."""
    if not is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {result}")
    return result


def check_positive(name: str, value: object) -> float:
    """Return a finite float above zero."""
    result = check_number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be positive, got {result}")
    return result


def check_non_negative(name: str, value: object) -> float:
    """Return a finite float of at least zero."""
    result = check_number(name, value)
    if result < 0:
        raise ValueError(f"{name} must not be negative, got {result}")
    return result + 0.0  # no negative zero


def check_delta(name: str, value: object, *, zero: bool = False) -> float:
    """A float in (0, 1), or in [0, 1) if ``zero``. Positive ones are at least `SMALLEST_DELTA`:
    with a subnormal delta no conversion would be safe."""
    result = check_non_negative(name, value)
    if result >= 1 or not (result >= SMALLEST_DELTA or (result == 0 and zero)):
        least = "0 or more" if zero else "above 0"
        tiny = f" (and no smaller than {SMALLEST_DELTA:.1e})" if 0 < result < SMALLEST_DELTA else ""
        raise ValueError(f"{name} must be {least} and below 1{tiny}, got {result}")
    return result


UNITS = ("row", "group")

# The last two: the units are clients that take part, and add noise, whatever rows they hold.
RELATIONS = ("add or remove", "replace", "add or remove the rows of", "replace the rows of")


def check_unit(unit: object) -> None:
    """Raise unless this is a unit."""
    check_choice("unit", unit, UNITS)


def check_relation(relation: object) -> None:
    """Raise unless this is a relation."""
    check_choice("relation", relation, RELATIONS)


def in_words(relation: str, unit: str) -> str:
    """Describe how neighbors differ, for reports and errors."""
    return f"{relation} one {unit}"


def is_part_of(inner: str, outer: str) -> bool:
    """True if a fit of a table for one relation may be part of a fit for another.

    A fit of a table covers adding and removing a unit whatever else it is asked to cover: where it
    covers replacing one too, by more noise, and a client that stays has no rows in the table.

    >>> is_part_of("replace", "add or remove"), is_part_of("add or remove", "replace")
    (True, False)
    """
    return inner == outer or outer == "add or remove"


def condition_in_words(relation: str, unit: str) -> str:
    """When a guarantee holds, to follow it.

    >>> condition_in_words("add or remove the rows of", "group")
    'when the rows of one group are added or removed'
    """
    what = f"the rows of one {unit} are" if relation.endswith("the rows of") else f"one {unit} is"
    return f"when {what} {'added or removed' if relation.startswith('add') else 'replaced'}"


# Frames of these are between a user's line and a warning: this package, and what calls it for a
# user, as pipelines, searches, decorators and threads do.
_BETWEEN = {
    *("sklearn_dp", "sklearn", "numpy", "scipy", "pandas", "joblib", "threadpoolctl"),
    *("dask", "distributed", "pyspark", "ray"),
    *("contextlib", "functools", "threading", "concurrent", "copy", "pickle", "dataclasses"),
}


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the innermost line that is not of a library on the way, or at the outermost one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def _is_between(module: object) -> bool:
    """True if code of a module of such a name stands between."""
    return isinstance(module, str) and module.partition(".")[0] in _BETWEEN


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A block of imports: what is missing is named, with the extra of this package to install.

    >>> with extra("plot"):
    ...     import no_such_library
    Traceback (most recent call last):
    ImportError: no_such_library is not installed: pip install "sklearn-dp[plot]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise ImportError(
            f'{missing} is not installed: pip install "sklearn-dp[{name}]"', name=missing
        ) from error


# -- rounding to the safe side ---------------------------------------------------------------------


#: Bound of the relative rounding error of a formula with at most a dozen elementary operations.
ROUNDING = 16 * sys.float_info.epsilon

_ONE = 2**1074  # in steps: every float is a multiple of 2**-1074


def float_up(value: Fraction) -> float:
    """Smallest float that is at least ``value``."""
    # float() of a fraction is correctly rounded, so one step up is the next float above.
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Largest float that is at most ``value``."""
    return -float_up(-value)


def in_steps(value: float | Fraction) -> int:
    """A float as an integer, in steps of 2**-1074: exact, as all floats are multiples of that.

    Integers are added and compared ten times as fast as fractions."""
    numerator, denominator = value.as_integer_ratio()
    factor, rest = divmod(_ONE, denominator)
    if rest:  # a fraction: rounded down, a cost could become nothing
        raise TypeError("a cost must be a float.")
    return numerator * factor


def steps_up(steps: int) -> float:
    """Smallest float that is at least some steps of `in_steps`."""
    nearest = steps / _ONE  # a quotient of integers is correctly rounded
    return nearest if in_steps(nearest) >= steps else math.nextafter(nearest, math.inf)


def steps_down(steps: int) -> float:
    """Largest float that is at most some steps of `in_steps`."""
    return -steps_up(-steps)


def exact_sum(values: Iterable[float]) -> Fraction:
    """The sum of some floats."""
    return Fraction(sum(map(in_steps, values)), _ONE)


def sum_up(values: Iterable[float]) -> float:
    """Smallest float that is at least the exact sum."""
    # fsum is correctly rounded, so the sign of what is left over after subtracting it is right.
    values = list(values)
    nearest = math.fsum(values)
    if math.isinf(nearest):
        return nearest
    above = math.fsum([*values, -nearest]) > 0
    return math.nextafter(nearest, math.inf) if above else nearest


def sum_down(values: Iterable[float]) -> float:
    """Largest float that is at most the exact sum."""
    return -sum_up([-value for value in values])


def formula_up(value: float) -> float:
    """A float above what a formula of at most a dozen elementary operations stands for.

    Each operation is off by a relative 2^-53 (a library function by a few times that), so a dozen
    of products, quotients, roots and sums of positive terms are off by less than `ROUNDING`. A
    difference that cancels is no such formula.

    >>> formula_up(1.0) > 1.0 > formula_down(1.0)
    True
    """
    return math.nextafter(value * (1 + ROUNDING), math.inf)


def formula_down(value: float) -> float:
    """A float below what a formula stands for; see `formula_up`. For values of at least 0."""
    return math.nextafter(value * (1 - ROUNDING), -math.inf)


def move_until(value: float, direction: int, safe: Callable[[float], bool]) -> float:
    """Move a number outward, in doubling steps from about 1e-14, until `safe` holds, which must be
    right everywhere. `direction`, 1 or -1, is the safe one; `value` is what a root search has
    found, close to right, on either side."""
    step = 1e-14 * max(abs(value), 1.0 if direction > 0 else 0.0)
    moved = value
    while not safe(moved):
        moved = value + direction * step
        step *= 2
    return moved


def round_up(value: Any) -> Any:
    """Floats no smaller than the real numbers that `value` is the rounding of. Two places further:
    enough for up to two operations, each off by half a place."""
    if isinstance(value, float):
        return math.nextafter(math.nextafter(value, math.inf), math.inf)
    moved = np.nextafter(np.nextafter(np.asarray(value, dtype=np.float64), np.inf), np.inf)
    return moved if moved.ndim else float(moved)


def round_down(value: Any) -> Any:
    """Floats no larger than the real numbers that `value` is the rounding of; see `round_up`."""
    moved = round_up(-np.asarray(value, dtype=np.float64))
    return -moved


def floats_up(values: Any) -> Any:
    """The smallest floats that are no smaller than some numbers, Python integers of any size."""
    if isinstance(values, float):
        return float(values)
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError("a sensitivity must be a real number.")
    if array.dtype.kind == "f" and isinstance(values, list | tuple):
        # NumPy makes floats of lists of integers between 2**63 and 2**64: the nearest ones.
        array = np.asarray(values, dtype=object)
    large = array.dtype.kind in "iu" and np.any((array > 2**53) | (array < -(2**53)))
    # Extended precision and integers beyond 2**53 would be rounded to the nearest by a cast.
    if array.dtype.kind == "O" or array.dtype.itemsize > 8 or large:
        floats = [
            value
            if isinstance(value, float | np.float32 | np.float16)
            else float_up(Fraction(int(value) if isinstance(value, np.integer) else value))
            for value in array.ravel().tolist()
        ]
        array = np.array(floats, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64, copy=False) if array.ndim else float(array)


# -- disjoint sets of units ------------------------------------------------------------------------


Payers = tuple[str, str]
"""The units of one value of a key: (key, value)."""

EVERYONE: Payers = ("", "")
"""All units, of whatever values."""

Line = tuple[str, str, float, float]
"""A charge in a ledger: the units that pay it, and the two costs that the ledger counts."""


def payers_in_words(payers: Payers) -> str:
    """Which units, for people; nothing for all of them.

    >>> payers_in_words(("region", "north"))
    "region = 'north'"
    """
    return "" if payers == EVERYONE else f"{payers[0]} = {payers[1]!r}"


def dearest(lines: Iterable[Line], payers: Payers = EVERYONE) -> tuple[list[float], list[float]]:
    """Return the costs of the unit that pays most, of all units or of those of a value.

    Each cost by itself is the exact largest sum over all combinations of values: what is common,
    and of each key the dearest value, as a unit may have any value of one key whatever it has of
    another. The two lists may be of different units."""
    paid: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for key, value, *costs in lines:
        columns = paid.setdefault(key, {}).setdefault(value, ([], []))
        for column, cost in zip(columns, costs, strict=True):
            column.append(cost)
    most: tuple[list[float], list[float]] = ([], [])
    for key, values in paid.items():
        several = [values.get(payers[1], ([], []))] if key == payers[0] else list(values.values())
        for i, column in enumerate(most):
            sums = [each[i] for each in several]
            column += sums[0] if len(sums) == 1 else max(sums, key=exact_sum)
    return most


def agreed_values(
    listed: Mapping[str, tuple[str, ...]], key: object, values: Iterable[str] | None, relation: str
) -> tuple[str, tuple[str, ...]]:
    """A key and its values, as the ledger has listed them, or new ones if it has none; a
    LedgerError for other keys and values, and for neighbors that may move a unit from one value to
    another."""
    key = check_name("key", key)
    new = None if values is None else _check_values(values)
    old = listed.get(key)
    if old is not None:
        if new is not None and set(new) != set(old):
            raise LedgerError(
                f"ledger: the values of {key!r} were listed once and are fixed. A unit may have "
                "been charged by the old list: use another key, and only for other units."
            )
        return key, old
    if new is None:
        raise LedgerError(
            f"ledger has no key {key!r}. List its public values once, before any row is read: "
            f"ledger.disjoint({key!r}, values=[...])"
        )
    if relation != "add or remove":
        raise LedgerError(
            f"ledger has relation={relation!r}: a replaced unit may move from one value to "
            "another, or is known to take part. Disjoint charges need a ledger with "
            "relation='add or remove'."
        )
    return key, new


def check_name(what: str, name: object) -> str:
    """A name of a key, of a value or of a day."""
    name = plain_text(what, name)
    if not name.strip() or not name.isprintable():
        raise ValueError(f"{what} must be printable text")
    return name


def _check_values(values: Iterable[str]) -> tuple[str, ...]:
    try:
        listed = None if isinstance(values, (str, bytes)) else [*values]
    except TypeError:
        listed = None
    if listed is None:
        raise TypeError("values must be a list of str")
    if not listed:
        raise ValueError("values must not be empty")
    checked = tuple(check_name("each of values", value) for value in listed)
    if len({unicodedata.normalize("NFKC", value) for value in checked}) < len(checked):
        raise ValueError("values must differ, and look different")
    return checked


def check_payers(key: object, value: object) -> Payers:
    """The units of a charge; both names are empty for all units."""
    if (plain_text("key", key), plain_text("value", value)) == EVERYONE:
        return EVERYONE
    return check_name("key", key), check_name("value", value)


def check_one_value(several: Sequence[tuple[object, Payers]]) -> None:
    """Refuse fits that see the same rows and are charged to two values of a key: no unit lies in
    both, so one of the two would be paid by nobody whose rows it reads."""
    names: dict[object, str] = {}
    for ledger, (key, value) in several:
        if key and names.setdefault((ledger, key), value) != value:
            raise LedgerError(
                f"ledger: steps of one fit read the same rows, but they are charged to two values "
                f"of {key!r}. Give all steps the ledger of one value, or the whole ledger."
            )


def maximum_cost(charges: Iterable[tuple[tuple[Any, ...], float]]) -> Fraction:
    """Exact largest sum of charges, (part, cost), along a chain of parts (tuples of labels)."""
    charges = list(charges)
    return max(
        (
            exact_sum(cost for part, cost in charges if leaf[: len(part)] == part)
            for leaf in {part for part, _ in charges}
        ),
        default=Fraction(0),
    )
