"""One fit's plan, charges and releases: the only door between data and noise."""

import math
import warnings

import numpy as np

from ..exceptions import SeededNoiseWarning
from . import _accounting as accounting
from ._accounts import Accounts
from ._ledger import open_ledger
from ._ledger_terms import LedgerCharge
from ._noise import NoiseSource
from ._plan import Mechanism, PlanError
from ._process import process_mark
from ._random_words import fresh_bytes
from ._randomness import AlgorithmicRandomness, seed_of
from ._session_parts import PartsOfUnits
from ._step import Step
from ._trace import Event, active_trace
from .laws import filters, gaussian, histograms, laplace, proportional, selection, shares
from .laws._release import Release

__all__ = ["PrivacySession"]


class PrivacySession(PartsOfUnits, AlgorithmicRandomness):
    """Releases of one fit, charged against its plan.

    Parameters
    ----------
    plan : PrivacyPlan
    random_state : None, int, RandomState or Generator
        None: noise from the operating system. Anything else reproduces noise and randomness and
        voids the guarantee against those who know it; a warning says so.
    ledger : None, str, path or PrivacyLedger
        Charged for the whole plan now, before any data are read.
    label : str
        Name of the estimator, for the ledger.

    Raises
    ------
    BudgetExceededError
        When the ledger does not hold enough. Nothing was spent.
    """

    def __init__(self, plan, *, random_state=None, ledger=None, label=""):
        self.plan = plan
        seed = seed_of(random_state)
        self._charge_ledger(ledger, label)
        if seed is not None:
            warnings.warn(
                "random_state is set: the noise can be reproduced, and the privacy guarantee "
                "does not hold against anyone who knows the seed. Use random_state=None for "
                "real data.",
                SeededNoiseWarning,
                stacklevel=4,
            )
        self.noise = "system" if seed is None else "seeded"
        self._trace, self._nested = active_trace(), False
        self._part: tuple[str, ...] = ()
        self._parts: set[str] = set()  # labels of parts that may have spent more than this session
        self._source, self._process = NoiseSource(seed, "noise"), process_mark()
        fresh = int.from_bytes(fresh_bytes(32), "big") if seed is None else seed
        # Algorithmic randomness has streams of its own, so that noise is never re-used for it.
        self._algorithm_seed = self._record("seed", "", None, None, None, 0.0, {}, fresh)
        self._accounts = Accounts(plan)
        self._log = []

    @property
    def _noise(self):  # type: ignore[override]
        """The source of noise. A forked child gets none: what it drew would be paid for once only,
        by the ledger and in the accounts that its parent goes on with."""
        if self._process != process_mark():
            raise RuntimeError(
                "a fit that has begun in one process cannot go on in a child that "
                "was forked off it: both would spend the same budget."
            )
        return self._source

    def __reduce__(self):
        raise TypeError(
            "a session cannot be pickled or copied: both copies would spend the same budget."
        )

    def _branch(self):
        """A session on the same noise, the same records and the same plan."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def _charge_ledger(self, ledger, label):
        book = open_ledger(ledger)
        if book is not None:
            plan = self.plan
            book.charge(
                LedgerCharge(
                    epsilon=plan.epsilon,
                    delta=plan.target.delta,
                    rho=plan.rho,
                    delta_failure=plan.delta_failure,
                    gaussian=plan.gaussian,
                    unit=plan.unit,
                    relation=plan.relation,
                    label=label,
                )
            )

    @property
    def spent(self):
        """rho charged so far (rounded up)."""
        return self._accounts.spent

    def remaining(self, entry=None):
        """rho that an entry (or the whole plan) can still pay, rounded down."""
        return self._accounts.remaining(entry)

    def _charge(self, entry, release):
        """Pay for one release; the caps are checked before anything is drawn."""
        if self._parts:
            raise PlanError(f"plan entry {entry!r}: parts of the units have not been joined")
        self._accounts.pay(entry, release.rho, release.delta, release.mechanism)

    def _cost(self, name, rho):
        return self.remaining(name) if rho is None else float(rho)

    def _release(self, entry, release):
        """Pay, then draw: the output of a release, in grid steps."""
        self._charge(entry, release)
        output = self._record_release(entry, release, release.draw(self._noise))
        self._note(entry, release)
        return output

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
        release = shares.release(
            total,
            sensitivity,
            n_honest,
            given,
            self._cost(entry, rho),
            unit,
            lambda total: self._without_shares(entry, total),
        )
        return _lengths(self._release(entry, release), release.unit)

    def _without_shares(self, entry, total):
        return total if self._trace is None else total - self._trace.take_shares(entry)

    def sparse_histogram(
        self, entry, codes, counts, *, n_candidates, threshold, sensitivity, unit=1.0, rho=None
    ):
        """Release the cells of a huge histogram whose noisy count exceeds a threshold.

        The law is that of adding rounded Gaussian noise to all `n_candidates` cells and
        publishing (cell, value) wherever the value exceeds `threshold`; cells without rows are
        simulated together when there are many.

        Parameters
        ----------
        codes : ndarray of int64, distinct, in [0, n_candidates)
        counts : ndarray of int64, their exact counts in grid steps
        threshold : float
            In grid steps; a function of released values.
        sensitivity, unit, rho
            As in :meth:`gaussian`.

        Returns
        -------
        codes : ndarray of int64, sorted
        values : ndarray of float
        """
        release = histograms.sparse(
            codes, counts, n_candidates, threshold, sensitivity, self._cost(entry, rho), unit
        )
        cells, values = self._release(entry, release)
        return cells.copy(), values * float(unit)

    def laplace(self, entry, value, *, sensitivity, epsilon, unit=1.0):
        """Release integers with rounded Laplace noise: epsilon-DP for l1 sensitivity `sensitivity`.

        Charged as zCDP by the tight conversion for the Laplace mechanism.
        """
        release = laplace.release(value, sensitivity, epsilon, unit)
        return self._release(entry, release) * float(unit)

    def exponential(self, entry, scores, *, sensitivity, epsilon):
        """Choose an index with probability proportional to exp(epsilon score / (2 sensitivity)).

        Parameters
        ----------
        scores : ndarray of int64, one for each public candidate
        sensitivity : float
            No score changes by more than this between neighbours.

        Notes
        -----
        epsilon-DP, and of bounded range epsilon, hence epsilon^2/8-zCDP.
        """
        return int(self._release(entry, selection.exponential(scores, sensitivity, epsilon)))

    def above_threshold(self, entry, queries, threshold, *, sensitivity, epsilon):
        """Index of the first query that is about above a threshold, or None; epsilon-DP.

        Parameters
        ----------
        queries : array-like of int
            Exact integer values; each moves by at most `sensitivity` between neighbours.
        threshold : float
            Public.
        """
        release = selection.above_threshold(queries, threshold, sensitivity, epsilon)
        return _index(self._release(entry, release))

    def lead(self, entry, scores, *, sensitivity, epsilon, delta):
        """Index of the best of some public candidates if its lead is clear, or None.

        Parameters
        ----------
        scores : ndarray of int64 of shape (m,), m >= 2
        sensitivity : int
            No score moves by more than this between neighbours.

        Notes
        -----
        (epsilon, delta)-DP: see :mod:`sklearn_dp._privacy.laws.selection`.
        """
        return _index(self._release(entry, selection.lead(scores, sensitivity, epsilon, delta)))

    def stability_histogram(self, entry, codes, counts, *, rho, delta, sensitivity=1.0):
        """Occupied cells of an unbounded domain whose noisy count is far above one.

        Parameters
        ----------
        codes : ndarray of int64 or bytes, distinct
        counts : ndarray of int64; a unit counts in one cell.
        sensitivity : float, default=1.0
            l2 distance of the counts of neighbours; the root of 2 where a unit is replaced.

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
        total : ndarray of Python integers of shape (d, d)
        count : int
            The matrix is ``total / (count 2**bits)``; see
            :mod:`sklearn_dp._privacy.laws.proportional`.
        distance : float
            s with the proved claim ``S / (1 + s) <= S' <= (1 + s) S`` for neighbours.
        eta : float
            From :func:`least_eta` of `distance`, `rho` and `delta`.

        Returns
        -------
        output : ndarray of float of shape (d, d)
            Positive semidefinite but for rounding; its mean is (1 + eta^2 d) times the matrix.
        """
        release = proportional.release(total, count, bits, distance, eta, rho, delta)
        output = self._release(entry, release)
        return output.astype(np.float64) * 2.0**-proportional.OUTPUT_BITS

    def step(self, entry, *, epsilon, delta):
        """Pay for a step that is (epsilon, delta)-DP as a whole, and hand out its inner draws.

        Charged once, as zCDP; the caller proves the guarantee.

        Returns
        -------
        step : Step
        """
        rho, delta = accounting.approx_dp_zcdp(epsilon, delta)
        public = {"epsilon": epsilon, "delta": delta}
        self._release(
            entry,
            Release(
                "step",
                Mechanism.APPROXIMATE,
                None,
                None,
                None,
                rho,
                lambda noise: None,
                delta,
                public=public,
                told=(0.0, 0.0),
            ),
        )
        return Step(self, entry)

    def nested(self, entry, plan, *, epsilon, delta):
        """Pay for a step as :meth:`step` does, whose draws follow a plan of their own.

        Returns
        -------
        session : PrivacySession
            Spends within `plan`, and nothing of this session.
        """
        self.step(entry, epsilon=epsilon, delta=delta)
        inner = self._branch()
        inner.plan, inner._nested, inner._log, inner._parts = plan, True, [], set()
        inner._accounts = Accounts(plan)
        return inner

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
    ):
        """Keep the units whose noisy score reaches a threshold.

        Parameters
        ----------
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

        Returns
        -------
        keep : ndarray of bool. NOT a release: only a mechanism that is private on friendly
            survivors may use it.
        """
        return self._release(
            entry,
            filters.noisy(scores, sigma, threshold, bad, sensitivity, rho, delta, most, fixed),
        )

    def unit_bernoulli(self, entry, numerators, denominator, *, sensitivity, rho, delta):
        """Keep unit i with probability numerators[i] / denominator, exactly and independently.

        `sensitivity` is the proved l1 distance of the probability vectors; the result is not a
        release, as in :meth:`unit_filter`.
        """
        return self._release(
            entry, filters.bernoulli(numerators, denominator, sensitivity, rho, delta)
        )

    def _record_release(self, entry, release, output):
        """Show a release to an audit, where there is one."""
        cost = release.rho if release.cost is None else release.cost
        return self._record(
            release.kind,
            entry,
            release.value,
            release.sensitivity,
            release.scale,
            cost,
            release.public,
            output,
        )

    def _record(self, kind, entry, value, sensitivity, scale, cost, public, output):
        if self._trace is None:
            return output
        public = {**public, "nested": True} if self._nested else public
        public = {**public, "part": "/".join(self._part)} if self._part else public
        return self._trace.record(
            Event(kind, entry, value, sensitivity, scale, cost, public, output)
        )

    def _note(self, entry, release):
        """A line of the report."""
        unit = np.asarray(release.unit, dtype=np.float64)
        sensitivity, scale = release.told or (release.sensitivity, release.scale)
        self._log.append(
            {
                "release": entry,
                "mechanism": str(release.mechanism),
                "sensitivity": float(np.max(np.asarray(sensitivity) * unit)),
                "sigma": float(np.max(np.asarray(scale) * unit)),
                "rho": float(release.rho),
                "delta": float(release.delta),
                **({"part": "/".join(self._part)} if self._part else {}),
            }
        )

    def report(self):
        """Plan, releases, totals and noise source of this fit."""
        return self.plan.report(tuple(self._log), self.noise)


def _lengths(output, unit):
    return np.asarray(output * np.asarray(unit, dtype=np.float64), dtype=np.float64)


def _index(chosen):
    return None if chosen < 0 else int(chosen)
