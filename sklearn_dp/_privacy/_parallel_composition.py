"""Releases that look at disjoint sets of units: each unit pays for those that look at it.

A part is a path of labels, like ("second half", "inside"). Parts with different labels below the
same one look at disjoint sets of units; which unit is where is decided by earlier releases, by
the unit itself and by its own random bits. So adding or removing a unit changes what is released
about one chain of parts, each in the other, and a fit costs the maximum over all chains (parallel
composition).

The reason: given the releases so far, the next one has a divergence of zero if the unit is
outside of its part, and of at most its cost otherwise, and which of the two holds is known
before it is made. The charges along each chain that a unit could follow, whether there are any
such units or not, sum to at most the plan's total: that is fully adaptive composition [1]_.

References
----------
.. [1] V. Feldman and T. Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ._rounding import exact_sum


def maximum_cost(charges: Iterable[tuple[tuple[Any, ...], float]]) -> Fraction:
    """Exact largest sum of charges, (part, cost), along a chain of parts. A part is a tuple of
    labels; () is all the units."""
    charges = list(charges)
    return max(
        (
            exact_sum(cost for part, cost in charges if leaf[: len(part)] == part)
            for leaf in {part for part, _ in charges}
        ),
        default=Fraction(0),
    )
