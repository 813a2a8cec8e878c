"""What each fit of a search may spend: one budget, divided by public numbers only.

Two ways, with the same parts (`BudgetSplit`):

* :func:`release_all` divides in zCDP: costs of all fits add up to the target. m candidates have a
  part 1/m of the budget for the search, so the noise of each grows as sqrt(m).
* :func:`release_best` divides in mu, by the bound of Theorem 1. A run's noise grows far more slowly
  with m: by 1.84 at 10 candidates and 2.14 at 50, against 3.16 and 7.07.

No number here depends on data, so the whole division is known before the ledger is charged.
"""

import math
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from .._privacy._accounting import approx_dp_zcdp, gaussian_mu, rho_from_mu
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import is_real
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._rounding import round_down
from .._privacy._selection import selection_mu, selection_refit
from .._privacy._selection_rules import choose_rule

__all__ = ["BudgetSplit", "BestOf", "Shares", "one_step", "release_all", "release_best"]

_HALF = 0.5
"""Part of the largest mu of a run that is used where a refit follows: the table of
doc/development/private_search.md has its minimum about there."""


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
        .2 for the others together.
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
    """What each part of a search may spend, in zCDP."""

    prefix: float  # of the shared first steps together; 0 without them
    run: float  # of one run of a candidate, score included; 0 where there is nothing to choose
    # of the last fit of the chosen candidate; 0 where the winning run itself is the answer
    refit: float
    delta: float  # failure probability of each fit, at most
    # `Thin`, `NegativeBinomial` or `CappedGeometric`; None: all candidates are run, and released
    rule: object = None


def release_all(
    target: PrivacyBudget,
    n_candidates: int,
    prefix_share: float,
    shares: Shares,
    refit: bool,
    n_failing: int,
) -> BudgetSplit:
    """Every candidate is run once, and every model and score is released.

    `prefix_share` is the part of the budget for the shared first steps. `n_failing` fits of single
    steps have a failure probability; 0 where all releases are Gaussian.
    """
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

    In order:

    1. `largest` is the mu that the target allows one fit.
    2. The shared first steps get their share of it. Shares are of rho, and mu is sqrt(2 rho): hence
       the root.
    3. The rule of the runs is the cheapest that tries each candidate with the wanted coverage.
    4. `selection_mu` is the largest mu of a run for which the theorem's delta is within the
       target's.
    5. With a refit, runs get half of that mu, and `selection_refit` tells what is left.

    The split is in rho, as plans are, and has no failure probability.
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
    """The plan of a search that releases the winner only: one (epsilon, delta)-DP step.

    Its cost in zCDP serves a ledger that counts in it; the guarantee itself is the pair (epsilon,
    delta).
    """
    rho, delta = approx_dp_zcdp(cast(float, target.epsilon), target.delta)
    entry = PlanEntry(
        "selection", Mechanism.APPROXIMATE, rho, delta, sensitivity="the best of secretly many fits"
    )
    return PrivacyPlan(target, (entry,), unit, notes)
