"""Scores of rows: bounded numbers, one of each row, added up."""

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._rows.table import Part
from ._query import Facts, Query

_STEPS = 2**19  # integer steps in half the range of a score


class ScoreSum(Query):
    """How far the scores of all units are above the middle of a public range, added up, of a table
    whose one column is the score of each row. What is no number counts as `low`.

    Why the middle: a score in [0, 1] could move its sum by 1, and not by 1/2, so half of the noise
    is gone. The price is that the number is a sum above n times the middle, with n unknown. For a
    choice that is no loss, because n is the same for all candidates. Why not a mean: its
    denominator n is not public, and a change of n moves all terms at once.
    """

    low: float
    high: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        values = np.asarray(part.source.read(), dtype=np.float64)[:, 0]
        values = np.where(np.isnan(values), self.low, values)
        # Halves first: the sum may be beyond the floats where the difference is not.
        middle, half = self.low / 2 + self.high / 2, (self.high - self.low) / 2
        steps = np.floor((np.clip(values, self.low, self.high) - middle) / half * _STEPS)
        steps = exact_integers(np.clip(steps, -_STEPS, _STEPS))
        if part.units.weights is not None:
            steps = steps * part.units.weights
        # Products below 2**40: sums of 2**22 of them fit into int64.
        parts = np.array_split(steps, 1 + len(steps) // 2**22)
        return part, (np.array([sum(int(each.sum()) for each in parts)]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A score, clipped and with the middle of the range taken off, is an integer of at most
        2^19 in magnitude. The weights of a unit's rows are integers of sum at most `scale`, so it
        adds at most 2^19 `scale` in magnitude, and changes no other term."""
        largest = _STEPS * facts.units.scale
        return (Claim(largest, (self.high - self.low) / 2 / largest, l1=largest),)
