"""What a session can release: a method for each law, of a few lines.

A method here does three things, and nothing else:

1. It asks the law of its name (in :mod:`sklearn_dp._privacy.mechanisms`) for a ``Release``: the
   statistic as integers, the noise scale, the cost. The law checks every premise of its proof on
   the way.
2. It hands the release to ``_release``, which pays for it from the plan entry `entry`, and draws
   its noise only if that succeeds.
3. It turns the output from grid steps into lengths.

What comes sealed (:mod:`._sealed`) brings the claim that was proved of it. Other callers state a
sensitivity and prove it in a comment at that line. Statistics are integers, in steps of length
`unit`: what floating-point sums of neighbors differ by is not known exactly, and an integer sum is
the same whatever the order of the rows.

Laws that few estimators need have their release elsewhere (:mod:`._pure_releases`, and beside the
law in `mechanisms/filters.py`, `proportional.py` and `shares.py`): a session knows nothing of them,
and pays for them all the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ._plan import PrivacyPlan
from ._sealed import Sealed, SealedCells, SealedNames, opened
from .mechanisms import gaussian, histograms
from .mechanisms._release import lengths

_SHOWN = 2**40  # in count steps: far above every threshold and noise


class Releases:
    """The releases of a :class:`~sklearn_dp._privacy._session.PrivacySession`."""

    # What the session has: it derives from this class.
    _cost: Callable[..., float]
    _release: Callable[..., Any]
    _trace: Any
    plan: PrivacyPlan
    _rate = 1.0  # below one: answers are of a sample, and paid for as such

    # -- sealed answers

    def _opened(self, sealed: Sealed) -> Any:
        return opened(sealed, self.plan, self._rate)

    def release(self, entry: str, sealed: Sealed, *, rho: float | None = None) -> np.ndarray:
        """Release an answer with Gaussian noise, in lengths; see :meth:`gaussian`."""
        exact, claim = self._opened(sealed), sealed.claim
        return self.gaussian(entry, exact, sensitivity=claim.l2, unit=claim.unit, rho=rho)

    def release_cells(
        self, entry: str, sealed: SealedCells, *, threshold: float, rho: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Release the cells that exceed a threshold, in units, and those that are shown anyway.
        Numbers of cells, increasing, and noisy counts; see :meth:`sparse_histogram`."""
        (cells, counts), claim = self._opened(sealed), sealed.claim
        n_hidden = sealed.n_cells - sealed.n_shown
        first = np.searchsorted(cells, n_hidden)
        # Public, and taken off again: these cells always pass.
        shown = np.full(sealed.n_shown, _SHOWN, dtype=np.int64)
        shown[cells[first:] - n_hidden] += counts[first:]
        released, values = self.sparse_histogram(
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

    def release_names(
        self, entry: str, sealed: SealedNames, *, rho: float, delta: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Release cells far above one, by names that nobody could list: their names and noisy
        counts; see :meth:`stability_histogram`."""
        names, counts = self._opened(sealed)
        return self.stability_histogram(
            entry,
            names,
            counts,
            rho=rho,
            delta=delta,
            sensitivity=sealed.claim.l2,
            cells=sealed.cells,
        )

    # -- exact statistics, of which the caller states what neighbors differ by

    def gaussian(
        self, entry: str, value: Any, *, sensitivity: Any, unit: Any = 1.0, rho: float | None = None
    ) -> np.ndarray:
        """Release integers with rounded Gaussian noise: rho-zCDP, and exactly sqrt(2 rho)-GDP.

        `value` is the exact statistic, in grid steps of length `unit`; Python integers (dtype
        object) may have any size. `sensitivity` is s with the proved claim ``sum_i ((v_i - v'_i) /
        s_i)^2 <= 1`` for neighbors. `rho` is the zCDP cost; all that the entry has left by default.
        """
        release = gaussian.release(value, sensitivity, self._cost(entry, rho), unit)
        return lengths(self._release(entry, release), unit)

    def sparse_histogram(
        self,
        entry: str,
        codes: np.ndarray,
        counts: np.ndarray,
        *,
        n_candidates: int,
        threshold: float,
        sensitivity: float,
        unit: float = 1.0,
        rho: float | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Release the cells, and their noisy counts, of a public histogram that exceed a threshold.

        `codes` are the occupied cells, distinct int64 in [0, n_candidates), with their exact counts
        in grid steps; `n_candidates` is that of all cells, at most 2**20, public or released.
        `threshold`, in grid steps, is a function of released values. The other numbers are those of
        :meth:`gaussian`, for the vector of the counts of all cells. Cells come sorted.

        Every cell gets noise, and those above the threshold are published: rho-zCDP, and exactly
        sqrt(2 rho)-GDP. See :mod:`sklearn_dp._privacy.mechanisms.histograms`.
        """
        release = histograms.sparse(
            codes, counts, n_candidates, threshold, sensitivity, self._cost(entry, rho), unit
        )
        cells, values = self._release(entry, release)
        return cells.copy(), values * float(unit)

    def stability_histogram(
        self,
        entry: str,
        codes: np.ndarray,
        counts: np.ndarray,
        *,
        rho: float,
        delta: float,
        sensitivity: float = 1.0,
        cells: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Occupied cells, sorted, of an unbounded domain whose noisy count is far above one.

        `codes` are the occupied cells, distinct int64 or bytes: nobody needs to know which could
        be. A unit counts once in at most `cells` cells. `delta` is the chance that any cell of a
        single unit is seen, `sensitivity` the l2 distance of the counts of neighbors: the root of
        `cells`, or of twice as many where a unit is replaced.

        (rho, delta)-zCDP: see :mod:`sklearn_dp._privacy.mechanisms.histograms`.
        """
        release = histograms.stability(codes, counts, rho, delta, sensitivity, cells)
        codes, values = self._release(entry, release)
        return codes.copy(), values.astype(np.float64)
