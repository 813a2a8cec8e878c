"""Averages of the members of a released ball, any two of which are within two of its radii."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._privacy._grid import sum_type
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim, Sealed, exact_of
from .._privacy._session import PrivacySession
from .._rows.table import ROWS, Part
from ._query import Facts, IntegerPoints, PointQuery
from .averages import average_lattice, average_unit, core_size, rounded_mean
from .balls import squared_distances


class Members(PointQuery):
    """The points `among` some in a ball: how many, and their sum in steps of a public unit, which
    can be released as an average only."""

    center: IntegerPoints
    radius: float
    limit: float  # of the length of a row
    among: str

    class Answer(NamedTuple):
        number: Sealed
        total: Sealed

    @property
    def nearest(self) -> float:
        """Half of what any two members are apart, at most."""
        return min(self.radius, self.limit)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        square = math.floor(self.radius**2)
        near = part[self.among] & (squared_distances(rows, self.center) <= square)
        # A row has at most 2**24 steps of the grid, and these are at least 2**-24 of one: integers
        # of at most 2**48, at most 2**16 of them in a chunk.
        total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 48))
        for place, x in rows.chunks():
            steps = np.rint(x[near[place]] * (1 / average_unit(self.nearest)))
            total += exact_integers(steps).sum(axis=0)
        return part, (int(np.count_nonzero(near)), total)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point more or less, or another one, moves the number by at most one."""
        return Claim(1.0), Claim(math.inf)


def average_of_members(
    session: PrivacySession, size_entry: str, mean_entry: str, members: Members, answer: Any
) -> np.ndarray | None:
    """A noisy average of the members, of which any two are within two radii, or None, for all that
    the entries have left. A row more or less moves the exact one by at most 2 radius over the
    released size, which is below their number but for the delta of its entry."""
    number, total = (exact_of(each) for each in answer)
    rho, delta = session.remaining(size_entry), session.plan[size_entry].delta
    size = core_size(session, size_entry, number, answer.number.units, rho=rho, delta=delta)
    if size < 1:
        return None
    unit, fine, sensitivity = average_lattice(len(total), members.nearest, size)
    value = rounded_mean(total.astype(object), number, fine)
    claim = Claim(sensitivity, math.ldexp(unit, -fine))
    return session.release(mean_entry, Sealed(value, claim, answer.number.units, "Average"))
