"""Points that are compared with each other, and the average of a friendly core of them.

A few thousand points at most come together at the place of the fit (:class:`PointPairs`). Released
are how many pairs are farther apart than public radii, and the average of those that a filter
keeps.
"""

import math
from typing import NamedTuple

import numpy as np

from .._privacy._sealed import Claim, Sealed, exact_of
from .._privacy._session import PrivacySession
from .._privacy._units import UnitFacts
from .._rows.table import Part
from ._query import Facts, PointQuery
from .averages import (
    Average,
    core_add_remove,
    core_basic,
    friend_counts,
    friendly_average,
    non_friend_pairs,
)
from .samples import ByPart, Coins

_PAIR_BITS = 20


class Compared(NamedTuple):
    """The points; unreleased."""

    points: np.ndarray  # (m, d)
    numbers: np.ndarray | None  # (m,), which of all points they are; None: all of them
    weights: np.ndarray | None  # (m,), in steps, of which a unit has ...
    scale: int  # ... so many at most


class PointPairs(PointQuery):
    """For each of increasing radii (n,), the number of ordered pairs of points that are farther
    apart, over the number of points; and these points, for the functions below alone."""

    radii: np.ndarray
    coins: Coins | None = None

    class Answer(NamedTuple):
        far: Sealed
        compared: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, units, number = part.source.read(), part.units, part.source.number
        if self.coins is None:
            return part, (ByPart({number: Compared(X[:], None, units.weights, units.scale)}),)
        places = np.flatnonzero(self.coins.mask(part))
        weights = None if units.weights is None else units.weights[places]
        points = Compared(X[places], self.coins.first(part) + places, weights, units.scale)
        return part, (ByPart({number: points}),)

    def exact(self, sums: tuple) -> tuple:
        points, numbers, weights, scales = zip(*sums[0].in_order(), strict=True)
        compared = Compared(
            np.concatenate(points),
            None if self.coins is None else np.concatenate(numbers),
            None if any(each is None for each in weights) else np.concatenate(weights),
            scales[0],
        )
        n, far = max(1, len(compared.points)), np.zeros(len(self.radii), dtype=object)
        if len(far):
            pairs = non_friend_pairs(compared.points, self.radii)
            far[:] = [(int(each) << _PAIR_BITS) // n for each in pairs]
        return far, compared

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """u = pairs / n moves by less than 2 when a point is added, removed or replaced. With P
        pairs among the n - 1 common points and q beyond the radius of the other one,
        u - u' = 2 q / n - P / (n (n - 1)), in (-1, 2). In steps of 2^-20; rounding down adds less
        than one. In a sample a point is there or not."""
        most, n = 2.0 ** (_PAIR_BITS + 1) + 1, len(self.radii)
        far = Claim.of_entries(most, n)
        return Claim(far.l2, 2.0**-_PAIR_BITS, most=most), Claim(math.inf)


class Share(NamedTuple):
    """The budget that pays for a release."""

    entry: str
    rho: float | None = None  # None: all that the entry has left
    delta: float = 0.0

    def left(self, session: PrivacySession) -> float:
        """The rho."""
        return session.remaining(self.entry) if self.rho is None else self.rho


def average_of_core(
    session: PrivacySession,
    compared: Sealed,
    radius: float,
    *,
    number: Share,
    core: Share,
    size: Share,
    mean: Share,
    weighted: bool = False,
) -> Average | None:
    """The average of those points that are within the released `radius` of most others, by the zCDP
    filter, or None if there seem to be too few. Released are the number of points, a lower bound of
    the size of the core, and its average, `weighted` or not."""
    exact = exact_of(compared)
    rho = number.left(session)
    # Adding a point changes the number of those in the sample by one or not at all.
    n = Sealed(len(exact.points), Claim(1.0), compared.units, "PointPairs")
    noisy = session.release(number.entry, n, rho=rho)
    keep = core_add_remove(
        session,
        core.entry,
        friend_counts(exact.points, radius),
        float(noisy),
        1 / math.sqrt(2 * rho),
        rho=core.left(session),
        delta=core.delta,
        units=exact.numbers,
    )
    return _average(session, exact, compared.units, keep, radius, size, mean, weighted)


def average_of_basic_core(
    session: PrivacySession,
    compared: Sealed,
    radius: float,
    *,
    core: Share,
    size: Share,
    mean: Share,
) -> Average | None:
    """The average of the core of the basic filter, which draws no noise. Its cost with the average
    is that of :func:`.averages.basic_average_budget`."""
    exact = exact_of(compared)
    friends, rho = friend_counts(exact.points, radius), core.left(session)
    keep = core_basic(session, core.entry, friends, rho=rho, delta=core.delta, units=exact.numbers)
    return _average(session, exact, compared.units, keep, radius, size, mean, False)


def _average(
    session: PrivacySession,
    compared: Compared,
    units: UnitFacts,
    keep: np.ndarray,
    radius: float,
    size: Share,
    mean: Share,
    weighted: bool,
) -> Average | None:
    """Average the points that a filter has kept, of which any two have a friend in common."""
    weights = compared.weights[keep] if weighted and compared.weights is not None else None
    return friendly_average(
        session,
        size.entry,
        mean.entry,
        compared.points[keep],
        radius,
        rho_size=size.left(session),
        rho_mean=mean.left(session),
        delta=size.delta,
        weights=weights,
        scale=1 if weights is None else compared.scale,
        units=units,
    )
