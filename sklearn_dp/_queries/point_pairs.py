"""Questions about points that are compared in pairs, and about the points in a ball.

A few thousand points at most come together at the place of the fit (:class:`PointPairs`). Released
are how many pairs are farther apart than public radii, and the average of those that a filter
keeps.

In a ball, released are sums of the points and of their powers, and how many there are. Points
beyond are left out, the others clipped to a smaller norm, to the step.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._grid import clip_integer_rows, sum_type
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Sealed, UnitFacts, exact_of
from .._rows.table import ROWS, Part
from ._query import Facts, PointQuery, Query
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


# -- pairs -----------------------------------------------------------------------------------------


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


# -- points in a ball ------------------------------------------------------------------------------


_UP = 1 + 1e-12
_FINE = 2.0**-15  # what coarse squares are rounded by before they are squared


class BallMoments(Query):
    """One vector: the sum (d,) of the rows in a `ball`, clipped; their number; and sums (d,) of
    squares, and of fourth powers, over those of the clip. A row counts by its weight."""

    ball: float  # in steps, as the clip
    clip: float
    weight: float  # part of the claim for the number, in squared sensitivity ...
    powers: tuple[float, ...] = ()  # ... for squares, and for fourth powers

    @property
    def sum_limit(self) -> float:
        """The claim of a sum, in steps."""
        return self.clip / math.sqrt(1 - self.weight - sum(self.powers)) * _UP

    @property
    def number_limit(self) -> float:
        """And that of the number, in units."""
        return _UP / math.sqrt(self.weight)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, units, d = part[ROWS], part.units, part[ROWS].n_features
        n_powers = max(len(self.powers), 1)
        total = np.zeros(d, dtype=sum_type(rows.n_rows, 24))
        powers, inside = np.zeros(n_powers * d, dtype=sum_type(rows.n_rows, 31)), 0
        for place, x, squares in rows.squared_chunks():
            near = np.flatnonzero(squares <= self.ball**2)
            number, share = len(near), None
            if units.weights is not None:
                weights = units.weights[place][near]
                number, share = int(weights.sum()), (weights * units.step)[:, None]
            sums = self._chunk_sums(x[near], squares[near], share)
            total += sums[0]
            powers += sums[1]
            inside += number
        return part, (total, inside, powers)

    def _chunk_sums(
        self, x: np.ndarray, squares: np.ndarray, share: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of some rows; what is made of them is gone before the next ones are read."""
        clipped = clip_integer_rows(x, self.clip, squares)
        # Coarse rows are integers of norm at most 2**15: squares of at most 2**30.
        terms = [_squared(np.trunc, clipped * (1 / _coarse(self.clip)))]
        if len(self.powers) > 1:
            terms.append(_squared(np.floor, terms[0] * _FINE))
        if share is not None:
            # Integers of at most 2**24 and 2**20: exact products. Toward zero, so that a row is no
            # longer than its weight times the clip.
            clipped, terms = (np.trunc(clipped * share), [np.floor(each * share) for each in terms])
        # At most 2**18 entries of at most 2**30: the float64 sums are exact.
        powers = np.concatenate([each.sum(axis=0) for each in terms])
        return exact_integers(clipped.sum(axis=0)), exact_integers(powers)

    def exact(self, sums: tuple) -> tuple:
        total, inside, powers = sums
        return (np.concatenate([total, [inside], powers[: len(self.powers) * len(total)]]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point adds a vector of norm at most `clip` to the sum; one of norm at most
        q = (clip / coarse)^2 to the squares (their sum is the square of the norm); to the fourth
        powers, which are squares of entries that sum to at most q / 2^15, one of norm at most
        (q / 2^15)^2; and one to the number. Each over its claim, squared, sums to
        (1 - weight - powers) + powers + weight = 1. A point of weight w, a part of `units.scale`
        steps, adds w times that, so at most w^2 of it; several of one unit, of weights that sum to
        at most one, a mean of such vectors."""
        d, units = facts.n_features, facts.units
        l2: list[Any] = [np.full(d, self.sum_limit), [self.number_limit * units.scale]]
        unit: list[Any] = [np.full(d, facts.unit), [units.step]]
        longest = self.clip / _coarse(self.clip)
        for place, share in enumerate(self.powers):
            longest = (longest * _FINE**place) ** 2
            l2.append(np.full(d, longest / math.sqrt(share) * _UP))
            unit.append(np.full(d, 1 / longest))
        return (Claim(np.concatenate(l2), np.concatenate(unit)),)


def _squared(rounded: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """Squares of rounded rows, in place: a chunk of rows is large."""
    return np.square(rounded(rows, out=rows), out=rows)


def _coarse(clip: float) -> float:
    """Steps in which rows clipped to `clip` steps have norms of at most 2**15."""
    return max(1.0, 2.0 ** math.ceil(math.log2(clip) - 15))
