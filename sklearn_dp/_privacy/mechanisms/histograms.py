"""Histograms of which only some cells are published, by their noisy counts.

**Sparse.** The cells are public, and there are at most 2^20 of them.

1. Every cell, empty or not, gets rounded Gaussian noise of its own.
2. Published are (cell, value) for all cells whose value exceeds a threshold, in the order of the
   cells.

Step 1 is a Gaussian release of the whole histogram and step 2 looks at nothing else, so it is
rho-zCDP and exactly sqrt(2 rho)-GDP, for every threshold that is public or released. The cell tree
of k-means asks for it once for each of its levels.

Larger histograms are refused. To draw only the number of empty cells that pass, and then which
they are, would be fast for any number of cells; but the chance that one passes is known to
2^-53 only, so that law is off by a total variation distance t, and the release would cost a delta
of t (1 + exp(epsilon)) which a Gaussian account has no room for.

**Stability.** The domain has no bound and only occupied cells are known: (rho, delta)-zCDP.

1. Every occupied cell gets rounded Gaussian noise.
2. Published are the cells whose value reaches `low`, which is so large that a cell with a single
   unit reaches it with a probability of at most delta, over the number m of cells that a unit may
   be in (one for most callers).

Cells of both data sets: one count moves by one (one down and one up, where a unit is replaced), so
the l2 distance of their counts is `sensitivity`; with m cells it is the root of m. A cell of only
one of them has a count of one, there are at most m of them, and each stays unseen but for
P[1 + round(sigma Z) >= low] <= delta / m, so all of them do but for delta. The noise of such a cell
is independent of that of the others, so each law is a mixture, with weight 1 - delta, of what the
common cells alone give: Gaussian releases with a threshold, sqrt(2 rho)-GDP. A plan may therefore
count a stability histogram among its Gaussian releases, with the failure probability.

Where a unit is replaced, each data set may have one such cell. The two failures are about different
laws, P and Q, and each law loses weight delta once.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._checks import is_integer
from .._noise import NoiseSource, gaussian_tail
from .._plan import Mechanism, require
from .._rounding import exact_integers, round_down
from . import gaussian
from ._release import Release, check_cost, positive_sensitivity

_MOST_CANDIDATES = 2**20  # 8 MB of noise, a tenth of a second or two


def sparse(
    codes: np.ndarray,
    counts: np.ndarray,
    n_candidates: int,
    threshold: float,
    sensitivity: float,
    rho: float,
    unit: float = 1.0,
) -> Release:
    """Cells above a threshold; see :meth:`PrivacySession.sparse_histogram`.

    Distinct int64 `codes` in [0, n_candidates), in any order, with counts in grid steps that are
    not negative; cells that are left out are empty. There are at most 2**20 cells, a public or
    released number. Counts are integers, so the threshold, in grid steps, is as good as its floor:
    the output holds the values of at least ``floor(threshold) + 1``. `sensitivity` is the l2
    distance of the counts of neighbors, in grid steps; `unit`, the length of a step, is for the
    report.

    The output is (cells, values), in the order of the cells.
    """
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(1 <= n_candidates <= _MOST_CANDIDATES, "between 1 and 2**20 candidates")
    require(math.isfinite(threshold), "a finite threshold")
    low, n_candidates = math.floor(threshold) + 1, int(n_candidates)
    codes, counts = _sorted_cells(exact_integers(codes), exact_integers(counts))
    require(not len(codes) or (codes[0] >= 0 and codes[-1] < n_candidates), "codes of candidates")
    require(np.all(counts >= 0), "counts that are not negative")

    def draw(noise: NoiseSource) -> tuple[np.ndarray, np.ndarray]:
        # Noise for all cells, whichever are occupied: the same number of draws for neighbors.
        values = noise.rounded_gaussian(sigma, n_candidates)
        values[codes] += counts
        cells = np.flatnonzero(values >= low)
        return cells, values[cells]

    return Release(
        "sparse",
        Mechanism.GAUSSIAN,
        (codes, counts),
        sensitivity,
        sigma,
        rho,
        draw,
        public={"unit": unit, "low": low, "n_candidates": n_candidates},
        unit=unit,
    )


def _sorted_cells(codes: Any, counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cells in the order of their codes, which are distinct. Both proofs are about one count for
    each cell. Two counts of one code would be two numbers that the same unit moves."""
    require(codes.ndim == 1 and codes.shape == counts.shape, "a count for each code")
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], counts[order]
    require(np.all(codes[1:] != codes[:-1]), "distinct codes")
    return codes, counts


def stability(
    codes: np.ndarray,
    counts: np.ndarray,
    rho: float,
    delta: float,
    sensitivity: float = 1.0,
    cells: int = 1,
) -> Release:
    """Cells far above one; see :meth:`PrivacySession.stability_histogram`.

    Distinct `codes` of the occupied cells, int64 or bytes. Bytes serve cells of many coordinates:
    their order is public. `counts`, at least 1, are the numbers of units; every unit is in at most
    `cells` cells, in each of them once. The cost is `rho` but for failures; `delta`, in (0, 1/2),
    is the chance that any cell which only one data set has is seen. `sensitivity` is the l2
    distance of the counts of neighbors in the cells of both: the root of `cells` where a unit is
    added or removed, that of twice as many where it is replaced.

    The output is (codes, values), in the order of the codes.
    """
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(0 < delta < 0.5, "a delta between 0 and 1/2")
    require(is_integer(cells) and cells >= 1, "at least one cell of a unit")
    low = stability_threshold(sigma, delta if cells == 1 else round_down(delta / cells))
    codes, counts = _sorted_cells(np.asarray(codes), exact_integers(counts))
    require(codes.dtype.kind in "iuS", "codes that are integers or bytes")
    require(np.all(counts >= 1), "occupied cells")

    def draw(noise: NoiseSource) -> tuple[np.ndarray, np.ndarray]:
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
        public={"low": low, "delta": delta, "cells": int(cells)},
    )


def stability_threshold(sigma: float, delta: float) -> int:
    """Smallest integer `low` with P[1 + round(sigma Z) >= low] <= delta, or the next one.

    Sigma is in units, delta in (0, 1/2). At least 2: a count of one never passes without noise.

    With noise of standard deviation 2 a count of one reaches 11 with probability 1.02e-6, and 12
    with 7.6e-8:

    >>> stability_threshold(2.0, 1e-6)
    12
    """
    # About the quantile, then upward until it holds: larger than needed is safe.
    low = 2 + max(0, math.floor(-sigma * float(ndtri(delta)) - 0.5))
    while gaussian_tail(sigma, low - 1) > delta:
        low += 1
    return low
