"""Questions about whitened rows, and about distances of single columns from released origins.

*Whitened rows* are clipped, and have counts, sums, second moments, and bins of their lengths.
Whitening maps a row to where a released component would be a standard normal. Which component a row
counts for, and with what weight, is decided there, and a neighbor must not change that for another
row. So the whitening of a row is an exact product with an integer basis, and elementwise from
there: a function of the row and of released values alone, bit for bit. The weights of a row in the
components sum to at most one, whatever they are, so all components together cost what one costs.

*Single columns* have distances of values from released origins, and how many values are equal.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import exp2

from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._grid import clip_integer_columns, sum_type, weighted_bincount
from .._privacy._units import Claim, Units
from .._rows.rows import nearest, to_centers
from .._rows.single_rows import bins_of, counted, row_slices
from .._rows.table import ROWS, Part
from ._query import CellQuery, Facts, IntegerPoints, Public, Query, Several, Step

LABELS = "component labels"
"""Name of the labels (n,) in the state of a part."""


# -- whitened rows ---------------------------------------------------------------------------------


class NearestLabels(Step):
    """Each row has the number of the nearest of integer centers (k, d)."""

    centers: IntegerPoints

    def on(self, part: Part) -> Part:
        return part.having(**{LABELS: nearest(part[ROWS], self.centers)[0]})


class LabelDistances(CellQuery):
    """Weights in bins of distances from the centers of labels, one by one: (k n_bins,)."""

    centers: IntegerPoints  # (k, d), integers
    edges: np.ndarray  # (n_bins + 1,)

    def on(self, part: Part) -> tuple[Part, tuple]:
        labels, n_bins = part[LABELS], len(self.edges) - 1
        squared = to_centers(part[ROWS], self.centers, labels)

        def cells(place: slice) -> np.ndarray:
            return exact_integers(labels[place]) * n_bins + bins_of(squared[place], self.edges)

        return part, (counted(cells, len(labels), part.units, n_bins * len(self.centers)),)


WEIGHTS = "component weights"
"""Name of the levels of the weights of each row in the components of the next question, as uint16,
in the state of a part."""

WEIGHT_STEPS = 2**20
"""Steps of the weight of a row in a component."""

FOURTHS = 0.05
"""Share of the second moments, in squared sensitivity, that fourth powers have."""

_LEVELS = 1023  # responsibilities; 1023 * 1025 < 2**20
_LEVEL = WEIGHT_STEPS // _LEVELS  # weights of several components are so many steps times a level
_BASIS = 2.0**26
_FINE = 2.0**10  # steps of a whitened coordinate to a standard deviation, for weights
_FARTHEST = 2.0**20  # such steps: beyond 1024 standard deviations all is equally far
_LIMIT = 2**15  # norm of a clipped whitened row in steps: its square and sums of it are exact
_COARSE = 2.0**-15  # what squares are rounded by before they are squared


class Whitening(Public):
    """A released component: what rows are whitened by."""

    center: IntegerPoints  # (d,), integers
    axes: np.ndarray  # (d, d), orthonormal columns
    scales: np.ndarray  # (d,), standard deviations along the axes
    weight: float = 1.0  # released number of units

    def _check(self) -> None:
        lengths = np.einsum("ij,ij->j", self.axes, self.axes)
        if not (np.abs(lengths - 1) < 1e-3).all() or not (self.scales > 0).all():
            raise ValueError("axes must have the length one, and scales be positive.")

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the columns, of shape (d,)."""
        return np.sqrt(np.square(self.axes * self.scales).sum(axis=1))

    def products(self, x: np.ndarray) -> np.ndarray:
        """Integer rows (n, d) less the center, along the axes: (d, n), as long lines are fast.

        Exact: rows and centers of at most 2**25 and axes of 2**26 give integers of at most 2**51,
        and so is every sum of some of their terms, by Cauchy and Schwarz. Their difference is that
        of the row and the center, and below 2**53."""
        basis = np.rint(self.axes * _BASIS).T
        products = basis @ x.T
        products -= (basis @ self.center)[:, None]
        return products

    def whitened(self, products: np.ndarray, steps: float) -> np.ndarray:
        """Integer whitened coordinates (d, n) of exact products, `steps` to a deviation."""
        white = products * (steps / (_BASIS * self.scales))[:, None]
        return np.trunc(white, out=white)

    def squares(self, products: np.ndarray) -> np.ndarray:
        """Squared whitened lengths (n,) of exact products: exact integers over squared steps."""
        # A row has at most 2**14 features (see `Grid.quantize`): its sum of squares is below 2**53.
        farthest = _FARTHEST if len(products) < 2**13 else _FARTHEST / 2
        white = self.whitened(products, _FINE)
        squares = np.einsum("ij,ij->j", white, white)
        # No sum is less than what it is of: as long as all are small, no coordinate is farther.
        if not squares.max(initial=0.0) <= farthest**2:
            np.clip(white, -farthest, farthest, out=white)
            squares = np.einsum("ij,ij->j", white, white)
        return squares * (1.0 / _FINE**2)


class WhitenedMoments(Query):
    """Moments of k components: counts (k,), sums (k, d) of whitened rows and second moments (k, p)
    of these; clipped to two radii.

    Rows have the weights of their components: of their labels (`labeled`), of what a part holds
    until then, or :func:`component_weights`. A second moment is an upper triangle, a diagonal
    ("diag"), a trace ("spherical"), or one triangle for all ("tied"). With `fourths` it is one
    vector: of these, and of sums (k, d) of the fourth powers of columns over their standard
    deviations."""

    components: tuple[Whitening, ...]
    radii: tuple[float, float]
    form: str = "full"
    labeled: bool = False
    fourths: bool = False
    Answer = Several

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the second moments."""
        d = len(self.components[0].center)
        entries = {"diag": d, "spherical": 1}.get(self.form, d * (d + 1) // 2)
        return 1 if self.form == "tied" else len(self.components), entries

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, k, d = part[ROWS], len(self.components), part[ROWS].n_features
        exact = sum_type(rows.n_rows, 30)
        counts, sums = np.zeros(k, dtype=exact), np.zeros((k, d), dtype=exact)
        moments = np.zeros((k, self.shape[1]), dtype=exact)
        powers = np.zeros((k, d), dtype=exact)
        for place, x in rows.chunks(k):
            share = _row_weights(self._weights(part, place, x), part.units, place)
            for j, component in enumerate(self.components):
                weight, rows_inside = share[:, j], x
                inside = np.flatnonzero(weight > 0)  # several times as fast as of floats
                if len(inside) < len(x):
                    weight, rows_inside = weight[inside], x.take(inside, axis=0)
                near, white = _clipped(component, component.products(rows_inside), self.radii)
                counts[j] += int(weight.sum())
                # Rounding toward zero: |weighted row| <= weight |row|.
                sums[j] += exact_integers(_times(near, weight / WEIGHT_STEPS).sum(axis=1))
                # The root of the weight scales the row, rounded down: its square is at most weight.
                root = np.floor(np.sqrt(weight) * 2.0**10) * 2.0**-20
                moments[j] += _moments_of(_times(white, root).T, self.form)
                if self.fourths:
                    powers[j] += _fourth_powers(rows_inside, component, self.radii[1], weight)
        if self.form == "tied":
            moments = moments.sum(axis=0, keepdims=True)
        return part.without(LABELS, WEIGHTS), (counts, sums, moments, powers)

    def _weights(self, part: Part, place: slice, x: np.ndarray) -> np.ndarray:
        """Return the weights (n, k) of some rows in the components, in steps of 2**-20."""
        k, known = len(self.components), part.state.get(WEIGHTS)
        if self.labeled:
            labels = part[LABELS][place]
            weights = np.zeros((k, len(labels)), dtype=np.int32)  # rows of a component together
            weights[labels, np.arange(len(labels))] = WEIGHT_STEPS
            return weights.T
        if known is not None:
            return np.multiply(known[place], _LEVEL, dtype=np.int32)
        squares = (one.squares(one.products(x)) for one in self.components)
        return component_weights(len(x), squares, self.components)

    def exact(self, sums: tuple) -> tuple:
        counts, total, moments, powers = sums
        if self.fourths:
            moments = np.concatenate([moments.ravel(), powers.ravel()])
        return counts, total, moments

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row has weights w_j of sum at most one, and adds them to the counts: a vector of l1
        norm at most one, as its l2 norm is. To the stacked sums it adds one of norm at most
        sum_j w_j |white_j| <= `_LIMIT`.

        Second moments: it adds M = (w_j white_j white_j^T)_j, positive semidefinite blocks whose
        Frobenius norm is at most their trace, sum_j w_j |white_j|^2 <= `_LIMIT`^2; the tied sum,
        the diagonals and the traces are no longer than that. Of the upper triangle, |M|_F^2 counts
        entries off the diagonal twice, so 1/sqrt(2) of the claim is enough there.

        Fourth powers are squares of numbers that sum to at most 2**15, so a row adds a vector of
        norm at most 2**30. Each of the two over its claim, squared: (1 - share) + share = 1.

        Rows of a unit have weights of sum at most one: it adds no more, by the triangle inequality.
        """
        limit, d, (k, p) = float(_LIMIT), facts.n_features, self.shape
        sums, moments = (radius / limit for radius in self.radii)
        claims = np.full(p, limit**2)
        if self.form in ("full", "tied"):
            rows, columns = np.triu_indices(d)
            claims = np.where(
                rows == columns, round_up(limit**2), round_up(limit**2 * math.sqrt(0.5))
            )
        claims, steps = np.broadcast_to(claims, (k, p)), moments**2
        of_moments = Claim(claims, steps)
        if self.fourths:
            # As many as there are components, whatever the form.
            powers = np.full(len(self.components) * d, round_up(2.0**30 / math.sqrt(FOURTHS)))
            of_moments = Claim(
                np.append(round_up(claims.ravel() / math.sqrt(1 - FOURTHS)), powers),
                np.repeat([steps, (steps / _COARSE) ** 2], [k * p, len(powers)]),
            )
        return Claim(WEIGHT_STEPS, 1 / WEIGHT_STEPS), Claim(limit, sums), of_moments


class WhitenedDistances(Query):
    """For each of k components, the weights of rows in bins of whitened lengths: (k, bins). The
    weights are kept for :class:`WhitenedMoments`, which asks of the same ones next."""

    components: tuple[Whitening, ...]
    edges: np.ndarray  # (bins + 1,), increasing

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, k, bins = part[ROWS], len(self.components), len(self.edges) - 1
        counts = np.zeros((k, bins), dtype=sum_type(rows.n_rows, 30))
        held = np.empty((k, rows.n_rows), dtype=np.uint16) if k > 1 and rows.kept else None
        for place, x in rows.chunks(k):
            squares = [one.squares(one.products(x)) for one in self.components]
            weights = component_weights(len(x), squares, self.components)
            if held is not None:
                held[:, place] = weights.T // _LEVEL
            share = _row_weights(weights, part.units, place)
            for j, square in enumerate(squares):
                inside = np.flatnonzero(share[:, j] > 0)
                cell = np.searchsorted(np.square(self.edges[1:-1]), square[inside], side="right")
                # Integers of at most 2**20, at most 2**16 of them: exact sums.
                counts[j] += exact_integers(np.bincount(cell, share[inside, j], minlength=bins))
        return part if held is None else part.having(**{WEIGHTS: held.T}), (counts,)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """The weights of a row sum to at most one, each in one bin of its component: it adds a
        non-negative vector of l1 norm at most one, and so does a unit, of rows of weights up to
        one."""
        return (Claim(WEIGHT_STEPS, 1 / WEIGHT_STEPS, l1=WEIGHT_STEPS),)


def component_weights(
    n_rows: int, squares: Iterable[np.ndarray], components: Sequence[Whitening]
) -> np.ndarray:
    """The posterior probabilities (n, k) of released components, rounded down, in steps of 2**-20.

    `squares` are those of each component, and not asked for where there is one. They are exact
    (entries of at most 2**20, sums below 2**53), and everything after them is elementwise in a
    fixed order, so that a row's weights depend on nothing but that row. (scipy's exp2 is a scalar
    function; numpy's own may differ by lane.)"""
    if len(components) == 1:
        return np.full((n_rows, 1), WEIGHT_STEPS, dtype=np.int32)
    weights = np.empty((len(components), n_rows), dtype=np.int32)
    offsets = [math.log(max(e.weight, 1e-300)) - float(np.log(e.scales).sum()) for e in components]
    # Minus log-densities, but for a constant of all components.
    energies = [square / 2 - offset for square, offset in zip(squares, offsets, strict=True)]
    least = np.minimum.reduce(energies)
    parts = [_share((least - energy) * math.log2(math.e)) for energy in energies]
    total = np.zeros(n_rows)
    for share in parts:  # in this order for every row, which np.sum does not promise
        total += share
    for j, share in enumerate(parts):
        # Rounded down by far more than the errors above: levels sum to at most 1023.
        level = np.floor(share / total * (_LEVELS + 1) * (1 - 2.0**-40))
        weights[j] = level * _LEVEL
    return weights.T


def _share(bits: np.ndarray) -> np.ndarray:
    """Two to the power of numbers, the largest of which is 0 in each row; 0 below 2**-64."""
    share, near = np.zeros(bits.shape), np.flatnonzero(bits > -64.0)
    share[near] = exp2(bits[near])
    return share


def _row_weights(weights: np.ndarray, units: Units, place: slice) -> np.ndarray:
    """Weights of rows in components times those of their units, as integers in steps of 2**-20."""
    share = weights.astype(np.float64)
    if units.weights is None:
        return share
    # Exact products of integers below 2**20 each, rounded down.
    return np.floor(share * (units.weights[place] * units.step)[:, None])


def _clipped(
    component: Whitening, products: np.ndarray, radii: tuple[float, float]
) -> list[np.ndarray]:
    """Whitened rows (d, n) clipped to each of two radii, in steps of 2**-15 of it."""
    clipped = [
        clip_integer_columns(component.whitened(products, _LIMIT / radius), _LIMIT)
        for radius in dict.fromkeys(radii)
    ]
    return [clipped[0], clipped[-1]]


def _times(white: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Integer columns times factors of at most one, toward zero; not copied where all are one."""
    if (factors == 1.0).all():
        return white
    white = white * factors
    return np.trunc(white, out=white)


def _moments_of(x: np.ndarray, form: str) -> np.ndarray:
    """The entries of the sum of x x^T that a form has, exact: 2**16 squares of at most 2**30."""
    if form == "diag":
        return exact_integers(np.square(x).sum(axis=0))
    if form == "spherical":
        return np.array([int(exact_integers(np.square(x).sum(axis=0)).sum())])
    columns = np.arange(x.shape[1])
    return exact_integers(x.T @ x)[columns[:, None] <= columns]  # the upper triangle, in its order


def _fourth_powers(
    x: np.ndarray, component: Whitening, radius: float, weight: np.ndarray
) -> np.ndarray:
    """Weighted sums of the fourth powers of columns over their released standard deviations, in
    2**15 times their squares: of rows clipped to the radius, at most their weight times 2**30."""
    steps = _LIMIT / (radius * component.deviations)
    columns = np.subtract(x.T, component.center[:, None], order="C")
    columns *= steps[:, None]
    clipped = clip_integer_columns(np.trunc(columns, out=columns), _LIMIT)
    # Squares sum to at most 2**30, so their multiples of 2**15 to 2**15, and the squares of these
    # to 2**30. At most 2**16 of them: exact sums.
    squares = np.square(clipped)
    squares *= _COARSE
    np.square(np.floor(squares, out=squares), out=squares)
    return exact_integers(_times(squares, weight / WEIGHT_STEPS).sum(axis=1))


# -- single columns --------------------------------------------------------------------------------


_OF_TOTAL = 2.0  # claims of a unit, that its weight in the total of distances is worth


class DistancesAndValues(Query):
    """For each column, weights in bins of values, of which equal ones share a bin, and in bins of
    distances from an origin, in scales; and the weight of all rows. One vector: of the columns one
    after the other, and that weight."""

    origin: np.ndarray  # (d,)
    scale: np.ndarray  # (d,), positive
    edges: np.ndarray  # (bins + 1,), increasing, of distances
    n_values: int  # bins of values

    @property
    def most(self) -> float:
        """The claim of each bin: how much it moves by, in units."""
        return math.sqrt(2 * len(self.origin)) * math.sqrt(1 + 1 / _OF_TOTAL**2)

    def on(self, part: Part) -> tuple[Part, tuple]:
        d, n_bins = len(self.origin), len(self.edges) - 1
        counts, X = np.zeros((d, self.n_values + n_bins), np.int64), part.source.read()
        for place in row_slices(part.units.n_rows, d):
            x, units = np.asarray(X[place], dtype=np.float64), part.units.take(place)
            far = (x - self.origin) / self.scale
            for j, histogram in enumerate(counts):
                values = _hashes(x[:, j], self.n_values)
                cells = np.searchsorted(self.edges[1:-1], far[:, j], side="right")
                histogram[: self.n_values] += weighted_bincount(values, units, self.n_values)
                histogram[self.n_values :] += weighted_bincount(cells, units, n_bins)
        return part, (counts, part.units.totals[:1])

    def exact(self, sums: tuple) -> tuple:
        counts, total = sums
        return (np.append(counts, total),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit has a weight of at most `scale` steps, in two bins of each column: the counts
        change by at most `scale` sqrt(2 d), and the total by `scale`. With s the root of 1 + 1/4,
        each over its claim, squared, adds up to (1 + 1/4) / s^2 = 1."""
        units, n = facts.units, len(self.origin) * (self.n_values + len(self.edges) - 1)
        joint = math.sqrt(1 + 1 / _OF_TOTAL**2)
        claims = np.append(np.full(n, self.most), _OF_TOTAL * joint) * units.scale
        return (Claim(np.array([round_up(claim) for claim in claims]), units.step),)


def _hashes(values: np.ndarray, n_bins: int) -> np.ndarray:
    """A bin for each value, that of equal ones; all bits count, as in the generator splitmix64."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # there is no negative zero
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(n_bins)).view(np.int64)
