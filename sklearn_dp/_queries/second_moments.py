"""The second moment of the rows on their grid."""

import math

import numpy as np

from .._costs.rounding import round_up
from .._privacy._products import GRAM_LIMIT, exact_gram
from .._privacy._sealed import Claim
from .._rows.table import ROWS, Part
from ._query import Facts, Query


class SecondMoment(Query):
    """The upper triangle of sum_i x_i x_i^T, of rows clipped to a norm of at most 2**24 steps."""

    limit: float

    @property
    def _coarse(self) -> float:
        """Grid steps in a step of the rows that are multiplied."""
        return max(1.0, 2.0 ** math.ceil(math.log2(self.limit / GRAM_LIMIT)))

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, units = part[ROWS], part.units
        chunks = rows.squared_chunks(near=units.weights is None)
        return part, (exact_gram(chunks, rows.n_features, self.limit, self._coarse, units),)

    def exact(self, sums: tuple) -> tuple:
        (matrix,) = sums
        return (matrix[np.triu_indices(len(matrix))],)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """For the change M of the sum under one unit: sum_a M_aa^2 + 2 sum_{a<b} M_ab^2 = |M|_F^2,
        and |M|_F <= sum_i w_i |x_i|^2 <= limit^2. With s = limit^2 on the diagonal and limit^2 /
        sqrt(2) off it, sum (M_ab / s_ab)^2 = |M|_F^2 / limit^4 <= 1."""
        square, upper = (self.limit / self._coarse) ** 2, np.triu_indices(facts.n_features)
        most = round_up(square), round_up(square * math.sqrt(0.5))
        unit = (self._coarse * facts.unit) ** 2
        return (Claim(np.where(upper[0] == upper[1], *most), unit),)


def symmetric(upper: np.ndarray, n_features: int) -> np.ndarray:
    """The matrix of a released upper triangle."""
    matrix = np.zeros((n_features, n_features))
    matrix[np.triu_indices(n_features)] = upper
    return matrix + np.triu(matrix, 1).T
