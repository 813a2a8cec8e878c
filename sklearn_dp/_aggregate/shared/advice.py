"""Statuses of answers that are too noisy, with the remedy in words and numbers.

A standard error falls about in proportion to the number of units, and to epsilon, as long as the
noise is most of it. All of it is made of released values.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..._privacy._domain import Domain
from ..._status import Message, Status, in_short

_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_ENOUGH = 0.2  # the part that a remedy leads to
_KNOWN = 5.0  # standard deviations of its noise that a number of units is told by

CLIPPED = "a few rows far outside of the ranges that were found may have been clipped"
"""The note of a fit that has found ranges of columns."""

_NARROW = 0.15  # of the bounds: a radius below is a fact of the rows, which says nothing of others
_PART = 0.25  # of the units, outside of a released radius: a few of them leave the answer as it is
_MANY = 1e9  # above it, people no longer write all digits
_MOST_TIMES = 1000.0  # what is asked for at most: more would be no advice


class Budget(Protocol):
    """The parameter at which noise is so many times smaller, or "" where that would protect hardly
    anybody, and what is protected: `PrivacySession.budget_for`."""

    units: str

    def __call__(self, times: float, /) -> str: ...


def advice(
    times: float, budget: Budget, size: float | None = None, *other: str, units: str = ""
) -> str:
    """So many times the units (of `size`, which is all of them), as much more budget, or what
    `other` says: what to do. Only the latter where more than a thousand times is needed,
    or what is needed is not known; without a size that is known well, it is more than is known."""
    ways = list(other)
    if times < _MOST_TIMES:
        times = max(times, 1.1)  # "about 1 times as many" would be no advice
        number = "" if size is None else f" ({plain(times * size)} in all)"
        least = "at least " if size is None else "about "
        rows = f"{least}{plain(times)} times as many {units or budget.units}{number}"
        ways = list(filter(None, [rows, budget(times), *ways]))
    return f"use {either(ways)}" if ways else ""


def is_known(size: float, sd: float) -> bool:
    """True if a noisy number of units stands out of its noise by so much that it may be told."""
    return size > _KNOWN * sd


def either(ways: Sequence[str]) -> str:
    """One of several, in a sentence.

    >>> either(["a"]), either(["a", "b"]), either(["a", "b", "c"])
    ('a', 'a or b', 'a, b or c')
    """
    return " or ".join([*([", ".join(ways[:-1])] if len(ways) > 1 else []), ways[-1]])


def hidden_in_noise(
    what: str,
    error: float,
    spread: float,
    budget: Budget,
    size: float,
    least: float,
    power: float = 1.0,
    units: str = "",
    total: float | None = None,
    columns: Sequence[object] = (),
) -> Status:
    """The status of an answer whose standard error is about as large as what it is to tell.

    It is empty where the error is less than half of the spread of `what`, both released. `size` is
    the number of units that the error was divided by, `least` what there is at least, by its noise;
    `total` of all units, where these are a part of them; `columns` those that alone are hidden.
    `power`: an error of several spreads falls with this root of the number of units: less than one
    where clips follow the noise of earlier steps.
    """
    part, total = error / spread if spread > 0 else math.inf, size if total is None else total
    units = units or budget.units
    if not least > 0:
        text = f"too few {units} for this budget: even their number is mostly noise"
        # Error times size does not depend on the size as long as it is noise. What an error was
        # divided by is no less than two standard deviations of the noise of a number.
        times, number = max(part, 1.0) / _ENOUGH, max(total, size - least)
        more = f"use about {plain(times * number)} {units}" if times < _MOST_TIMES else ""
        return Status([Message("few_rows", text, action=more, severity="all")])
    if not part > _HIDDEN:
        return Status()
    words = f"about {100 * part:.0f}% of" if part < 10 else "many times"
    text = f"mostly noise: the standard error is {words} the spread of {what}"
    more = advice(
        min(part, part**power) / _ENOUGH,
        budget,
        total if is_known(size, (size - least) / 2) else None,
        units=units,
    )
    names = tuple(map(str, columns))
    return Status([Message("mostly_noise", text, names, more, "part" if names else "all")])


def listed(names: Sequence[object], places: Sequence[int] | np.ndarray) -> str:
    """The names at some places, in a sentence.

    >>> listed(["age", "pay", "hours"], [0, 2])
    'age, hours'
    """
    return in_short([names[place] for place in places])


def plain(number: float, digits: int = 2) -> str:
    """A number in a sentence, as people write it; more digits are seldom known.

    >>> plain(1234.5), plain(0.256), plain(100.4), plain(1234.5, 3), plain(7.2e11)
    ('1,200', '0.26', '100', '1,230', '7.2e+11')
    """
    rounded = f"{number:.{digits}g}"
    return f"{float(rounded):,.12g}" if abs(number) < _MANY else rounded


def is_far_inside(domain: Domain, radius: float, scale: Any) -> bool:
    """True if a released radius, of columns in units (d,), is far narrower than the bounds."""
    half = domain.radius if domain.low is None else np.subtract(*domain.ends[::-1]) / 2
    reach = np.max(half / scale) if domain.low is None else np.linalg.norm(half / scale)
    return bool(radius < _NARROW * reach)


def outside(most: float, size: float, unit: str, name: str, action: str) -> Message:
    """Return a message about units outside of a released radius: up to `most` units, of
    `upper_bound_outside`, which are fewer than the noise. `name` is the attribute that holds the
    radius. Where they may be a quarter of all (`size`), the answer may be that of the others
    alone."""
    return Message(
        "outside_bound",
        f"up to {math.ceil(most):,} {unit}s (95% confidence) may lie outside of {name} and were "
        "clipped",
        action=action,
        severity="note" if most <= _PART * size else "caution",
    )
