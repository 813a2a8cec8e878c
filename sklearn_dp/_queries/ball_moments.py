"""Sums over the points in a ball: of the points, of their powers, and how many there are. Points
beyond are left out, the others clipped to a smaller norm, to the step."""

import math
from typing import Any

import numpy as np

from .._privacy._grid import clip_integer_rows, sum_type
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._rows.table import ROWS, Part
from ._query import Facts, Query

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
            clipped, terms = (
                np.trunc(clipped * share),
                [np.floor(each * share) for each in terms],
            )
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
