"""The plans of single fits: what a search's shared steps, each run and its last fit may spend.

`_search_plan` divides the target among the parts of a search; `Maker` divides a part among the
private steps of one fit, and makes the fit's own plan. `lump` is how such a fit stands in the plan
of the whole search.

The plan of a step depends on the number of columns that it gets (`_widths`). Where that may be one
of several, the dearest plan is paid for.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from .._privacy._budget import PrivacyBudget
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._rounding import round_down, sum_down, sum_up
from .._privacy.mechanisms.fits import lump
from ._budget_split import BudgetSplit
from ._candidates import Step, plan_of, with_budget
from ._widths import widths

__all__ = ["SCORE", "Fit", "Maker", "only_gaussian", "releases_are_gaussian"]

SCORE = "score"


@dataclass(frozen=True)
class Fit:
    """One fit of a candidate's steps, the prefix left out: what it may spend.

    The steps are copies that have their budget set already. So a run needs no arithmetic with
    budgets: it fits them, and each one charges the run's session. The plan has one entry for each
    private step, and one for the score where there is one.
    """

    steps: tuple[Step, ...]
    plan: PrivacyPlan


class Maker:
    """Plans of single fits.

    A fit's budget is divided in two stages: first the score's part, `score_share`, is taken off,
    then the rest goes to the private steps by their weights. Quotients are rounded down, so that
    the parts do not exceed what the fit is allowed, and their sum is rounded up, so that no charge
    is too low.

    The target is that of the whole search. The delta of the split is a failure probability of
    each fit of a step; where it is 0, all releases are Gaussian, and the target's own delta only
    makes the budgets of the steps complete.
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
        """The shared first steps, each with the largest of the parameters that only slice it.

        Candidates may differ in a parameter that only slices what a step has released:
        `n_components` of `DPPCA`. One fit with the largest of these values serves all of them, and
        each candidate keeps the first components that it wants (`_sliced` of `_runs`). None means
        all, so it counts as infinite.

        The weights are those of the first candidate: only their ratios count, and those of the
        shared steps are the same in all candidates.
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
        """The other steps of a candidate, and its score.

        All steps of the candidate are given, since widths are counted from the first one, and their
        weights; `size` of them are shared, and fitted elsewhere. The weights of those that are left
        are scaled to add up to one. `rho` is the split of a run, or of the last fit, which is
        not `scored`: nothing is chosen by it.
        """
        score = round_down(rho * self._score_share) if scored else None
        left = sum_down([rho, -(score or 0.0)])
        own = [step for step in steps[size:] if step.private]
        total = sum(weights[step.name] for step in own)
        shares = {step.name: round_down(left * weights[step.name] / total) for step in own}
        return self._fit(steps, size, shares, score)

    def _fit(
        self, steps: Sequence[Step], size: int, rho: dict[str, float], score: float | None
    ) -> Fit:
        """The steps of a fit with their budgets, and its plan.

        Steps before `size` are walked over for their widths only. `rho` is that of each private
        step that this fit pays for, and `score` that of the score, if there is one. The target of
        the plan is the sum of its entries, rounded up, with the allowed failure probability once
        for each entry.
        """
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
    """Whether all that a step releases is Gaussian, whatever its number of columns.

    A budget is set because a plan needs one; 1.0 is arbitrary. It is a copy whose budget is set, as
    the candidate gets its real one later.
    """
    budgeted = with_budget(deepcopy(step.estimator), 1.0, delta)
    return all(only_gaussian(plan_of(budgeted, width, unit)) for width in columns)


def only_gaussian(plan: PrivacyPlan) -> bool:
    """Whether a plan is Gaussian as a whole, as Theorem 1 needs it: without a failure."""
    return plan.gaussian and not plan.delta_failure
