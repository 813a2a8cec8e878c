"""Histograms of which only some cells are published, by their noisy counts.

**Sparse.** Rounded Gaussian noise on all of a public number of cells, then (cell, value) wherever
the value reaches a threshold: post-processing of the Gaussian mechanism. Where there are many
cells, those without rows are simulated together: each survives with probability p = P[round(sigma
Z) >= low], independently of the rest, so their number is binomial, their places are a uniform
subset of the empty cells, and their values follow the truncated law. The binomial number is off by
`SIMULATION_TV` in total variation, for at most 2^26 expected survivors and p <= 1/2. If an
(epsilon, delta)-DP release is replaced by one within total variation t of it, the result is
(epsilon, delta + t (1 + exp(epsilon)))-DP: see :func:`simulation_delta`.

**Stability.** Occupied cells of an unbounded domain, (rho, delta)-zCDP. Cells of both data sets:
one count moves by one (one down and one up, where a unit is replaced). A cell of only one of them
has a count of one, and stays unseen but for P[1 + round(sigma Z) >= low] <= delta. The noise of
such a cell is independent of that of the others, so each law is a mixture, with weight 1 - delta,
of what the common cells alone give: Gaussian releases with a threshold, sqrt(2 rho)-GDP. A plan may
therefore count a stability histogram among its Gaussian releases, with the failure probability.
"""

import math

import numpy as np
from scipy.special import ndtri

from .._noise import SIMULATION_TV, gaussian_tail
from .._plan import Mechanism, require
from .._rounding import exact_integers
from . import gaussian
from ._release import Release, check_cost, positive_sensitivity

__all__ = [
    "dense_cells",
    "simulated_cells",
    "simulation_delta",
    "sparse",
    "stability",
    "stability_threshold",
]

_DENSE_CANDIDATES = 2**20  # below this all cells of a sparse histogram get their noise one by one
_MOST_CANDIDATES = 2**63
_MOST_SIMULATED = 2.0**26  # expected number of empty cells that survive: see `SIMULATION_TV`


def simulation_delta(epsilon):
    """delta that a plan must hold for each simulated sparse histogram."""
    return SIMULATION_TV * (1 + math.exp(min(epsilon, 700.0)))


def sparse(codes, counts, n_candidates, threshold, sensitivity, rho, unit=1.0):
    """Cells above a threshold; see :meth:`PrivacySession.sparse_histogram`."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(1 <= n_candidates <= _MOST_CANDIDATES, "between 1 and 2**63 candidates")
    require(math.isfinite(threshold), "a finite threshold")
    low, n_candidates = math.floor(threshold) + 1, int(n_candidates)
    codes, counts = _sorted_cells(exact_integers(codes), exact_integers(counts))
    require(not len(codes) or (codes[0] >= 0 and codes[-1] < n_candidates), "codes of candidates")
    require(np.all(counts >= 0), "counts that are not negative")
    cells, delta = dense_cells, 0.0
    if n_candidates > _DENSE_CANDIDATES:
        # Simulated cells follow their law up to a total variation that the entry must hold.
        cells, delta = simulated_cells, SIMULATION_TV
        require(
            low >= 1 and n_candidates * gaussian_tail(sigma, low) <= _MOST_SIMULATED,
            "a threshold that leaves at most 2**26 empty cells",
        )
    return Release(
        "sparse",
        Mechanism.GAUSSIAN,
        (codes, counts),
        sensitivity,
        sigma,
        rho,
        lambda noise: cells(noise, codes, counts, n_candidates, sigma, low),
        delta,
        public={"unit": unit, "low": low, "n_candidates": n_candidates},
        unit=unit,
    )


def _sorted_cells(codes, counts):
    """Cells in the order of their codes, which are distinct."""
    require(codes.ndim == 1 and codes.shape == counts.shape, "a count for each code")
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], counts[order]
    require(np.all(codes[1:] != codes[:-1]), "distinct codes")
    return codes, counts


def dense_cells(noise, codes, counts, n_candidates, sigma, low):
    """Every cell gets its own noise."""
    values = noise.rounded_gaussian(sigma, n_candidates)
    values[codes] += counts
    cells = np.flatnonzero(values >= low)
    return cells, values[cells]


def simulated_cells(noise, codes, counts, n_candidates, sigma, low):
    """The same law when nearly all cells are empty; see the top of the module.

    Sorting by code removes every trace of which is which.
    """
    values = counts + noise.rounded_gaussian(sigma, codes.shape)
    keep = values >= low
    n_empty = noise.binomial(n_candidates - len(codes), gaussian_tail(sigma, low))
    empty = _distinct_empty_cells(noise, codes, n_candidates, n_empty)
    cells = np.concatenate([codes[keep], empty])
    values = np.concatenate([values[keep], noise.truncated_rounded_gaussian(sigma, low, n_empty)])
    order = np.argsort(cells, kind="stable")
    return cells[order], values[order]


def _distinct_empty_cells(noise, occupied, n_candidates, size):
    """A uniform subset of `size` unoccupied cells: draw and reject until they are there."""
    found = np.empty(0, dtype=np.int64)
    while len(found) < size:
        new = noise.uniform_integers(n_candidates, size - len(found)).astype(np.int64)
        place = np.minimum(np.searchsorted(occupied, new), max(len(occupied) - 1, 0))
        free = occupied[place] != new if len(occupied) else np.ones(len(new), dtype=bool)
        # First come, first kept: the order of drawing decides among equals, not the value.
        both = np.concatenate([found, new[free]])
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)]
    return found


def stability(codes, counts, rho, delta, sensitivity=1.0):
    """Cells far above one; see :meth:`PrivacySession.stability_histogram`."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(0 < delta < 0.5, "a delta between 0 and 1/2")
    low = stability_threshold(sigma, delta)
    codes, counts = _sorted_cells(np.asarray(codes), exact_integers(counts))
    require(codes.dtype.kind in "iuS", "codes that are integers or bytes")
    require(np.all(counts >= 1), "occupied cells")

    def draw(noise):
        values = counts + noise.rounded_gaussian(sigma, counts.shape)
        keep = values >= low
        return codes[keep], values[keep]

    return Release(
        "stability",
        Mechanism.STABILITY_HISTOGRAM,
        (codes, counts),
        sensitivity,
        sigma,
        rho,
        draw,
        delta,
        public={"low": low, "delta": delta},
    )


def stability_threshold(sigma, delta):
    """Smallest integer `low` with P[1 + round(sigma Z) >= low] <= delta."""
    # About the quantile, then upwards until it holds: larger than needed is safe.
    low = 2 + max(0, math.floor(-sigma * float(ndtri(delta)) - 0.5))
    while gaussian_tail(sigma, low - 1) > delta:
        low += 1
    return low
