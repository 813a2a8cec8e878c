"""Histograms of which only the cells above a threshold are published, by their noisy counts.

The cells are public, and there are at most 2^20 of them.

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
"""

import math
from typing import Any

import numpy as np

from ..._costs.plan import Mechanism
from .._integers import exact_integers
from .._noise import NoiseSource
from .._sealed import SealedCells
from . import gaussian
from ._release import Release, check_cost, positive_sensitivity, require, sorted_cells

_SHOWN = 2**40  # in count steps: far above every threshold and noise
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
    """Cells above a threshold, as (cells, values) in order.

    Distinct int64 `codes` in [0, n_candidates), with exact counts in grid steps that are not
    negative; other cells are empty. `n_candidates`, at most 2**20, and `threshold`, which is as
    good as its floor, are public or released. `sensitivity` is the l2 distance of the counts of
    neighbors, of all cells."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(gaussian.sigma_of(sensitivity, check_cost("rho", rho)))
    require(1 <= n_candidates <= _MOST_CANDIDATES, "between 1 and 2**20 candidates")
    require(math.isfinite(threshold), "a finite threshold")
    low, n_candidates = math.floor(threshold) + 1, int(n_candidates)
    codes, counts = sorted_cells(exact_integers(codes), exact_integers(counts))
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


def sparse_histogram(
    session: Any,
    entry: str,
    codes: np.ndarray,
    counts: np.ndarray,
    *,
    rho: float | None = None,
    **claimed: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Release the cells, sorted, and their noisy counts, of a public histogram that exceed a
    threshold, as :func:`sparse` says: rho-zCDP, and exactly sqrt(2 rho)-GDP."""
    release = sparse(codes, counts, rho=session._cost(entry, rho), **claimed)
    cells, values = session._release(entry, release)
    return cells.copy(), values * float(release.unit)


def release_cells(
    session: Any, entry: str, sealed: SealedCells, *, threshold: float, rho: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Release the cells that exceed a threshold, in units, and those shown anyway, with counts."""
    (cells, counts), claim = session._opened(sealed), sealed.claim
    n_hidden = sealed.n_cells - sealed.n_shown
    first = np.searchsorted(cells, n_hidden)
    # Public, and taken off again: these cells always pass.
    shown = np.full(sealed.n_shown, _SHOWN, dtype=np.int64)
    shown[cells[first:] - n_hidden] += counts[first:]
    released, values = sparse_histogram(
        session,
        entry,
        np.append(cells[:first], np.arange(n_hidden, sealed.n_cells)),
        np.append(counts[:first], shown),
        n_candidates=sealed.n_cells,
        threshold=threshold / claim.unit,
        sensitivity=claim.l2,
        unit=claim.unit,
        rho=rho,
    )
    return released, values - np.where(released >= n_hidden, _SHOWN * claim.unit, 0.0)
