"""Where the data are and how many rows there are; scales of noise and of histograms."""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import sum_type
from ..._privacy._rounding import round_up

__all__ = ["Size", "bins_of", "center_and_count", "geometric_edges", "noise_sd"]

_JOINT = math.sqrt(1.25)
_SMALL_SIGNAL = 1000.0  # signal below which coarser choices pay


def noise_sd(rho):
    """Standard deviation of the noise of a release of sensitivity one."""
    return 1.0 / math.sqrt(2.0 * rho)


@dataclass(frozen=True)
class Size:
    """The released number of units, and what it means at this budget.

    Attributes
    ----------
    n : float
        Released number of units, positive.
    mu : float
        GDP parameter of the whole fit.
    tail : float, default=1.0
        Distance that few units are beyond, over the median distance; 1 where it is not known.
    """

    n: float
    mu: float
    tail: float = 1.0

    @property
    def signal(self):
        """The number of units in noise units."""
        return self.n * self.mu

    @property
    def small(self):
        """Whether coarser choices pay."""
        return self.signal < _SMALL_SIGNAL


def geometric_edges(top, n_bins, ratio):
    """Bins [0, ...), ..., [top / ratio, top): the edges in between fall by `ratio` each."""
    return np.concatenate([[0.0], top * float(ratio) ** -np.arange(n_bins - 1, -1, -1.0)])


def bins_of(squared, edges):
    """The bin of each squared length; the last one takes all beyond. Elementwise comparisons."""
    return np.searchsorted(np.square(edges[1:-1]), squared, side="right")


def center_and_count(session, entry, rows, units, rho):
    """A released center (integers), the number of units, and the variance of that number."""
    radius, d = rows.limit, rows.n_features
    total, weight = _exact_totals(rows, units)
    # A unit adds a vector of length at most `radius` and a weight of at most `scale`:
    # (|sum|/radius)^2 + (weight / (2 scale))^2 <= 5/4, the claim after division by 5/4.
    sensitivity = np.full(d + 1, round_up(radius * _JOINT))
    sensitivity[-1] = round_up(2 * units.scale * _JOINT)
    noisy = session.gaussian(
        entry,
        np.append(total, weight),
        sensitivity=sensitivity,
        unit=np.append(np.full(d, rows.unit), units.step),
        rho=rho,
    )
    sd = noise_sd(rho)
    count_sd = 2 * _JOINT * sd
    n = max(noisy[-1], 4 * count_sd)
    origin = _shrunk(noisy[:-1] / rows.unit / n, radius * _JOINT * sd / n, radius)
    return origin, float(noisy[-1]), count_sd**2


def _exact_totals(rows, units):
    total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 25))
    for part, x in rows.chunks():
        if units.weights is not None:
            x = np.trunc(x * (units.weights[part] * units.step)[:, None])  # never lengthens
        # Integers of at most 2**25, at most 2**16 of them: exact sums.
        total += x.sum(axis=0).astype(np.int64)
    weight = units.n_rows if units.weights is None else int(units.weights.sum())
    return total, weight


def _shrunk(mean, noise, radius):
    """Positive-part James-Stein towards the public center, as integers inside the ball."""
    length = max(float(np.linalg.norm(mean)), 1e-300)
    if len(mean) > 2:
        mean = mean * max(0.0, 1 - len(mean) * (noise / length) ** 2)
    return np.trunc(mean * min(1.0, radius / length))
