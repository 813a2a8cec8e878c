"""A released guess of a component, and how much each row belongs to it.

The whitening of a row is an exact product with an integer basis, and elementwise from there: a
function of the row and of released values alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, exp2

__all__ = [
    "FORMS",
    "NARROWEST",
    "WEIGHT_STEPS",
    "Ellipsoid",
    "component_weights",
    "normal_quantile",
]

FORMS = ("full", "tied", "diag", "spherical")
"""What is known of the shapes: anything, all the same, along the coordinate axes, balls."""

WEIGHT_STEPS = 2**20  # of the weight of a row in a component
_LEVELS = 1023  # responsibilities; 1023 * 1025 < 2**20
_BASIS = 2.0**26
NARROWEST = 0.05  # grid steps: a narrower component is a point


@dataclass(frozen=True)
class Ellipsoid:
    """A released component, in grid steps.

    Attributes
    ----------
    center : ndarray of shape (d,), integer-valued
        In the ball of the rows.
    axes : ndarray of shape (d, d)
        Orthonormal columns.
    scales : ndarray of shape (d,)
        Standard deviations along the axes.
    square : float
        About the largest squared whitened length of most of the rows.
    weight : float
        Released number of units.
    """

    center: np.ndarray
    axes: np.ndarray
    scales: np.ndarray
    square: float
    weight: float = 1.0

    @classmethod
    def ball(cls, center, radius, square=1.0, weight=1.0):
        """The same standard deviation in all directions."""
        d = len(center)
        scales = np.full(d, max(float(radius), NARROWEST))
        return cls(center, np.eye(d), scales, square, weight)

    def whiten(self, x, steps):
        """Integer whitened coordinates of integer rows, `steps` to a standard deviation.

        Exact products: |x - center| <= 2**25 and columns of 2**26 give integers below 2**52. What
        follows is elementwise, so a row is whitened the same whatever rows there are beside it.
        """
        product = (x - self.center) @ np.rint(self.axes * _BASIS)
        return np.trunc(product * (steps / (_BASIS * self.scales)))

    @property
    def factor(self):
        """A matrix B with covariance B B^T."""
        return self.axes * self.scales


def component_weights(rows, ellipsoids, *, soft=True):
    """How much each row belongs to each released component.

    Returns
    -------
    weights : ndarray of int32 of shape (n, k)
        In steps of 2**-20; those of a row sum to at most 1.

    Notes
    -----
    The squared whitened lengths are exact integers (entries of at most 2**20, d of at most 2**13),
    and everything after them is elementwise in a fixed order, so that a row's weights depend on
    nothing but that row. (scipy's exp2 is a scalar function; numpy's own may differ by lane.)
    """
    weights = np.zeros((rows.n_rows, len(ellipsoids)), dtype=np.int32)
    if len(ellipsoids) == 1:
        weights[:] = WEIGHT_STEPS
        return weights
    offsets = [math.log(max(e.weight, 1e-300)) - float(np.log(e.scales).sum()) for e in ellipsoids]
    for part, x in rows.chunks(len(ellipsoids)):
        energies = [_energy(e, x) - offset for e, offset in zip(ellipsoids, offsets, strict=True)]
        least = np.minimum.reduce(energies)
        if not soft:
            label = np.argmin(energies, axis=0)
            weights[part][np.arange(len(x)), label] = WEIGHT_STEPS
            continue
        parts = [exp2((least - energy) * math.log2(math.e)) for energy in energies]
        total = np.zeros(len(x))
        for share in parts:
            total += share
        for j, share in enumerate(parts):
            # Rounded down by far more than the errors above: levels sum to at most 1023.
            level = np.floor(share / total * (_LEVELS + 1) * (1 - 2.0**-40))
            weights[part, j] = level * (WEIGHT_STEPS // _LEVELS)
    return weights


def _energy(ellipsoid, x):
    """Half of the squared whitened length."""
    white = np.clip(ellipsoid.whiten(x, 2.0**10), -(2.0**20), 2.0**20)
    return np.einsum("ij,ij->i", white, white) * 2.0**-21


def normal_quantile(share, d):
    """Squared length that holds a share of a standard normal law."""
    return float(chdtri(d, 1 - share))
