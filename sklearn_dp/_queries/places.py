"""Questions about where all rows are: their norms, and their second moment.

Norms have no bound; lengths, sums and the second moment are of rows on their grid.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._grid import Domain, NearRows, norm_counts, row_of_each_entry, sum_type
from .._privacy._products import GRAM_LIMIT, exact_gram
from .._privacy._units import Claim, UnitFacts
from .._rows.rows import moved_entries
from .._rows.single_rows import SparseRows, bins_of, counted
from .._rows.table import ROWS, Part
from ._query import CellQuery, Facts, Query

_TOTALS = 2.0, 4.0, 4.0  # the noise of each of the totals, next to the sum of rows


class NormCounts(CellQuery):
    """Weights in 401 public bins of norms about a center, of rows moved into bounds first."""

    center: Domain | None = None
    within: Domain | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        X = part.source.read()
        if not isinstance(X, SparseRows) or not X.width:
            return part, (norm_counts(X, part.units, self._prepared),)
        return part, (norm_counts(_Entries(X), part.units, self._near),)

    def _prepared(self, rows: Any) -> Any:
        rows = rows if self.within is None else self.within.move_rows(rows)
        return rows if self.center is None else self.center.center_rows(rows)

    def _near(self, table: csr_array) -> Any:
        moved = moved_entries(table, self.within, self.center)
        if moved is None:
            return self._prepared(table.toarray())
        return _Near(table, self._prepared, *moved)


class _Entries:
    """Sparse rows, in slices as sparse as they are."""

    def __init__(self, X: SparseRows) -> None:
        self._X, self.shape = X, (len(X), X.width)  # by which chunks are cut: entries, not columns

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> csr_array:
        return self._X.entries(slice(part.start, min(part.stop, len(self))))


class _Near:
    """Sparse rows that have been prepared: about their squared norms, and some of them dense."""

    def __init__(self, table: csr_array, prepared: Any, zeros: np.ndarray, moved: csr_array):
        self._table, self._prepared, self.shape = table, prepared, table.shape
        self._zeros, self._moved = zeros, moved

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._prepared(self._table[rows].toarray())

    def squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return squared norms, and upper bounds on their errors."""
        n, d = self.shape
        rows = row_of_each_entry(self._moved)
        common, moved = np.square(self._zeros), np.square(self._moved.data)
        whole, there = common.sum(), common[self._moved.indices]
        # At most 2 d additions of products, each off by a unit in the last place of what is below.
        largest = whole + np.bincount(rows, moved + there, n)
        return whole + np.bincount(rows, moved - there, n), (d + 8) * 2.0**-50 * largest


class SumAndTotals(Query):
    """The sum of the rows, and the totals of their units, in one vector."""

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, units = part[ROWS], part.units
        total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 25))
        for place, x in rows.near_chunks() if units.weights is None else rows.chunks():
            if units.weights is not None:
                x = np.trunc(x * (units.weights[place] * units.step)[:, None])  # never lengthens
            # Integers of at most 2**25, at most 2**16 of them: exact sums, also of a product.
            if isinstance(x, NearRows):
                labels = np.zeros(len(x), dtype=np.int32)
                total += exact_integers(x.sums(labels, np.ones(len(x)), 1)[0])
            else:
                total += exact_integers(np.ones(len(x)) @ x)
        return part, (total, units.totals)

    def exact(self, sums: tuple) -> tuple:
        return (np.append(*sums),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit adds a vector of length at most `limit`, a weight of at most `scale` and, where
        rows have weights of their own, at most `scale` to each of two more totals: (|sum| /
        limit)^2 + (weight / (2 scale))^2 + 2 (total / (4 scale))^2 <= 1 + 1/4 (+ 2/16). Each part
        divided by the root of that times its scale, the length of the change is at most one."""
        units, d, (of_sum, of_totals) = facts.units, facts.n_features, self.scales(facts.units)
        totals = [round_up(units.scale * scale) for scale in of_totals]
        l2 = np.append(np.full(d, round_up(facts.limit * of_sum)), totals)
        unit = np.append(np.full(d, facts.unit), np.full(len(totals), units.step))
        return (Claim(l2, unit),)

    @staticmethod
    def scales(units: UnitFacts) -> tuple[float, np.ndarray]:
        """The claims of the sum, in limits, and the totals (t,), in units, like their noise."""
        totals = np.array(_TOTALS[: 3 if units.own_weights else 1])
        joint = math.sqrt(1 + float(np.sum(1 / totals**2)))
        return joint, totals * joint


class LengthCounts(CellQuery):
    """Weights in public bins of lengths: a row is in one of them."""

    edges: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        squares = part[ROWS].squares

        def bins(place: slice) -> np.ndarray:
            return bins_of(squares[place], self.edges)

        return part, (counted(bins, len(squares), part.units, len(self.edges) - 1),)


# -- the second moment -----------------------------------------------------------------------------


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
