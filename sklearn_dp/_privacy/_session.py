"""One fit's plan, charges and releases: the only door between data and noise."""

import copy
import hashlib
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from ..exceptions import SeededNoiseWarning
from . import _accounting as accounting
from . import _proportional as proportional
from ._budget import PrivacyBudget
from ._checks import is_integer
from ._ledger import open_ledger
from ._ledger_terms import LedgerCharge
from ._neighbours import check_relation, check_unit
from ._noise import SIMULATION_TV, NoiseSource, gaussian_tail
from ._process import process_mark
from ._random_words import fresh_bytes
from ._report import PrivacyReport
from ._shares import SHARES_DELTA, share_scale
from ._step import Step
from ._tape import Event, active_tape

__all__ = ["PlanEntry", "PlanError", "PrivacyPlan", "PrivacySession", "round_up",
           "simulation_delta"]

GAUSSIAN = "gaussian"
"""The mechanism whose composition is exactly mu-GDP."""

APPROXIMATE = "approximate DP"
"""The mechanism of :meth:`PrivacySession.step`."""

_DENSE_CANDIDATES = 2**20  # below this all cells of a sparse histogram get their noise one by one


class PlanError(RuntimeError):
    """A release that the plan does not hold: a bug of an estimator, never of its user."""


def simulation_delta(epsilon):
    """delta that a plan must hold for each simulated sparse histogram.

    If an (epsilon, delta)-DP release is replaced by one within total variation t of it, the result
    is (epsilon, delta + t (1 + exp(epsilon)))-DP.
    """
    return SIMULATION_TV * (1 + math.exp(min(epsilon, 700.0)))


def round_up(value):
    """A float no smaller than the real number that `value` is the rounding of."""
    return math.nextafter(math.nextafter(value, math.inf), math.inf)


@dataclass(frozen=True)
class PlanEntry:
    """One named line of a plan.

    Attributes
    ----------
    name : str
    mechanism : str
        "gaussian", or the name of another mechanism (the plan is then converted by zCDP).
    rho : float
        Share of the budget in zCDP.
    delta : float, default=0.0
        Probability of a failure event.
    uses : int or None, default=1
        How many releases it may pay; None: any number within the cap.
    max_rho : float, optional
        Cap of this entry when it may also spend what others left; `rho` by default.
    sensitivity : str, default=""
        In words, for the table.
    paths : tuple of str, default=()
        The courses of a fit that this entry belongs to; empty: all of them.
    """

    name: str
    mechanism: str
    rho: float
    delta: float = 0.0
    uses: int | None = 1
    max_rho: float | None = None
    sensitivity: str = ""
    paths: tuple = ()

    @property
    def cap(self):
        """Most that this entry can spend."""
        return self.rho if self.max_rho is None else self.max_rho


@dataclass(frozen=True)
class PrivacyPlan:
    """What a fit is going to release, known before any data are seen.

    Attributes
    ----------
    target : PrivacyBudget
        What the user asked for; the guarantee of the fit.
    entries : tuple of PlanEntry
    unit : str
        "row" or "group".
    notes : tuple of str
    relation : str
        What neighbouring data sets do with a unit: one of `RELATIONS`.

    Notes
    -----
    Where released values decide between several paths, the plan costs what the dearest costs.
    """

    target: PrivacyBudget
    entries: tuple
    unit: str = "row"
    notes: tuple = ()
    relation: str = "add or remove"

    def __post_init__(self):
        check_unit(self.unit)
        check_relation(self.relation)
        names = [entry.name for entry in self.entries]
        if len(set(names)) != len(names):
            raise PlanError("two plan entries have the same name")
        if self.one_step:
            return
        allowed = self.target.to_rho(gaussian=self.gaussian, delta_failure=self.delta_failure)
        if self.exact_rho > Fraction(allowed):
            raise PlanError("the plan spends more than its target")

    @cached_property
    def one_step(self):
        """Whether all is one (epsilon, delta)-DP step, which needs no conversion to its target.

        The zCDP cost of such a step increases with its epsilon.
        """
        if len(self.entries) != 1:
            return False
        step, target = self.entries[0], self.target
        return (step.mechanism == APPROXIMATE and step.uses == 1 and target.epsilon is not None
                and step.cap <= accounting.pure_zcdp_rho(target.epsilon)
                and step.delta <= target.delta)

    def _dearest(self, cost):
        """Largest exact cost of a path."""
        paths = {path for entry in self.entries for path in entry.paths} or {""}
        return max(
            sum((Fraction(getattr(entry, cost)) for entry in self.entries
                 if not entry.paths or path in entry.paths), Fraction(0))
            for path in paths)

    @cached_property
    def exact_rho(self):
        """Cap of the sum over all releases, as a Fraction."""
        return self._dearest("rho")

    @cached_property
    def exact_delta(self):
        """Cap of the sum of the failure probabilities, as a Fraction."""
        return self._dearest("delta")

    @property
    def rho(self):
        """Cap of the sum over all releases, rounded up."""
        return _float_up(self.exact_rho)

    @property
    def delta_failure(self):
        """Cap of the sum of the failure probabilities, rounded up."""
        return _float_up(self.exact_delta)

    @property
    def gaussian(self):
        """Whether every release is a plain Gaussian, so that mu-GDP accounting is exact."""
        return all(entry.mechanism == GAUSSIAN for entry in self.entries)

    @property
    def epsilon(self):
        """The guarantee is (epsilon, target.delta)-DP."""
        if self.one_step:
            return self.target.epsilon
        return self.target.epsilon_of(self.rho, self.gaussian, self.delta_failure)

    def __getitem__(self, name):
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise PlanError(f"no plan entry {name!r}")

    def rows(self):
        """The table as a list of dicts."""
        return [
            {"release": e.name, "mechanism": e.mechanism, "sensitivity": e.sensitivity,
             "rho": e.rho, "cap": e.cap, "delta": e.delta, "path": " | ".join(e.paths) or "all"}
            for e in self.entries
        ]

    def to_frame(self):
        """The table as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def report(self, log=(), noise="system"):
        """A printable report of this plan and the releases made so far."""
        return PrivacyReport.from_plan(self, log, noise)

    def __repr__(self):
        return repr(self.report())

    def _repr_html_(self):
        return self.report()._repr_html_()


@dataclass
class _Spent:
    """What releases have cost."""

    spent: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    uses: int = 0

    def raise_to(self, other):
        """At least what another one has spent."""
        self.spent, self.delta = max(self.spent, other.spent), max(self.delta, other.delta)
        self.uses = max(self.uses, other.uses)


@dataclass(kw_only=True)
class _Account(_Spent):
    """What one entry has spent."""

    entry: PlanEntry


class PrivacySession:
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
        seed = _seed_of(random_state)
        self._charge_ledger(ledger, label)
        if seed is not None:
            warnings.warn(
                "random_state is set: the noise can be reproduced, and the privacy guarantee "
                "does not hold against anyone who knows the seed. Use random_state=None for "
                "real data.", SeededNoiseWarning, stacklevel=4)
        self.noise = "system" if seed is None else "seeded"
        self._tape, self._nested = active_tape(), False
        self._part: tuple[str, ...] = ()
        self._source, self._process = NoiseSource(seed, "noise"), process_mark()
        fresh = int.from_bytes(fresh_bytes(32), "big") if seed is None else seed
        # Algorithmic randomness has streams of its own, so that noise is never re-used for it.
        self._algorithm_seed = self._play("seed", "", None, None, None, 0.0, {}, fresh)
        self._open_accounts()
        self._log = []

    @property
    def _noise(self):
        """The source of noise. A forked child gets none: what it drew would be paid for once only,
        by the ledger and in the accounts that its parent goes on with."""
        if self._process != process_mark():
            raise RuntimeError("a fit that has begun in one process cannot go on in a child that "
                               "was forked off it: both would spend the same budget.")
        return self._source

    def __reduce__(self):
        raise TypeError("a session cannot be pickled or copied: both copies would spend the same "
                        "budget.")

    def _branch(self):
        """A session on the same noise, the same records and the same plan."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    # -- money ------------------------------------------------------------------------------

    def _charge_ledger(self, ledger, label):
        book = open_ledger(ledger)
        if book is not None:
            plan = self.plan
            book.charge(LedgerCharge(
                epsilon=plan.epsilon,
                delta=plan.target.delta, rho=plan.rho, delta_failure=plan.delta_failure,
                gaussian=plan.gaussian, unit=plan.unit, relation=plan.relation, label=label))

    def _open_accounts(self):
        """Nothing is spent yet; totals are kept, so that a release need not add all accounts."""
        self._accounts = {entry.name: _Account(entry=entry) for entry in self.plan.entries}
        self._total = _Spent()

    @property
    def spent(self):
        """rho charged so far (rounded up)."""
        return _float_up(self._spent_exact())

    def _spent_exact(self):
        return self._total.spent

    def remaining(self, entry=None):
        """rho that an entry (or the whole plan) can still pay, rounded down."""
        left = self.plan.exact_rho - self._spent_exact()
        if entry is not None:
            account = self._accounts[entry]
            left = min(left, Fraction(account.entry.cap) - account.spent)
        return _float_down(left)

    def _charge(self, name, rho, delta=0.0):
        """Pay for one release; the cap is checked before anything is drawn."""
        account = self._accounts.get(name)
        if account is None:
            raise PlanError(f"no plan entry {name!r}")
        entry = account.entry
        if entry.uses is not None and account.uses >= entry.uses:
            raise PlanError(f"plan entry {name!r} is used more often than planned")
        if not (rho > 0 or delta > 0) or not math.isfinite(rho):
            raise PlanError(f"plan entry {name!r}: the cost must be positive")
        after = account.spent + Fraction(rho)
        if after > Fraction(entry.cap) or (
            self._spent_exact() + Fraction(rho) > self.plan.exact_rho
        ):
            raise PlanError(f"plan entry {name!r} would overspend")
        failure = account.delta + Fraction(delta)
        total = self._total.delta + Fraction(delta)
        if failure > Fraction(entry.delta) or total > self.plan.exact_delta:
            raise PlanError(f"plan entry {name!r}: delta is not in the plan")
        account.spent, account.delta, account.uses = after, failure, account.uses + 1
        self._total.spent, self._total.delta = self._total.spent + Fraction(rho), total

    def _cost(self, name, rho):
        return self.remaining(name) if rho is None else float(rho)

    # -- releases ---------------------------------------------------------------------------

    def gaussian(self, entry, value, *, sensitivity, unit=1.0, rho=None):
        """Release integers with rounded Gaussian noise.

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

        Notes
        -----
        ``v + round(sigma Z) = round(v + sigma Z)`` for an integer v, so this is post-processing
        of the ideal Gaussian mechanism: rho-zCDP, and exactly sqrt(2 rho)-GDP.
        """
        value = _exact_integers(value)
        rho = self._cost(entry, rho)
        self._charge(entry, rho)
        sigma = np.asarray(_sigma(sensitivity, rho))
        noisy = value + self._noise.rounded_gaussian(np.broadcast_to(sigma, value.shape)
                                                     if sigma.ndim else float(sigma), value.shape)
        noisy = self._play("gaussian", entry, value, sensitivity, sigma, rho, {"unit": unit}, noisy)
        self._note(entry, "gaussian", sensitivity, sigma, unit, rho)
        return np.asarray(noisy * np.asarray(unit, dtype=np.float64), dtype=np.float64)

    def shared_gaussian(self, entry, total, *, sensitivity, n_honest, given=None, unit=1.0,
                        rho=None):
        """Release a sum over clients that gets its noise from them, in shares.

        Parameters
        ----------
        entry : str
            Its delta must hold `SHARES_DELTA` for each use.
        total : ndarray of ints
            With the shares of `given` clients, in fine steps (see :func:`share_scale`); without
            noise, in steps, where `given` is None: `n_honest` shares are then drawn here.
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
        :mod:`sklearn_dp._privacy._shares` for the proof.
        """
        rho = self._cost(entry, rho)
        self._charge(entry, rho, SHARES_DELTA)
        if given is not None and given <= n_honest:
            raise RuntimeError(f"only {given} clients have added their share of the noise, and "
                               f"n_honest={n_honest} of them besides each one must have.")
        scale, total = share_scale(sensitivity, rho, n_honest), _exact_integers(total)
        if given is None:
            value = total << scale.bits
            noisy = value + self._all_shares(scale.sigma, n_honest, value.shape)
        else:
            # The exact sum is nobody's; an audit, which has noted the shares, can take them off.
            noisy, value = total, self._without_shares(entry, total)
        fine = np.asarray(sensitivity, dtype=np.float64) * 2.0**scale.bits
        sigma, step = scale.sigma * math.sqrt(n_honest), np.asarray(unit) * 2.0**-scale.bits
        public = {"unit": unit, "shares": (n_honest if given is None else given) / n_honest}
        noisy = self._play("gaussian", entry, value, fine, sigma, rho, public, noisy)
        self._note(entry, "gaussian", fine, sigma, step, rho, SHARES_DELTA)
        return np.asarray(noisy * step, dtype=np.float64)

    def _all_shares(self, sigma, n_shares, shape):
        """The sum of independent shares, one after the other."""
        sigma, total = np.broadcast_to(sigma, shape), np.zeros(shape, dtype=np.int64)
        for _ in range(n_shares):
            total += self._noise.rounded_gaussian(sigma, shape)
        return total

    def _without_shares(self, entry, total):
        return total if self._tape is None else total - self._tape.take_shares(entry)

    def sparse_histogram(self, entry, codes, counts, *, n_candidates, threshold, sensitivity,
                         unit=1.0, rho=None):
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
        rho = self._cost(entry, rho)
        sigma = float(_sigma(sensitivity, rho))
        low = math.floor(threshold) + 1
        # Simulated cells follow their law up to a total variation that the entry must hold.
        self._charge(entry, rho, SIMULATION_TV if n_candidates > _DENSE_CANDIDATES else 0.0)
        order = np.argsort(codes, kind="stable")
        codes, counts = codes[order].astype(np.int64), counts[order].astype(np.int64)
        draw = _dense_cells if n_candidates <= _DENSE_CANDIDATES else _simulated_cells
        output = draw(self._noise, codes, counts, int(n_candidates), sigma, low)
        public = {"unit": unit, "low": low, "n_candidates": int(n_candidates)}
        output = self._play("sparse", entry, (codes, counts), sensitivity, sigma, rho, public,
                            output)
        self._note(entry, "gaussian", sensitivity, sigma, unit, rho)
        return output[0].copy(), output[1] * float(unit)

    def laplace(self, entry, value, *, sensitivity, epsilon, unit=1.0):
        """Release integers with rounded Laplace noise: epsilon-DP for l1 sensitivity `sensitivity`.

        Charged as zCDP by the tight conversion for the Laplace mechanism.
        """
        value = np.asarray(value, dtype=np.int64)
        self._charge(entry, accounting.laplace_zcdp_rho(epsilon))
        scale = round_up(sensitivity / epsilon)
        noisy = value + self._noise.rounded_laplace(scale, value.shape)
        noisy = self._play("laplace", entry, value, sensitivity, scale, epsilon, {"unit": unit},
                           noisy)
        self._note(entry, "laplace", sensitivity, scale, unit,
                   accounting.laplace_zcdp_rho(epsilon))
        return noisy * float(unit)

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
        scores = np.asarray(scores, dtype=np.int64)
        rho = accounting.bounded_range_zcdp_rho(epsilon)
        self._charge(entry, rho)
        rate = math.nextafter(epsilon / (2 * sensitivity), 0.0)
        chosen = self._noise.exponential_choice(scores.max() - scores, rate)
        chosen = self._play("choice", entry, scores, sensitivity, rate, epsilon, {}, chosen)
        self._note(entry, "exponential", sensitivity, 1 / rate, 1.0, rho)
        return int(chosen)

    def above_threshold(self, entry, queries, threshold, *, sensitivity, epsilon):
        """Index of the first query that is about above a threshold, or None; epsilon-DP.

        See :func:`sklearn_dp._privacy._mechanisms.above_threshold` for the proof.
        """
        queries = np.asarray(queries, dtype=np.int64)
        rho = accounting.pure_zcdp_rho(epsilon)
        self._charge(entry, rho)
        scale = round_up(2 * sensitivity / epsilon)
        level = threshold + int(self._noise.rounded_laplace(scale))
        noisy = queries + self._noise.rounded_laplace(2 * scale, queries.shape)
        passed = np.flatnonzero(noisy >= level)
        index = int(passed[0]) if passed.size else -1
        index = self._play("choice", entry, queries, sensitivity, scale, epsilon,
                           {"threshold": threshold}, index)
        self._note(entry, "above threshold", sensitivity, scale, 1.0, rho)
        return None if index < 0 else index

    def lead(self, entry, scores, *, sensitivity, epsilon, delta):
        """Index of the best of some public candidates if its lead is clear, or None.

        Parameters
        ----------
        scores : ndarray of int64 of shape (m,), m >= 2
        sensitivity : int
            No score moves by more than this between neighbours.

        Notes
        -----
        (epsilon, delta)-DP. Where neighbours have the same best candidate, only the lead matters,
        and it moves by at most 2 sensitivity. Where they have different ones, i and j, the lead
        is at most q_i - q_j <= q'_i - q'_j + 2 sensitivity <= 2 sensitivity on both, and then it
        passes with P[round(Lap) >= low] <= exp(-(low - 1/2) / scale) / 2 <= delta only: but for
        that both say None. Ties go to the lowest index.
        """
        scores = np.asarray(scores, dtype=np.int64)
        rho = accounting.pure_zcdp_rho(epsilon)
        self._charge(entry, rho, delta)
        scale = round_up(2 * sensitivity / epsilon)
        threshold = 2 * sensitivity + math.ceil(0.5 - scale * math.log(2 * delta) * (1 + 1e-12))
        best, second = np.sort(scores)[:-3:-1]
        passed = best - second + int(self._noise.rounded_laplace(scale)) >= threshold
        index = int(scores.argmax()) if passed else -1
        index = self._play("lead", entry, scores, sensitivity, scale, epsilon,
                           {"threshold": threshold, "delta": delta}, index)
        self._note(entry, "lead", 2 * sensitivity, scale, 1.0, rho, delta)
        return None if index < 0 else index

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
        (rho, delta)-zCDP. Cells of both data sets: one count moves by one (one down and one up,
        where a unit is replaced). A cell of only one of them has a count of one, and stays unseen
        but for P[1 + round(sigma Z) >= low] <= delta.
        """
        self._charge(entry, rho, delta)
        sigma = float(_sigma(sensitivity, rho))
        low = stability_threshold(sigma, delta)
        order = np.argsort(codes, kind="stable")
        codes, counts = np.asarray(codes)[order], np.asarray(counts)[order]
        values = counts + self._noise.rounded_gaussian(sigma, counts.shape)
        keep = values >= low
        output = self._play("stability", entry, (codes, counts), sensitivity, sigma, rho,
                            {"low": low, "delta": delta}, (codes[keep], values[keep]))
        self._note(entry, "stability histogram", sensitivity, sigma, 1.0, rho, delta)
        return output[0].copy(), output[1].astype(np.float64)

    def proportional(self, entry, total, count, *, bits, distance, eta, rho, delta):
        """Release a positive definite matrix with noise in proportion to it; (rho, delta)-zCDP.

        Parameters
        ----------
        total : ndarray of Python integers of shape (d, d)
        count : int
            The matrix is ``total / (count 2**bits)``; see
            :mod:`sklearn_dp._privacy._proportional`.
        distance : float
            s with the proved claim ``S / (1 + s) <= S' <= (1 + s) S`` for neighbours.
        eta : float
            From :func:`least_eta` of `distance`, `rho` and `delta`.

        Returns
        -------
        output : ndarray of float of shape (d, d)
            Positive semidefinite but for rounding; its mean is (1 + eta^2 d) times the matrix.
        """
        if not proportional.holds(distance, eta, len(total), rho, delta):
            raise PlanError(f"plan entry {entry!r}: eta is too small")
        self._charge(entry, rho, delta)
        output = proportional.draw(self._noise, total, max(1, count), bits, eta)
        output = self._play("proportional", entry, (total, count), distance, eta, rho,
                            {"bits": bits, "delta": delta}, output)
        self._note(entry, "proportional noise", distance, eta, 1.0, rho, delta)
        return output.astype(np.float64) * 2.0**-proportional.OUTPUT_BITS

    def step(self, entry, *, epsilon, delta):
        """Pay for a step that is (epsilon, delta)-DP as a whole, and hand out its inner draws.

        Charged once, as zCDP; the caller proves the guarantee.

        Returns
        -------
        step : Step
        """
        rho, delta = accounting.approx_dp_zcdp(epsilon, delta)
        self._charge(entry, rho, delta)
        self._play("step", entry, None, None, None, rho, {"epsilon": epsilon, "delta": delta},
                   None)
        self._note(entry, APPROXIMATE, 0.0, 0.0, 1.0, rho, delta)
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
        inner.plan, inner._nested, inner._log = plan, True, []
        inner._open_accounts()
        return inner

    # -- parts of the units -------------------------------------------------------------------

    def part(self, label):
        """A session for releases about some of the units, apart from those of other labels.

        The caller proves that parts with different labels look at disjoint sets of units; see
        :mod:`sklearn_dp._privacy._parts`.

        Parameters
        ----------
        label : str
            Public or released.

        Returns
        -------
        session : PrivacySession
            It goes on from what this session has spent. Before this one spends more, it must
            :meth:`join` all its parts.
        """
        inner = self._branch()
        inner._part = (*self._part, label)
        inner._accounts = {name: copy.copy(each) for name, each in self._accounts.items()}
        inner._total = copy.copy(self._total)
        return inner

    def join(self, parts):
        """Go on from what the dearest of some parts has spent, for each entry and in all."""
        for part in parts:
            for name, account in self._accounts.items():
                account.raise_to(part._accounts[name])
            self._total.raise_to(part._total)

    # -- decisions about single units, released only through what is computed from the survivors

    def unit_filter(self, entry, scores, *, sigma, threshold, bad, sensitivity, rho, delta,
                    most=math.inf, fixed=False):
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
        scores = np.asarray(scores, dtype=np.int64)
        self._charge(entry, rho, delta)
        noisy = scores + self._noise.rounded_gaussian(float(sigma), scores.shape)
        public = {"threshold": threshold, "bad": bad, "most": most, "fixed": fixed,
                  "delta": delta}
        keep = self._play("filter", entry, scores, sensitivity, sigma, rho, public,
                          noisy >= threshold)
        self._note(entry, "friendly core", sensitivity, sigma, 1.0, rho, delta)
        return keep

    def unit_bernoulli(self, entry, numerators, denominator, *, sensitivity, rho, delta):
        """Keep unit i with probability numerators[i] / denominator, exactly and independently.

        `sensitivity` is the proved l1 distance of the probability vectors; the result is not a
        release, as in :meth:`unit_filter`.
        """
        numerators = np.asarray(numerators, dtype=np.int64)
        self._charge(entry, rho, delta)
        keep = self._noise.uniform_integers(int(denominator), numerators.shape) < numerators
        value = np.clip(numerators / float(denominator), 0.0, 1.0)
        keep = self._play("bernoulli", entry, value, sensitivity, 1.0, rho, {"delta": delta},
                          keep)
        self._note(entry, "friendly core", sensitivity, 0.0, 1.0, rho, delta)
        return keep

    # -- randomness that is no noise --------------------------------------------------------

    def unit_draws(self, n_units, tag="units"):
        """64 random bits for each unit, independent of the data and of those of other tags."""
        source = NoiseSource(self._algorithm_seed, tag)
        draws = source.bits(int(n_units))
        return self._play("draws", "", None, None, None, 0.0, {}, draws)

    def blocks(self, n_units, n_blocks):
        """A block in [0, n_blocks) for each unit, uniform and independent.

        Adding a unit changes one block and leaves all other units where they are.
        """
        high = self.unit_draws(n_units) >> np.uint64(32)
        return ((high * np.uint64(n_blocks)) >> np.uint64(32)).astype(np.int64)

    def copies(self, copies):
        """Note the number of copies of each unit, where blocks are drawn with replacement.

        No release. What several copies cost is a formula of group privacy, so an audit leaves out
        pairs that differ in a unit of several.
        """
        self._play("copies", "", copies, None, None, 0.0, {}, None)

    def random_order(self, points):
        """A uniformly random order of the k points of an arrangement, as indices.

        Parameters
        ----------
        points : ndarray of shape (k, d)
            In an order of no meaning, which may be another one for a neighbour.

        Notes
        -----
        If a permutation that depends on the two data sets only takes the one arrangement to the
        other, a uniform order absorbs it: both then have the same law. (A divergence is jointly
        convex, so what holds for each pair of orders coupled this way holds for the mixtures.)
        """
        order = np.arange(len(points))
        for last in range(len(order) - 1, 0, -1):
            other = int(self._noise.uniform_integers(last + 1))
            order[[last, other]] = order[[other, last]]
        return self._play("order", "", points, None, None, 0.0, {}, order)

    def rng(self, tag):
        """A generator for restarts and inner fits; the same for neighbours by construction."""
        digest = hashlib.shake_256(f"{self._algorithm_seed}/{tag}".encode()).digest(16)
        return np.random.default_rng(int.from_bytes(digest, "big"))

    # -- records ----------------------------------------------------------------------------

    def _play(self, kind, entry, value, sensitivity, scale, cost, public, output):
        if self._tape is None:
            return output
        public = {**public, "nested": True} if self._nested else public
        public = {**public, "part": "/".join(self._part)} if self._part else public
        return self._tape.play(
            Event(kind, entry, value, sensitivity, scale, cost, public, output))

    def _note(self, entry, mechanism, sensitivity, sigma, unit, rho, delta=0.0):
        unit = np.asarray(unit, dtype=np.float64)
        self._log.append({
            "release": entry, "mechanism": mechanism,
            "sensitivity": float(np.max(np.asarray(sensitivity) * unit)),
            "sigma": float(np.max(np.asarray(sigma) * unit)),
            "rho": float(rho), "delta": float(delta),
            **({"part": "/".join(self._part)} if self._part else {})})

    def report(self):
        """Plan, releases, totals and noise source of this fit."""
        return self.plan.report(tuple(self._log), self.noise)


def stability_threshold(sigma, delta):
    """Smallest integer `low` with P[1 + round(sigma Z) >= low] <= delta."""
    # About the quantile, then upwards until it holds: larger than needed is safe.
    low = 2 + max(0, math.floor(-sigma * float(ndtri(delta)) - 0.5))
    while gaussian_tail(sigma, low - 1) > delta:
        low += 1
    return low


def _seed_of(random_state):
    """None for real noise, otherwise a non-negative integer seed."""
    if random_state is None:
        return None
    if is_integer(random_state):
        if random_state < 0:
            raise ValueError("random_state must be non-negative.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint64)
    elif isinstance(random_state, np.random.Generator):
        words = random_state.integers(0, 2**32, size=4, dtype=np.uint64)
    else:
        raise TypeError("random_state must be None, an int, a RandomState or a Generator.")
    return int(sum(int(word) << (32 * i) for i, word in enumerate(words)))


def _exact_integers(value):
    """An integer array; Python integers stay what they are, however large."""
    value = np.asarray(value)
    return value if value.dtype == object else value.astype(np.int64)


def _sigma(sensitivity, rho):
    """sensitivity / sqrt(2 rho), rounded up: the noise scale of the Gaussian mechanism."""
    sigma = np.asarray(sensitivity, dtype=np.float64) / math.sqrt(2 * rho)
    return np.nextafter(np.nextafter(sigma, np.inf), np.inf)


def _dense_cells(noise, codes, counts, n_candidates, sigma, low):
    """Every cell gets its own noise."""
    values = noise.rounded_gaussian(sigma, n_candidates)
    values[codes] += counts
    cells = np.flatnonzero(values >= low)
    return cells, values[cells]


def _simulated_cells(noise, codes, counts, n_candidates, sigma, low):
    """The same law when nearly all cells are empty.

    Each empty cell survives with probability p = P[round(sigma Z) >= low], independently of the
    rest: their number is binomial, their places are a uniform subset of the empty cells, their
    values follow the truncated law. Sorting by code removes every trace of which is which.
    """
    values = counts + noise.rounded_gaussian(sigma, codes.shape)
    keep = values >= low
    n_empty = noise.binomial(n_candidates - len(codes), gaussian_tail(sigma, low))
    empty = _distinct_empty_cells(noise, codes, n_candidates, n_empty)
    cells = np.concatenate([codes[keep], empty])
    values = np.concatenate([values[keep],
                             noise.truncated_rounded_gaussian(sigma, low, n_empty)])
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


def _float_up(fraction):
    value = float(fraction)
    return math.nextafter(value, math.inf) if Fraction(value) < fraction else value


def _float_down(fraction):
    value = float(fraction)
    return math.nextafter(value, -math.inf) if Fraction(value) > fraction else value
