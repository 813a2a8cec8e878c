"""The division of a search's budget, and the plans of its single fits.

`_search_plan` divides the target among the parts of a search; `Maker` divides a part among the
private steps of one fit, and makes the fit's own plan. `lump` is how such a fit stands in the plan
of the whole search. The plan of a step depends on the number of columns that it gets. Where that
may be one of several, the most expensive plan is paid for. No number here depends on data.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from .._privacy._accounting import approx_dp_zcdp, gaussian_mu, rho_from_mu
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import is_real
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._rounding import round_down, sum_down, sum_up
from .._privacy._selection import selection_mu, selection_refit
from .._privacy._selection_rules import choose_rule
from .._privacy.mechanisms.fits import lump
from ._candidates import (
    Step,
    plan_of,
    widths,
    with_budget,
)

_HALF = 0.5
"""Part of the largest mu of a run that is used where a refit follows: the table of
doc/development/private_search.md has its minimum about there."""


# Two ways, with the same parts (`BudgetSplit`):
#
# * :func:`release_all` divides in zCDP: costs of all fits add up to the target. m candidates have a
#   part 1/m of the budget for the search, so the noise of each grows as sqrt(m).
# * :func:`release_best` divides in mu, by the bound of Theorem 1. A run's noise grows far more
#   slowly with m: by 1.84 at 10 candidates and 2.14 at 50, against 3.16 and 7.07.
@dataclass(frozen=True)
class Shares:
    """How a search divides its budget.

    Parameters
    ----------
    search : float, default=0.3
        In (0, 1): share of the budget (in zCDP) for the candidates, if the winner is refitted with
        the rest.
    score : float, default=0.15
        In (0, 1): share of a candidate's budget that goes to its score.
    steps : dict, optional
        Positive weight of each private step of a pipeline, by name. None: .8 for the last step and
        .2 for all other steps together.
    """

    search: float = 0.3
    score: float = 0.15
    steps: dict[str, float] | None = field(default=None)

    def __post_init__(self) -> None:
        for name in ("search", "score"):
            value = getattr(self, name)
            if not is_real(value) or not 0 < value < 1:  # type: ignore[operator]
                raise ValueError(f"shares: {name} must be a number between 0 and 1.")


@dataclass(frozen=True)
class BestOf:
    """Release only the best of a random number of runs.

    Parameters
    ----------
    coverage : float, default=0.9
        In (1 / candidates, 1): probability that a given candidate is tried at all.
    constant_time : bool, default=False
        Always make the same number of runs and discard the surplus, so that the running time does
        not reveal how many counted. The surplus is drawn like the runs that count (with up to five
        candidates, each is run once). Every search then takes as long as the longest one.

    Notes
    -----
    Without `constant_time`, anyone who can measure the running time of a search learns something
    about its number of runs, which the guarantee assumes to be secret.
    """

    coverage: float = 0.9
    constant_time: bool = False

    def __post_init__(self) -> None:
        if not is_real(self.coverage) or not 0 < self.coverage < 1:  # type: ignore[operator]
            raise ValueError("coverage must be a number between 0 and 1.")
        if not isinstance(self.constant_time, bool | np.bool_):
            raise TypeError("constant_time must be True or False.")


@dataclass(frozen=True)
class BudgetSplit:
    """Budgets of the parts of a search, in zCDP."""

    prefix: float  # of the shared first steps together; 0 without them
    run: float  # of one run of a candidate, score included; 0 where there is nothing to choose
    # of the last fit of the chosen candidate; 0 where the winning run itself is the answer
    refit: float
    delta: float  # failure probability of each fit, at most
    # `Thin` or `Geometric`; None: all candidates are run, and released
    rule: object = None


def release_all(
    target: PrivacyBudget,
    n_candidates: int,
    prefix_share: float,
    shares: Shares,
    refit: bool,
    n_failing: int,
) -> BudgetSplit:
    """Every candidate is run once, and every model and score is released. `prefix_share` is the
    part of the budget for the shared first steps; `n_failing` fits of single steps have a failure
    probability."""
    # Half of delta for failures: what is left converts the rest.
    delta = round_down(target.delta / 2 / n_failing) if n_failing else 0.0
    total = target.to_rho(gaussian=not n_failing, delta_failure=n_failing * delta)
    prefix = round_down(total * prefix_share)
    left = round_down(total - prefix)
    if n_candidates == 1:  # nothing to choose: a plain fit
        return BudgetSplit(prefix, 0.0, left, delta)
    search = round_down(left * (shares.search if refit else 1.0))
    run = round_down(search / n_candidates)
    return BudgetSplit(prefix, run, round_down(left - search) if refit else 0.0, delta)


def release_best(
    target: PrivacyBudget, n_candidates: int, prefix_share: float, best_of: BestOf, refit: bool
) -> BudgetSplit:
    """Only the winner of a random number of runs is released: Theorem 1 of `_selection`.

    `largest` is the mu that the target allows one fit. The shared first steps get their share of it
    (in rho; mu is sqrt(2 rho)). The rule of the runs is the cheapest that tries each candidate with
    the wanted coverage; `selection_mu` is the largest mu of a run for which the theorem's delta is
    within the target's. With a refit, runs get half of that mu, and `selection_refit` tells what is
    left.
    """
    epsilon, delta = cast(float, target.epsilon), target.delta
    largest = gaussian_mu(epsilon, delta)
    mu_prefix = math.sqrt(prefix_share) * largest
    rule = choose_rule(n_candidates, best_of.coverage, constant_time=best_of.constant_time)
    mu_run = selection_mu(epsilon, delta, rule, mu_prefix)
    mu_refit = 0.0
    if refit:
        mu_run *= _HALF
        mu_refit = selection_refit(epsilon, delta, rule, mu_run, mu_prefix)
    return BudgetSplit(
        rho_from_mu(mu_prefix) if mu_prefix else 0.0,
        rho_from_mu(mu_run),
        rho_from_mu(mu_refit) if mu_refit else 0.0,
        0.0,
        rule,
    )


def one_step(target: PrivacyBudget, unit: str, notes: tuple[str, ...]) -> PrivacyPlan:
    """Plan a search that releases the winner only: one (epsilon, delta)-DP step; its zCDP cost
    serves the ledger."""
    rho, delta = approx_dp_zcdp(cast(float, target.epsilon), target.delta)
    entry = PlanEntry(
        "selection", Mechanism.APPROXIMATE, rho, delta, sensitivity="the best of secretly many fits"
    )
    return PrivacyPlan(target, (entry,), unit, notes)


# -- candidate plan --------------------------------------------------------------------------------


SCORE = "score"


@dataclass(frozen=True)
class Fit:
    """The budget of one fit of a candidate's steps, copies with budgets set; the prefix is left
    out. The plan has one entry for each private step, and one for the score where there is one."""

    steps: tuple[Step, ...]
    plan: PrivacyPlan


class Maker:
    """Makes plans of single fits.

    First the score's part, `score_share`, is taken off; the rest goes to the private steps by their
    weights. Quotients are rounded down and sums up. The delta of the split is a failure probability
    of each fit of a step; where it is 0, all releases are Gaussian.
    """

    def __init__(
        self,
        target: PrivacyBudget,
        split: BudgetSplit,
        n_features: int,
        unit: str,
        score_share: float,
    ) -> None:
        self._target, self._delta = target, split.delta or target.delta
        self._split, self._n_features, self._unit = split, n_features, unit
        self._score_share = score_share

    def prefix(self, prefixes: Sequence[Sequence[Step]], weights: dict[str, float]) -> Fit | None:
        """The shared first steps, each with the largest of the parameters that only slice it (None
        means all).

        Each candidate keeps the part that it wants (`_sliced` of `_runs`). The weights are those of
        the first candidate: only their ratios count, and those of shared steps are the same in all.
        """
        steps = prefixes[0]
        if not any(step.private for step in steps):
            return None
        widest = tuple(max((each[i] for each in prefixes), key=_kept) for i in range(len(steps)))
        total = sum(weights[step.name] for step in widest if step.private)
        rho = {
            step.name: round_down(self._split.prefix * weights[step.name] / total)
            for step in widest
            if step.private
        }
        return self._fit(widest, 0, rho, None)

    def fit(
        self,
        steps: Sequence[Step],
        size: int,
        weights: dict[str, float],
        rho: float,
        *,
        scored: bool,
    ) -> Fit:
        """Plan the other steps of a candidate, and its score. All `steps` are given, since widths
        are counted from the first; `size` of them are shared, and fitted elsewhere. `rho` is the
        split of a run, or of the last fit, which is not `scored`."""
        score = round_down(rho * self._score_share) if scored else None
        left = sum_down([rho, -(score or 0.0)])
        own = [step for step in steps[size:] if step.private]
        total = sum(weights[step.name] for step in own)
        shares = {step.name: round_down(left * weights[step.name] / total) for step in own}
        return self._fit(steps, size, shares, score)

    def _fit(
        self, steps: Sequence[Step], size: int, rho: dict[str, float], score: float | None
    ) -> Fit:
        """Return the steps of a fit with their budgets, and its plan. Steps before `size` are
        walked over for their widths only. `rho` is that of each private step that this fit pays
        for, `score` that of the score."""
        entries, own = [], []
        for step, columns in widths(steps, self._n_features):
            if step.private and step.name in rho:
                # A copy: a candidate's run and its last fit have other budgets.
                budgeted = with_budget(deepcopy(step.estimator), float(rho[step.name]), self._delta)
                step = replace(step, estimator=budgeted)
                plans = [plan_of(budgeted, width, self._unit) for width in columns]
                entries.append(lump(step.name, plans))
            own.append(step)
        if score is not None:
            entries.append(
                PlanEntry(
                    SCORE,
                    Mechanism.GAUSSIAN,
                    float(score),
                    sensitivity="half the range of a unit's score",
                )
            )
        budget = PrivacyBudget(
            rho=sum_up([entry.rho for entry in entries]), delta=max(1, len(entries)) * self._delta
        )
        return Fit(tuple(own[size:]), PrivacyPlan(budget, tuple(entries), self._unit))


def _kept(step: Step) -> tuple[float, ...]:
    """How much of a shared step's releases is kept: all of it where nothing is said."""
    names = getattr(step.estimator, "_post_processing_params", ())
    values = [getattr(step.estimator, name) for name in names]
    return tuple(math.inf if value is None else value for value in values)


def releases_are_gaussian(step: Step, delta: float, columns: tuple[int, ...], unit: str) -> bool:
    """Whether all that a step releases is Gaussian, whatever its number of columns,
    at any budget."""
    budgeted = with_budget(deepcopy(step.estimator), 1.0, delta)
    return all(only_gaussian(plan_of(budgeted, width, unit)) for width in columns)


def only_gaussian(plan: PrivacyPlan) -> bool:
    """Whether a plan is Gaussian as a whole, as Theorem 1 needs it: without a failure."""
    return plan.gaussian and not plan.delta_failure
