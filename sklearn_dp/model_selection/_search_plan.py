"""A search before it sees data: its candidates, what each may spend, and the plan of it all.

No row is looked at, so an error here tells nothing about rows, and costs nothing. What would void
the guarantee is refused (`_candidates`). Every private step is asked for a plan, to see whether all
its releases are Gaussian, without a probability of failure: only then can the search release its
best run alone (Theorem 1). The budget is divided by public numbers (`BudgetSplit`), and each fit
gets a `PrivacyPlan` (`Maker`), of which the plan of the whole search is made: what the ledger is
charged, once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from sklearn.base import is_clusterer
from sklearn.pipeline import Pipeline

from .._costs.accounting import approx_dp_zcdp, gaussian_mu, rho_from_mu
from .._costs.budget import PrivacyBudget
from .._costs.numbers import check_choice, is_real, round_down, sum_down, sum_up
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._parameters import in_one_order, names_of
from .._privacy._selection import choose_rule, selection_mu, selection_refit
from .._privacy._session import lump
from ._candidates import (
    Candidate,
    Limits,
    Step,
    candidate,
    shared_prefix,
    step_weights,
    widths,
    with_budget,
)
from ._scorers import SCORE, check_can_be_scored, check_scoring, scorer_of

# -- the division of the budget --------------------------------------------------------------------


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
    """Every candidate is run once, and every model and score is released; `n_failing` fits of steps
    have a failure probability."""
    # Half of delta for failures: what is left converts the rest.
    delta = round_down(target.delta / 2 / n_failing) if n_failing else 0.0
    total = target.to_rho(gaussian=not n_failing, delta_failure=n_failing * delta)
    prefix = round_down(total * prefix_share)
    rest = round_down(total - prefix)
    if n_candidates == 1:  # nothing to choose: a plain fit
        return BudgetSplit(prefix, 0.0, rest, delta)
    search = round_down(rest * (shares.search if refit else 1.0))
    run = round_down(search / n_candidates)
    return BudgetSplit(prefix, run, round_down(rest - search) if refit else 0.0, delta)


def release_best(
    target: PrivacyBudget, n_candidates: int, prefix_share: float, best_of: BestOf, refit: bool
) -> BudgetSplit:
    """Only the winner of a random number of runs is released: Theorem 1 of `_selection`.

    `largest` is the mu that the target allows one fit, of which the shared first steps get their
    share (in rho; mu is sqrt(2 rho)). `selection_mu` is the largest mu of a run for which the
    theorem's delta is within the target's. With a refit, runs get half of that mu, and
    `selection_refit` tells what is left."""
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


# -- plans of single fits --------------------------------------------------------------------------
# The plan of a step depends on the number of columns that it gets. Where that may be one of
# several, the most expensive plan is paid for.


@dataclass(frozen=True)
class Fit:
    """The budget of one fit of a candidate's steps. The plan has one entry for each private step,
    and one for the score where there is one."""

    steps: tuple[Step, ...]
    plan: PrivacyPlan


@dataclass(frozen=True)
class Maker:
    """Makes plans of single fits: the score's part, `score_share`, is taken off, and the rest goes
    to the private steps by their weights, rounded down. The delta of the split is a failure
    probability of each fit of a step; where it is 0, all releases are Gaussian."""

    target: PrivacyBudget
    split: BudgetSplit
    n_features: int
    unit: str
    score_share: float

    def fits(
        self, candidates: Sequence[Candidate], size: int, weights: Sequence[dict[str, float]]
    ) -> tuple[Fit | None, list[Fit], list[Fit] | None]:
        """The first `size` steps, a run of each of several candidates, and the last fit of each."""

        def each_with(rho: float, scored: bool) -> list[Fit]:
            return [
                self.fit(each.steps, size, weight, rho, scored=scored)
                for each, weight in zip(candidates, weights, strict=True)
            ]

        prefix = self.prefix([each.steps[:size] for each in candidates], weights[0])
        runs = each_with(self.split.run, True) if len(candidates) > 1 else []
        return prefix, runs, each_with(self.split.refit, False) if self.split.refit else None

    def prefix(self, prefixes: Sequence[Sequence[Step]], weights: dict[str, float]) -> Fit | None:
        """The shared first steps, each with the largest of the parameters that only slice it (None
        means all): each candidate keeps the part that it wants (`_sliced` of `_runs`)."""
        if not any(step.private for step in prefixes[0]):
            return None
        widest = [max(each, key=_kept) for each in zip(*prefixes, strict=True)]
        return self._fit(widest, 0, _divided(self.split.prefix, widest, weights), None)

    def fit(
        self,
        steps: Sequence[Step],
        size: int,
        weights: dict[str, float],
        rho: float,
        *,
        scored: bool,
    ) -> Fit:
        """Plan the other steps of a candidate, behind `size` shared ones, and its score, if it is
        `scored`. `rho` is the split of a run, or of the last fit."""
        score = round_down(rho * self.score_share) if scored else None
        rest = sum_down([rho, -(score or 0.0)])
        return self._fit(steps, size, _divided(rest, steps[size:], weights), score)

    def _fit(
        self, steps: Sequence[Step], size: int, rho: dict[str, float], score: float | None
    ) -> Fit:
        """The steps of a fit, `rho` for each private one from `size` on; and its plan."""
        entries, private_steps, delta = [], [], self.split.delta or self.target.delta
        for step, columns in widths(steps, self.n_features):
            if step.private and step.name in rho:
                budgeted = with_budget(step.estimator, float(rho[step.name]), delta)
                step = replace(step, estimator=budgeted)
                plans = [budgeted.privacy_plan(width, unit=self.unit) for width in columns]
                entries.append(lump(step.name, plans))
            private_steps.append(step)
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
            rho=sum_up([entry.rho for entry in entries]), delta=max(1, len(entries)) * delta
        )
        return Fit(tuple(private_steps[size:]), PrivacyPlan(budget, tuple(entries), self.unit))


def _divided(rho: float, steps: Sequence[Step], weights: dict[str, float]) -> dict[str, float]:
    """Parts of rho for the private ones of some steps, by their weights, rounded down."""
    names = [step.name for step in steps if step.private]
    total = sum(weights[name] for name in names)
    return {name: round_down(rho * weights[name] / total) for name in names}


def _kept(step: Step) -> tuple[float, ...]:
    """How much of a shared step's releases is kept: all of it where nothing is said."""
    names = getattr(step.estimator, "_post_processing_params", ())
    values = [getattr(step.estimator, name) for name in names]
    return tuple(math.inf if value is None else value for value in values)


def releases_are_gaussian(step: Step, delta: float, columns: tuple[int, ...], unit: str) -> bool:
    """True if all that a step releases is Gaussian, whatever its number of columns, at rho = 1."""
    budgeted = with_budget(step.estimator, 1.0, delta)
    return all(only_gaussian(budgeted.privacy_plan(width, unit=unit)) for width in columns)


def only_gaussian(plan: PrivacyPlan) -> bool:
    """True if a plan is Gaussian as a whole, as Theorem 1 needs it: without a failure."""
    return plan.gaussian and not plan.delta_failure


# -- the plan of a search --------------------------------------------------------------------------


_FEW = 8
"""Up to so many candidates it is better to release all of them and to fit again: see the table of
costs in doc/development/private_search.md."""


@dataclass(frozen=True)
class SearchPlan:
    """Everything about a search that is known before data are read.

    `best_of` is None where all models and scores are released: `plan` has the entries "first
    steps", "candidates" and "last fit". With a `BestOf` it has one entry, "selection", an (epsilon,
    delta)-DP step of the whole target, and the budgets of the inner fits are in a note, as they do
    not add up to it: Theorem 1 of doc/development/private_search.md covers them together."""

    candidates: list[Candidate]
    prefix: Fit | None  # the shared first steps
    runs: list[Fit]  # one for each candidate; empty where there is nothing to choose
    refits: list[Fit] | None  # one for each candidate, of which the chosen one is made
    split: BudgetSplit
    scorer: Any  # `Scorer`, or None
    plan: PrivacyPlan  # of the whole search: what the ledger is charged
    best_of: Any  # `BestOf`; None: all candidates are released


def plan_search(
    search: Any, params: list[dict[str, Any]], n_features: int, unit: str
) -> SearchPlan:
    """Check the parameters of a search and plan all of its fits, with these candidates."""
    target = search._check_shared()
    check_scoring(search.scoring)
    check_choice("final", search.final, ("auto", "refit", "winner"))
    public = names_of(search.public_steps, "public_steps")
    candidates = [candidate(search.estimator, each, public, search._space) for each in params]
    shares = Shares() if search.shares is None else search.shares
    if not isinstance(shares, Shares):
        raise TypeError("shares must be None or of the class Shares.")
    size = shared_prefix(candidates)
    several = len(candidates) > 1
    scoring = _scoring(search.scoring, params, candidates[0].steps)
    if several:
        check_can_be_scored([each.steps[-1].estimator for each in candidates], scoring)
    first = search.estimator
    if isinstance(first, Pipeline):
        first = first.steps[0][1]
    bounds = in_one_order(getattr(first, "bounds", None), "bounds")
    limits = Limits(search.max_distance, bounds, n_features)
    scorer = scorer_of(scoring, limits) if several else None
    gaussian = all(
        releases_are_gaussian(step, target.delta, columns, unit)
        for each in candidates
        for step, columns in widths(each.steps, n_features)
        if step.private
    )
    weights = [step_weights(each.private, shares.steps) for each in candidates]
    prefix_share = sum(weights[0][step.name] for step in candidates[0].steps[:size] if step.private)

    def planned(gaussian: bool) -> SearchPlan:
        """All plans, `gaussian` if nothing else is released: which the plans themselves confirm."""
        best_of = _selection(search, len(candidates), gaussian)
        # By default where all runs are released, as each had a small part.
        refit = search.final == "refit" or (search.final == "auto" and best_of is None)
        if best_of is None:
            # Fits of single steps: those of the candidates, the last fit and the shared ones.
            n_fits = (len(candidates) + 1) * max(len(each.private) for each in candidates) + size
            split = release_all(
                target, len(candidates), prefix_share, shares, refit, 0 if gaussian else n_fits
            )
        else:
            split = release_best(target, len(candidates), prefix_share, best_of, refit)
        make = Maker(target, split, n_features, unit, shares.score)
        prefix, runs, refits = make.fits(candidates, size, weights)
        fits = [fit for fit in (prefix, *runs, *(refits or ())) if fit is not None]
        if gaussian and not all(only_gaussian(fit.plan) for fit in fits):
            return planned(False)  # what a step releases may depend on its budget
        if best_of is None:
            outer = _in_sequence(target, unit, prefix, runs, refits)
        else:
            outer = _in_one_step(target, unit, split, prefix, len(runs), refits)
        return SearchPlan(candidates, prefix, runs, refits, split, scorer, outer, best_of)

    return planned(gaussian)


def _scoring(scoring: Any, params: list[dict[str, Any]], steps: Sequence[Step]) -> Any:
    """Return the scoring that the user has set, or one that is comparable between candidates:

    * a density compares models of any shape and number of components;
    * "silhouette" has its maximum inside the range of `n_clusters`, while the cost of k-means falls
      with every further center, so it chooses the largest number;
    * "cost" is what clusterers minimize, and fair where all have as many centers;
    * what is left can at least be transformed and transformed back."""
    final, n_steps = steps[-1].estimator, len(steps)
    names = {key.rpartition("__")[2] for each in params for key in each}
    if scoring is not None:
        if isinstance(scoring, str) and scoring == "cost" and "n_clusters" in names:
            raise ValueError(
                "scoring='cost' cannot choose n_clusters: more clusters always cost less. Use "
                "'silhouette' or DPKMeans(n_clusters='auto')."
            )
        if scoring == "log_density" and (n_steps > 1 or not hasattr(final, "score_samples")):
            raise ValueError(
                "scoring='log_density' needs an estimator that has score_samples, and no steps "
                "before it, which change the units of densities. Give the estimator bounds instead "
                "of a scaler, or use another score."
            )
        return scoring
    if hasattr(final, "score_samples") and n_steps == 1:
        return "log_density"
    if "n_clusters" in names:
        return "silhouette"
    return "cost" if is_clusterer(final) else "reconstruction"


def _selection(search: Any, n_candidates: int, gaussian: bool) -> BestOf | None:
    """How candidates are compared: None where all are released, else `BestOf`.

    The best of secretly many runs needs releases that are all Gaussian and cannot fail (Theorem 1
    turns every run into a pair of normal laws; a failure of each of a random number of runs is not
    in it); a target in epsilon, as the result is no zCDP statement; a ledger that can add up such a
    step, not one of composition "gaussian"; and more than one candidate. "auto" takes it only
    beyond eight candidates and with a ledger of composition "basic", or none. An explicit "best"
    that misses one of the first three is an error."""
    asked = search.selection
    if not isinstance(asked, BestOf):
        check_choice("selection", asked, ("auto", "all", "best"))
    composition = search._composition()
    if asked == "all" or n_candidates == 1:
        return None
    if asked == "auto":
        free = gaussian and composition == "basic" and search.rho is None
        return BestOf() if n_candidates > _FEW and free else None
    if search.rho is not None:
        raise ValueError(
            "selection='best' needs a target in epsilon: a (rho, delta) target cannot be met by a "
            "random number of runs; give epsilon, or use selection='all'."
        )
    if not gaussian:
        raise ValueError(
            "selection='best' needs candidates whose releases are all Gaussian, with the budget of "
            "one run and without a probability of failure: use selection='all', or give the "
            "candidates bounds if they have none."
        )
    if composition == "gaussian":
        raise ValueError(
            "a ledger of composition 'gaussian' cannot hold selection='best': use selection='all'."
        )
    return asked if isinstance(asked, BestOf) else BestOf()


def _in_one_step(
    target: PrivacyBudget,
    unit: str,
    split: BudgetSplit,
    prefix: Fit | None,
    n_runs: int,
    refits: list[Fit] | None,
) -> PrivacyPlan:
    """The plan of a search that releases the winner only, in one (epsilon, delta)-DP step."""
    rho, delta = approx_dp_zcdp(cast(float, target.epsilon), target.delta)
    words = "the best of secretly many fits"
    step = PlanEntry("selection", Mechanism.APPROXIMATE, rho, delta, sensitivity=words)
    before = f"first steps: rho = {split.prefix:.4g}; " if prefix is not None else ""
    after = f"; last fit: rho = {split.refit:.4g}" if refits else ""
    note = (
        f"selection among {n_runs} candidates: {before}each run: rho = {split.run:.4g}, "
        f"score included, by the rule {split.rule}{after}; covered together by Theorem 1 "
        "of doc/development/private_search.md"
    )
    return PrivacyPlan(target, (step,), unit, (note,))


def _in_sequence(
    target: PrivacyBudget, unit: str, prefix: Fit | None, runs: list[Fit], refits: list[Fit] | None
) -> PrivacyPlan:
    """The plan of a search that releases all, accounted as Gaussian if every part is."""
    entries = []
    if prefix is not None:
        entries.append(lump("first steps", prefix.plan))
    if runs:
        entries.append(lump("candidates", [run.plan for run in runs], uses=len(runs)))
    if refits:
        entries.append(lump("last fit", [fit.plan for fit in refits]))
    if not all(entry.mechanism is Mechanism.GAUSSIAN for entry in entries):
        entries = [replace(entry, mechanism=Mechanism.SEVERAL) for entry in entries]
    return PrivacyPlan(target, tuple(entries), unit)
