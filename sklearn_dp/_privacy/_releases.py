"""What a session can release: a method for each law, of a few lines.

A method here does three things, and nothing else:

1. It asks the law of its name (in :mod:`sklearn_dp._privacy.laws`) for a ``Release``: the statistic
   as integers, the noise scale, the cost. The law checks every premise of its proof on the way.
2. It hands the release to ``_release``, which pays for it from the plan entry `entry`, and draws
   its noise only if that succeeds.
3. It turns the output from grid steps into lengths.

The caller states a sensitivity and proves it in a comment at that line. Statistics are integers, in
steps of length `unit`: what floating-point sums of neighbours differ by is not known exactly, and
an integer sum is the same whatever the order of the rows.

Where a method says that something is *not a release*, only a mechanism whose own proof allows it
may look at it.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .laws import filters, gaussian, histograms, laplace, proportional, selection, shares

__all__ = ["Releases"]


class Releases:
    """The releases of a :class:`~sklearn_dp._privacy._session.PrivacySession`."""

    # What the session has: it derives from this class.
    _cost: Callable[..., float]
    _release: Callable[..., Any]
    _trace: Any

    def gaussian(self, entry, value, *, sensitivity, unit=1.0, rho=None):
        """Release integers with rounded Gaussian noise: rho-zCDP, and exactly sqrt(2 rho)-GDP.

        Parameters
        ----------
        entry : str
        value : int or ndarray of ints
            The exact statistic, in grid steps; Python integers (dtype object) of any size.
        sensitivity : float or ndarray
            s with the proved claim ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for neighbours.
        unit : float or ndarray
            Length of a step.
        rho : float, optional
            zCDP cost; all that the entry has left by default.

        Returns
        -------
        output : ndarray of float, of the shape of `value`
        """
        release = gaussian.release(value, sensitivity, self._cost(entry, rho), unit)
        return _lengths(self._release(entry, release), unit)

    def shared_gaussian(
        self, entry, total, *, sensitivity, n_honest, given=None, unit=1.0, rho=None
    ):
        """Release a sum over clients that gets its noise from them, in shares.

        Parameters
        ----------
        entry : str
            Its delta must hold `SHARES_DELTA` for each use.
        total : ndarray of ints
            With the shares of `given` clients, in fine steps (see :func:`share_scale`); without
            noise, in steps, where `given` is None: the noise of `n_honest` shares is then
            drawn here, in one.
        sensitivity, unit, rho
            As in :meth:`gaussian`, in steps of the statistic.
        n_honest : int
            Shares, besides that of the client whose data differ, that nobody else knows.
        given : int, optional
            Clients whose shares are in `total`: a public number.

        Returns
        -------
        output : ndarray of float, of the shape of `total`

        Raises
        ------
        RuntimeError
            If there are not more than `n_honest` shares in the sum.

        Notes
        -----
        sqrt(2 rho)-GDP up to a delta of `SHARES_DELTA`, for neighbours with the same clients: see
        :mod:`sklearn_dp._privacy.laws.shares` for the proof.
        """
        if given is not None and given <= n_honest:
            raise RuntimeError(
                f"only {given} clients have added their share of the noise, and "
                f"n_honest={n_honest} of them besides each one must have."
            )

        def without_shares(total):
            # Only an audit, which has seen every client draw, can tell the exact sum.
            return total if self._trace is None else total - self._trace.take_shares(entry)

        rho = self._cost(entry, rho)
        release = shares.release(total, sensitivity, n_honest, given, rho, unit, without_shares)
        return _lengths(self._release(entry, release), release.unit)

    def sparse_histogram(
        self, entry, codes, counts, *, n_candidates, threshold, sensitivity, unit=1.0, rho=None
    ):
        """Release the cells of a public histogram whose noisy count exceeds a threshold.

        Parameters
        ----------
        entry : str
        codes : ndarray of int64, distinct, in [0, n_candidates)
            The occupied cells.
        counts : ndarray of int64
            Their exact counts in grid steps.
        n_candidates : int
            Number of all cells, at most 2**20; public or released.
        threshold : float
            In grid steps; a function of released values.
        sensitivity, unit, rho
            As in :meth:`gaussian`, for the vector of the counts of all cells.

        Returns
        -------
        codes : ndarray of int64, sorted
        values : ndarray of float

        Notes
        -----
        Every cell gets noise, and those above the threshold are published: rho-zCDP, and exactly
        sqrt(2 rho)-GDP. See :mod:`sklearn_dp._privacy.laws.histograms`.
        """
        release = histograms.sparse(
            codes, counts, n_candidates, threshold, sensitivity, self._cost(entry, rho), unit
        )
        cells, values = self._release(entry, release)
        return cells.copy(), values * float(unit)

    def laplace(self, entry, value, *, sensitivity, epsilon, unit=1.0):
        """Release integers with rounded Laplace noise: epsilon-DP.

        Parameters
        ----------
        entry : str
        value : int or ndarray of ints
            The exact statistic, in grid steps.
        sensitivity : float
            l1 distance of the statistics of neighbours, in grid steps.
        epsilon : float
            Of the guarantee; the plan is charged for it by the tight zCDP conversion for Laplace
            noise, which is below that for any epsilon-DP mechanism.
        unit : float
            Length of a step.

        Returns
        -------
        output : ndarray of float, of the shape of `value`
        """
        release = laplace.release(value, sensitivity, epsilon, unit)
        return self._release(entry, release) * float(unit)

    def exponential(self, entry, scores, *, sensitivity, epsilon):
        """Choose an index with probability proportional to exp(epsilon score / (2 sensitivity)).

        Parameters
        ----------
        entry : str
        scores : ndarray of int64, one for each public candidate
        sensitivity : float
            No score changes by more than this between neighbours.
        epsilon : float

        Returns
        -------
        index : int

        Notes
        -----
        epsilon-DP, and of bounded range epsilon, hence epsilon^2/8-zCDP.
        """
        return int(self._release(entry, selection.exponential(scores, sensitivity, epsilon)))

    def above_threshold(self, entry, queries, threshold, *, sensitivity, epsilon):
        """Index of the first query that is about above a threshold, or None; epsilon-DP.

        Parameters
        ----------
        entry : str
        queries : array-like of int
            Exact integer values; each moves by at most `sensitivity` between neighbours.
        threshold : float
            Public.
        sensitivity : float
        epsilon : float
            For the whole search, however many queries there are.
        """
        release = selection.above_threshold(queries, threshold, sensitivity, epsilon)
        return _index(self._release(entry, release))

    def lead(self, entry, scores, *, sensitivity, epsilon, delta):
        """Index of the best of some public candidates if its lead is clear, or None.

        Parameters
        ----------
        entry : str
        scores : ndarray of int64 of shape (m,), m >= 2
        sensitivity : int
            No score moves by more than this between neighbours.
        epsilon, delta : float

        Notes
        -----
        (epsilon, delta)-DP: see :mod:`sklearn_dp._privacy.laws.selection`.
        """
        return _index(self._release(entry, selection.lead(scores, sensitivity, epsilon, delta)))

    def stability_histogram(self, entry, codes, counts, *, rho, delta, sensitivity=1.0):
        """Occupied cells of an unbounded domain whose noisy count is far above one.

        Parameters
        ----------
        entry : str
        codes : ndarray of int64 or bytes, distinct
            The cells that are occupied: nobody needs to know which could be.
        counts : ndarray of int64; a unit counts in one cell.
        rho, delta : float
            Cost; delta is the chance that a cell of a single unit is seen.
        sensitivity : float, default=1.0
            l2 distance of the counts of neighbours; the root of 2 where a unit is replaced.

        Returns
        -------
        codes : ndarray, sorted
        values : ndarray of float

        Notes
        -----
        (rho, delta)-zCDP: see :mod:`sklearn_dp._privacy.laws.histograms`.
        """
        release = histograms.stability(codes, counts, rho, delta, sensitivity)
        codes, values = self._release(entry, release)
        return codes.copy(), values.astype(np.float64)

    def proportional(self, entry, total, count, *, bits, distance, eta, rho, delta):
        """Release a positive definite matrix with noise in proportion to it; (rho, delta)-zCDP.

        Parameters
        ----------
        entry : str
        total : ndarray of Python integers of shape (d, d)
        count : int
            The matrix is ``total / (count 2**bits)``; see
            :mod:`sklearn_dp._privacy.laws.proportional`.
        bits : int
            At most 512.
        distance : float
            s with the proved claim ``S / (1 + s) <= S' <= (1 + s) S`` for neighbours.
        eta : float
            From :func:`least_eta` of `distance`, `rho` and `delta`.
        rho, delta : float
            Cost.

        Returns
        -------
        output : ndarray of float of shape (d, d)
            Positive semidefinite but for rounding; its mean is (1 + eta^2 d) times the matrix.
        """
        release = proportional.release(total, count, bits, distance, eta, rho, delta)
        output = self._release(entry, release)
        return output.astype(np.float64) * 2.0**-proportional.OUTPUT_BITS

    # -- decisions about single units, released only through what is computed from the survivors

    def unit_filter(
        self,
        entry,
        scores,
        *,
        sigma,
        threshold,
        bad,
        sensitivity,
        rho,
        delta,
        most=math.inf,
        fixed=False,
        units=None,
    ):
        """Keep the units whose noisy score reaches a threshold.

        Parameters
        ----------
        entry : str
        scores : ndarray of int64, one for each unit, in grid steps
        sigma, threshold, bad : float
            In grid steps. A unit with a score of at most `bad` survives only within delta.
        sensitivity : float
            No common unit's score moves by more than this.
        rho, delta : float
            Cost as proved by the caller.
        most : float, optional
            Number of common units that rho pays for; there are more only within delta.
        fixed : bool, default=False
            The elements are not units but results of blocks, of which one is replaced.
        units : ndarray of int, optional
            Numbers of the units that there are scores of; all of them by default.

        Returns
        -------
        keep : ndarray of bool. NOT a release: only a mechanism that is private on friendly
            survivors may use it.
        """
        release = filters.noisy(scores, sigma, threshold, bad, sensitivity, rho, delta, most, fixed)
        return self._release(entry, replace(release, units=units))

    def unit_bernoulli(
        self, entry, numerators, denominator, *, sensitivity, rho, delta, units=None
    ):
        """Keep unit i with probability numerators[i] / denominator, exactly and independently.

        Parameters
        ----------
        entry : str
        numerators : ndarray of int64, one for each unit
            At most 0: never kept. At least `denominator`: always.
        denominator : int
            Public; at most 2**63.
        sensitivity : float
            The proved l1 distance of the vectors of probabilities, over the common units.
        rho, delta : float
            Cost as proved by the caller.
        units : ndarray of int, optional
            As in :meth:`unit_filter`.

        Returns
        -------
        keep : ndarray of bool. NOT a release, as in :meth:`unit_filter`.
        """
        release = filters.bernoulli(numerators, denominator, sensitivity, rho, delta)
        return self._release(entry, replace(release, units=units))


def _lengths(output, unit):
    return np.asarray(output * np.asarray(unit, dtype=np.float64), dtype=np.float64)


def _index(chosen):
    return None if chosen < 0 else int(chosen)
