"""What neighboring data sets differ in: the unit, and what they do with it.

A guarantee is about one unit and one relation; guarantees about others do not add up with it. Of
"add or remove" and "replace" neither implies the other at the same cost: two neighbors of the
second kind are two steps of the first apart, and of the first they have different sizes.

"add or remove" is what nearly all fits protect: the number of rows is then as private as the rows.
"replace" is for blocks and tuples of a public number. "... the rows of" is for clients that are
known to take part: the neighbor's client stays, with no rows or with others.
"""

from __future__ import annotations

from ._checks import check_choice

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
