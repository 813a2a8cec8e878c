"""A search before it sees data: its candidates, what each may spend, and the plan of it all."""

import math
from copy import deepcopy
from dataclasses import dataclass, replace

from sklearn.base import is_clusterer
from sklearn.pipeline import Pipeline

from .._base import budget_of
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import check_choice
from .._privacy._ledger import open_ledger
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._rounding import round_down, sum_down, sum_up
from ._allowance import (
    Allowance,
    BestOf,
    Shares,
    one_step,
    release_all,
    release_best,
)
from ._candidates import (
    Limits,
    candidate,
    plan_of,
    shared_prefix,
    step_weights,
    width_after,
    with_budget,
)
from ._scorers import Scorer, scorer_of

__all__ = ["SCORE", "SearchPlan", "plan_search"]

SCORE = "score"
MOST_CANDIDATES = 10_000
_FEW = 8
"""Up to so many candidates it is better to release all of them and to fit again: see the table of
costs in doc/development/private_search.md."""
_NOT_BOTH = (
    "selection='best' needs a target in epsilon: a (rho, delta) target cannot be met by a random "
    "number of runs; give epsilon, or use selection='all'."
)


@dataclass(frozen=True)
class Fit:
    """One fit of a candidate's steps, the prefix left out: what it may spend.

    Attributes
    ----------
    plan : PrivacyPlan
        One entry for each private step, and one for the score where there is one.
    """

    steps: tuple
    plan: PrivacyPlan


@dataclass(frozen=True)
class SearchPlan:
    """Everything about a search that is known before data are read.

    Attributes
    ----------
    candidates : list of Candidate
    prefix : Fit or None
        The shared first steps.
    runs : list of Fit
        One for each candidate; empty where there is nothing to choose.
    refits : list of Fit or None
        One for each candidate, of which the chosen one is made.
    allowance : Allowance
    scorer : Scorer or None
    plan : PrivacyPlan
        Of the whole search: what the ledger is charged.
    best_of : BestOf or None
        None: all candidates are released.
    """

    candidates: list
    prefix: Fit | None
    runs: list
    refits: list | None
    allowance: Allowance
    scorer: Scorer | None
    plan: PrivacyPlan
    best_of: BestOf | None


def plan_search(search, params, n_features, unit):
    """Check the parameters of a search and plan all of its fits.

    Parameters
    ----------
    search : DPGridSearch or DPRandomizedSearch
    params : list of dict
        The candidates.
    n_features : int
    unit : str

    Returns
    -------
    plan : SearchPlan
    """
    target = budget_of(search.epsilon, search.delta, search.rho)
    if not 1 <= len(params) <= MOST_CANDIDATES:
        raise ValueError(f"param_grid must hold between 1 and {MOST_CANDIDATES} candidates.")
    candidates = [candidate(search.estimator, each, search.public_steps) for each in params]
    shares = Shares() if search.shares is None else search.shares
    if not isinstance(shares, Shares):
        raise TypeError("shares must be None or of the class Shares.")
    size = shared_prefix(candidates)
    several = len(candidates) > 1
    scorer = scorer_of(_scoring(search, params), _limits(search, n_features)) if several else None
    gaussian = all(
        _is_gaussian(step, target.delta, width, unit)
        for each in candidates
        for step, width in _widths(each.steps, n_features)
        if step.private
    )
    best_of = _selection(search, len(candidates), gaussian)
    refit = _final(search, best_of)
    weights = [step_weights(each.private, shares.steps) for each in candidates]
    prefix_share = sum(weights[0][step.name] for step in candidates[0].steps[:size] if step.private)
    if best_of is None:
        # Fits of single steps: those of the candidates, the last fit and the shared ones.
        n_fits = (len(candidates) + 1) * max(len(each.private) for each in candidates) + size
        allowance = release_all(
            target, len(candidates), prefix_share, shares, refit, 0 if gaussian else n_fits
        )
    else:
        allowance = release_best(target, len(candidates), prefix_share, best_of, refit)
    make = _Maker(target, allowance, n_features, unit, shares.score)
    prefix = make.prefix([each.steps[:size] for each in candidates], weights[0])
    runs = [
        make.fit(each.steps, size, weight, allowance.run, scored=True)
        for each, weight in zip(candidates, weights, strict=True)
        if several
    ]
    refits = (
        [
            make.fit(each.steps, size, weight, allowance.refit, scored=False)
            for each, weight in zip(candidates, weights, strict=True)
        ]
        if allowance.refit
        else None
    )
    outer = _outer(search, target, unit, prefix, runs, refits, best_of, allowance)
    return SearchPlan(candidates, prefix, runs, refits, allowance, scorer, outer, best_of)


def _scoring(search, params):
    """The default: a score with a maximum inside the grid where the number of clusters varies."""
    if search.scoring is not None:
        chooses_k = any(key.rpartition("__")[2] == "n_clusters" for each in params for key in each)
        if search.scoring == "cost" and chooses_k:
            raise ValueError(
                "scoring='cost' cannot choose n_clusters: it falls with every cluster more. Use "
                "'silhouette' or DPKMeans(n_clusters='auto')."
            )
        return search.scoring
    final = search.estimator.steps[-1][1] if _is_pipeline(search) else search.estimator
    names = {key.rpartition("__")[2] for each in params for key in each}
    if hasattr(final, "score_samples"):
        return "log_density"
    if "n_clusters" in names:
        return "silhouette"
    return "cost" if is_clusterer(final) else "reconstruction"


def _is_pipeline(search):
    return isinstance(search.estimator, Pipeline)


def _limits(search, n_features):
    first = search.estimator.steps[0][1] if _is_pipeline(search) else search.estimator
    return Limits(search.max_distance, getattr(first, "bounds", None), n_features)


def _selection(search, n_candidates, gaussian):
    """How candidates are compared: None where all are released, else `BestOf`."""
    asked = search.selection
    if not isinstance(asked, BestOf):
        check_choice("selection", asked, ("auto", "all", "best"))
    book = open_ledger(search.ledger)
    composition = "basic" if book is None else book.state().terms.composition
    if asked == "all" or n_candidates == 1:
        return None
    if asked == "auto":
        free = gaussian and composition == "basic" and search.rho is None
        return BestOf() if n_candidates > _FEW and free else None
    if search.rho is not None:
        raise ValueError(_NOT_BOTH)
    if not gaussian:
        raise ValueError(
            "selection='best' needs candidates whose releases are all Gaussian: use "
            "selection='all'."
        )
    if composition == "gaussian":
        raise ValueError(
            "a ledger of composition 'gaussian' cannot hold selection='best': use selection='all'."
        )
    return asked if isinstance(asked, BestOf) else BestOf()


def _final(search, best_of):
    """Whether the chosen candidate is fitted again."""
    check_choice("final", search.final, ("auto", "refit", "winner"))
    return search.final == "refit" or (search.final == "auto" and best_of is None)


def _widths(steps, n_features):
    """Each step with the public number of columns that it gets."""
    width = n_features
    for step in steps:
        yield step, width
        if step is not steps[-1]:
            width = width_after(step, width)


def _is_gaussian(step, delta, width, unit):
    """Whether all that a step releases is Gaussian, whatever its budget."""
    return plan_of(with_budget(deepcopy(step.estimator), 1.0, delta), width, unit).gaussian


class _Maker:
    """Plans of single fits."""

    def __init__(self, target, allowance, n_features, unit, score_share):
        self._target, self._delta = target, allowance.delta or target.delta
        self._allowance, self._n_features, self._unit = allowance, n_features, unit
        self._score_share = score_share

    def prefix(self, prefixes, weights):
        """The shared first steps, each with the largest of the parameters that only slice it."""
        steps = prefixes[0]
        if not any(step.private for step in steps):
            return None
        widest = tuple(max((each[i] for each in prefixes), key=_kept) for i in range(len(steps)))
        total = sum(weights[step.name] for step in widest if step.private)
        rho = {
            step.name: round_down(self._allowance.prefix * weights[step.name] / total)
            for step in widest
            if step.private
        }
        return self._fit(widest, 0, rho, None)

    def fit(self, steps, size, weights, rho, *, scored):
        """The other steps of a candidate, and its score."""
        score = round_down(rho * self._score_share) if scored else None
        left = sum_down([rho, -(score or 0.0)])
        own = [step for step in steps[size:] if step.private]
        total = sum(weights[step.name] for step in own)
        shares = {step.name: round_down(left * weights[step.name] / total) for step in own}
        return self._fit(steps, size, shares, score)

    def _fit(self, steps, size, rho, score):
        entries, own = [], []
        for step, width in _widths(steps, self._n_features):
            if step.private and step.name in rho:
                # A copy: a candidate's run and its last fit have other budgets.
                budgeted = with_budget(deepcopy(step.estimator), float(rho[step.name]), self._delta)
                step = replace(step, estimator=budgeted)
                entries.append(lump(step.name, plan_of(budgeted, width, self._unit)))
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


def _kept(step):
    """How much of a shared step's releases is kept: all of it where nothing is said."""
    names = getattr(step.estimator, "_post_processing_params", ())
    values = [getattr(step.estimator, name) for name in names]
    return tuple(math.inf if value is None else value for value in values)


def lump(name, plan, uses=1):
    """A plan entry that pays for whole fits of a plan (of the dearest one, if there are several).

    A fit that spends no more than its plan costs what one release of that rho costs; see
    :mod:`sklearn_dp._privacy.laws.fits`.
    """
    plans = [plan] if isinstance(plan, PrivacyPlan) else plan
    gaussian = all(each.gaussian for each in plans)
    return PlanEntry(
        name,
        Mechanism.GAUSSIAN if gaussian else Mechanism.SEVERAL,
        sum_up([each.rho for each in plans]) if uses > 1 else max(each.rho for each in plans),
        delta=sum_up([each.delta_failure for each in plans])
        if uses > 1
        else max(each.delta_failure for each in plans),
        uses=uses,
        sensitivity="all of a fit" if uses == 1 else "all of each fit",
    )


def _outer(search, target, unit, prefix, runs, refits, best_of, allowance):
    """The plan of the whole search."""
    if best_of is not None:
        before = f"first steps: rho = {allowance.prefix:.4g}; " if prefix is not None else ""
        after = f"; last fit: rho = {allowance.refit:.4g}" if refits else ""
        note = (
            f"selection among {len(runs)} candidates: {before}each run: rho = {allowance.run:.4g}, "
            f"score included, by the rule {allowance.rule}{after}; covered together by Theorem 1 "
            "of doc/development/private_search.md"
        )
        return one_step(target, unit, (note,))
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
