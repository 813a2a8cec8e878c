"""Disjoint sets of units: each unit pays for the releases that look at it.

*Between fits.* A key ("region") lists its values ("north", "south"), and each unit lies in at most
one of them. A charge to a value is paid by the units of that value alone, so a unit pays what is
common, and what is charged to one value of each key. `ledger_terms` has the proof.

Names are plain text: what prints nothing (line breaks, characters of no width, halves of surrogate
pairs) is refused, and so are two values that only look different in memory ("é" in one character
and in two). Nothing is normalized: a value is found by its own characters only.

*Inside a fit.* A part is a path of labels, like ("second half", "inside"). Parts with different
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

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..exceptions import LedgerError
from .checks import plain_text
from .rounding import exact_sum

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
