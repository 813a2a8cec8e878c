"""Histograms of unbounded domains, of which only cells far above one are published.

The domain has no bound and only occupied cells are known: (rho, delta)-zCDP.

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

from ..._costs.checks import is_integer
from ..._costs.plan import Mechanism
from ..._costs.rounding import round_down
from .._integers import exact_integers
from .._noise import NoiseSource, gaussian_tail
from .._sealed import SealedNames
from . import gaussian
from ._release import Release, check_cost, positive_sensitivity, require, sorted_cells


def stability(
    codes: np.ndarray,
    counts: np.ndarray,
    rho: float,
    delta: float,
    sensitivity: float = 1.0,
    cells: int = 1,
) -> Release:
    """Cells far above one, as (codes, values) in order.

    Distinct `codes` of the occupied cells, int64 or bytes (of a public order), with `counts` of
    units, at least 1; every unit is in at most `cells` cells, once in each. `delta`, in (0, 1/2),
    is the chance that any cell which only one data set has is seen. `sensitivity` is the l2
    distance of the counts of neighbors in the cells of both: the root of `cells` where a unit is
    added or removed, that of twice as many where it is replaced."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(0 < delta < 0.5, "a delta between 0 and 1/2")
    require(is_integer(cells) and cells >= 1, "at least one cell of a unit")
    low = stability_threshold(sigma, delta if cells == 1 else round_down(delta / cells))
    codes, counts = sorted_cells(np.asarray(codes), exact_integers(counts))
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

    Sigma is in units, delta in (0, 1/2). At least 2: a count of one never passes without noise."""
    # About the quantile, then upward until it holds: larger than needed is safe.
    low = 2 + max(0, math.floor(-sigma * float(ndtri(delta)) - 0.5))
    while gaussian_tail(sigma, low - 1) > delta:
        low += 1
    return low


def stability_histogram(
    session: Any, entry: str, codes: np.ndarray, counts: np.ndarray, **claimed: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Occupied cells, sorted, of an unbounded domain whose noisy count is far above one, as
    :func:`stability` says: (rho, delta)-zCDP, see the top of this module."""
    codes, values = session._release(entry, stability(codes, counts, **claimed))
    return codes.copy(), values.astype(np.float64)


def release_names(
    session: Any, entry: str, sealed: SealedNames, *, rho: float, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Release names, and noisy counts, of cells far above one; see :func:`stability_histogram`."""
    names, counts = session._opened(sealed)
    return stability_histogram(
        session,
        entry,
        names,
        counts,
        rho=rho,
        delta=delta,
        sensitivity=sealed.claim.l2,
        cells=sealed.cells,
    )
