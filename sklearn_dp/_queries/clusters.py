"""Next to centers: distances, counts, sums of squares and of clipped residuals."""

import math
from typing import NamedTuple

import numpy as np

from .._costs.rounding import round_up
from .._privacy._domain import Domain, weighted_bincount
from .._privacy._grid import sum_type
from .._privacy._sealed import Claim, Sealed
from .._rows.bins import bins_of, counted, row_slices
from .._rows.outside import beyond
from .._rows.row_sums import (
    ERROR_STEPS,
    WEIGHT_BITS,
    clipped_sums,
    lines,
    nearest,
    nearest_in,
    square_sums,
    to_centers,
)
from .._rows.rows import Rows
from .._rows.table import ROWS, Part
from ._query import CellQuery, Facts, IntegerPoints, Query, Step

_PINNED, _CLUSTERS = "pinned", "clusters"
_OUTSIDE = 0.05  # of a claim of squares, in squared sensitivity, for rows beyond public bounds


class _Labels(NamedTuple):
    """In the state of a part, of `Pinned`."""

    k: int
    labels: np.ndarray  # (n,), in [0, k)


class _Clusters(NamedTuple):
    """The rows that `Nearest` has served, with their nearest centers."""

    rows: Rows  # about which origin they were served
    centers: np.ndarray  # (k, d), public
    labels: np.ndarray  # (n,), in [0, k) ...
    squared: np.ndarray  # ... and the squared distances to these centers, exactly


class Pinned(Step):
    """Every row keeps its nearest center (k, q) for the next question, wherever it is then."""

    centers: IntegerPoints

    def on(self, part: Part) -> Part:
        labels, _ = nearest(part[ROWS], self.centers)
        return part.having(**{_PINNED: _Labels(len(self.centers), labels)})


class Nearest(CellQuery):
    """Weights in bins of distances, over `scales` (k,), to the nearest of integer centers (k, d);
    and weights next to each center."""

    centers: IntegerPoints
    scales: np.ndarray
    edges: np.ndarray

    class Answer(NamedTuple):
        distances: Sealed
        counts: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        if _PINNED in part.state:
            (k, labels), part = part[_PINNED], part.without(_PINNED)
            if k != len(self.centers):
                raise TypeError("the rows are pinned to another number of centers.")
            squared = to_centers(rows, self.centers, labels)
        else:
            labels, squared = nearest(rows, self.centers)
        narrow = 1 / np.square(self.scales)

        def bins(place: slice) -> np.ndarray:
            # Elementwise: the bin of a row is a function of the row and of public values alone.
            return bins_of(squared[place] * narrow[labels[place]], self.edges)

        return part.having(**{_CLUSTERS: _Clusters(rows, self.centers, labels, squared)}), (
            counted(bins, len(labels), part.units, len(self.edges) - 1),
            weighted_bincount(labels, part.units, len(self.centers)),
        )

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row is in one bin, and next to one center."""
        return super().claims(facts) * 2


def residual_claim(radius: np.ndarray, d: int, facts: Facts) -> Claim:
    """Return the claim for sums (k, d) of residuals clipped to `radius` (k,). A row is in one
    cluster: a unit moves the stack, each over its radius, by at most one (2**bits steps)."""
    l2 = np.nextafter(radius * 2.0**WEIGHT_BITS, np.inf)[:, None]
    return Claim(np.broadcast_to(l2, (len(radius), d)), 2.0**-WEIGHT_BITS * facts.unit)


class ClusterSums(Query):
    """After `Nearest`: sums (k, d) of residuals clipped to a radius, and of capped squares (k,)."""

    radius: np.ndarray
    cap: np.ndarray | None

    class Answer(NamedTuple):
        residuals: Sealed
        squares: Sealed | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, centers, labels, squared = part[_CLUSTERS]
        if rows is not part[ROWS]:  # the distances are of others, and clip nothing
            raise TypeError("the rows have been moved since their distances were found.")
        sums = clipped_sums(rows, centers, labels, squared, self.radius, part.units)
        part = part.without(_CLUSTERS)
        if self.cap is None:
            return part, (sums,)
        return part, (sums, square_sums(labels, squared, self.cap, len(centers), part.units))

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of clipped residuals; a row adds to one sum of squares between 0 and `ERROR_STEPS`
        steps, and a unit no more to all of them, as its weights sum to at most one."""
        residuals = residual_claim(self.radius, facts.n_features, facts)
        if self.cap is None:
            return (residuals,)
        unit = self.cap / ERROR_STEPS * facts.unit**2
        return residuals, Claim(ERROR_STEPS, unit, l1=ERROR_STEPS)


class CappedSquares(Query):
    """Two sums of capped squares, to the nearest center and to the last point; the number of rows
    far from all centers, which are in neither; and, with bounds, of those beyond them."""

    points: IntegerPoints  # (k + 1, d), integers: the centers, and the point
    caps: np.ndarray  # (k,), of squares
    largest: np.ndarray  # (2,): the steps of the sums are in proportion to them
    limits: np.ndarray  # (k,), of squares: a row beyond that of its center is far
    bounds: Domain | None = None

    @property
    def scales(self) -> np.ndarray:
        """How much of the claim each number takes: the larger, the less noisy are the others."""
        part = 0.0 if self.bounds is None else _OUTSIDE
        scales = [math.sqrt(2 / (1 - part))] * 2 + [1 / math.sqrt(1 - part)]
        return np.array([*scales, 1 / math.sqrt(part)] if part else scales)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, points = part[ROWS], self.points
        totals = np.zeros(len(self.scales), dtype=sum_type(rows.n_rows, 26))
        lengths, directions = np.einsum("ij,ij->i", points, points)[:, None], -2.0 * points
        for place, x, squares in rows.squared_chunks(len(points), near=True):
            scores = lines(directions, x)
            scores += lengths
            labels, best = nearest_in(scores[:-1])
            squared, units = squares + best, part.units.take(place)
            far = (squared > self.limits[labels]).astype(np.int32, casting="same_kind")
            # Of two labels: near, far. What is far is left out of the first two.
            capped = np.minimum(squared, self.caps[labels])
            steps = square_sums(far, capped, self.largest[0], 2, units)[:1]
            others = square_sums(far, squares + scores[-1], self.largest[1], 2, units)[:1]
            counts = square_sums(far, np.ones(len(x)), 1.0, 2, units)[1:]
            totals[:3] += np.concatenate([steps, others, counts])
        if self.bounds is not None:
            X = part.source.read()
            for place in row_slices(rows.n_rows, getattr(X, "width", 0) or rows.n_features):
                excess, units = beyond(self.bounds, X, place), part.units.take(place)
                excess = excess.astype(np.int32, casting="same_kind")
                totals[3:] += square_sums(excess, np.ones(len(excess)), 1.0, 2, units)[1:]
        return part, (totals,)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row that is far from every center adds at most `ERROR_STEPS` steps to the third number
        and nothing to the first two; any other adds between 0 and that to each of the first two,
        and nothing to the third. Each number over its scale, a unit moves the vector by a length of
        at most one: sqrt(1/2 + 1/2), or 1. Beyond bounds it also adds at most `ERROR_STEPS` to a
        fourth number: over these scales its square is (1 - outside) + outside = 1. With weights of
        sum one, no more (triangle inequality)."""
        scales = self.scales
        unit = np.append(self.largest * facts.unit**2, np.ones(len(scales) - 2)) / ERROR_STEPS
        return (Claim(np.array([round_up(scale * ERROR_STEPS) for scale in scales]), unit),)


class CappedSum(Query):
    """One sum of squared distances, up to `cap` squared each, to the nearest of integer centers."""

    centers: IntegerPoints
    cap: float  # in lengths

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        _, squared = nearest(rows, self.centers)
        # Squared distances are integers, so of a cap below one step each row counts all or nothing,
        # as with a cap of one: no quotient by it is ever too large.
        cap, one = max(self.cap / rows.unit, 1.0) ** 2, np.zeros(len(squared), dtype=np.int32)
        return part, (square_sums(one, squared, cap, 1, part.units),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row adds between 0 and `ERROR_STEPS` steps, and so does a unit."""
        return (Claim(ERROR_STEPS, self.cap**2 / ERROR_STEPS, l1=ERROR_STEPS),)
