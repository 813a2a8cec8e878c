"""Averages of rows of unknown location, any two of which are near each other.

Their sums are integers on a public grid, so that parts of a table can add them up. The noise of the
average is in proportion to the distance of two rows over a number that is below theirs but for a
probability delta, and that is released first: that is why the two releases are made here, where the
exact numbers are.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._privacy._grid import sum_type
from .._privacy._rounding import exact_integers, round_up
from .._privacy._sealed import Claim, Sealed, exact_of
from .._privacy._session import PrivacySession
from .._rows.rows import ROWS
from .._rows.table import Part
from ._query import Facts, PointQuery, check_points
from .balls import squared_distances

__all__ = [
    "ROUNDING", "Members", "average_lattice", "average_of_members", "core_size", "rounded_mean",
]  # fmt: skip

ROUNDING = 1e-9
"""A friend is at most (1 + this) times the radius away."""
_SPAN_BITS = 22  # rows are rounded to radius / 2**22
_FINE_BITS = 16  # the average is rounded to about 2**-16 of its sensitivity


def core_size(
    session: PrivacySession, entry: str, m: int, *, rho: float, delta: float, scale: int = 1
) -> float:
    """A released number, maybe negative, that is at most m - 1 but for a probability of `delta`.

    `m` is the true number, or the weight in steps, of which an element has `scale` at the most. The
    entry pays `rho`; the caller is charged delta.
    """
    sd = 1 / math.sqrt(2 * rho)
    # One element changes the number by one, and the weight by `scale` steps at the most.
    noisy = session.gaussian(entry, m, sensitivity=float(scale), unit=1.0 / scale, rho=rho)
    # size <= m - 1 unless round(sd Z) exceeds the shift: Z sd > shift - 1/2.
    return float(noisy) - 1.5 - round_up(-sd * float(ndtri(delta)))


def average_unit(radius: float) -> float:
    """The step that rows are rounded to: a power of two of at most radius / 2**22."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - _SPAN_BITS)


def average_lattice(p: int, radius: float, size: float) -> tuple[float, int, float]:
    """The step of the rows (p,), how many bits finer their average is, and its sensitivity there.
    Any two rows are within 2 `radius`; `size` is at most their number minus one, and at least 1."""
    unit = average_unit(radius)
    fine = max(0, math.ceil(math.log2(size * unit * math.sqrt(p) / radius)) + _FINE_BITS)
    # Rounding moves a row by at most sqrt(p)/2 steps, so two rows are within
    # (2 radius / unit)(1 + 1e-9) + sqrt(p) steps; 2**fine / size of that is the change of the
    # exact average; rounding it changes each of p coordinates of the difference by at most 1.
    span = 2 * radius / unit * (1 + ROUNDING) + math.sqrt(p)
    return unit, fine, round_up(span * 2.0**fine / size + math.sqrt(p))


def rounded_mean(total: Any, mass: int, fine: int) -> Any:
    """round(2**fine total / mass), in Python integers; 0 of nothing."""
    return (total * 2 ** (fine + 1) + mass) // (2 * max(mass, 1))


class Members(PointQuery):
    """The points `among` some in a ball: how many, and their sum in steps of a public unit, which
    can be released as an average only."""

    center: np.ndarray
    radius: float
    limit: float  # of the length of a row
    among: str

    class Answer(NamedTuple):
        number: Sealed
        total: Sealed

    def _check(self) -> None:
        check_points(self.center[None])

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
    """A noisy average of the members, of which any two are within two radii, or None.

    As in a friendly average: a row more or less moves the exact one by at most 2 radius over the
    released size, which is below their number but for the delta of its entry. All that the entries
    have left is spent.
    """
    number, total = (exact_of(each) for each in answer)
    rho, delta = session.remaining(size_entry), session.plan[size_entry].delta
    size = core_size(session, size_entry, number, rho=rho, delta=delta)
    if size < 1:
        return None
    unit, fine, sensitivity = average_lattice(len(total), members.nearest, size)
    value = rounded_mean(total.astype(object), number, fine)
    unit = math.ldexp(unit, -fine)
    return session.gaussian(mean_entry, value, sensitivity=sensitivity, unit=unit)
