"""A search before it sees data: its candidates, what each may spend, and the plan of it all.

How :func:`plan_search` goes, in order:

1. Each combination of parameters becomes a `Candidate`. What would void the guarantee is refused
   here: a step that learns without privacy, a budget in the grid, a cache (`_candidates`).
2. The leading steps that all candidates share are found. They are fitted once.
3. The scorer is made from public limits of the rows (`_scorers`).
4. Every private step is asked for a plan, to see whether all its releases are Gaussian, without a
   probability of failure. Only then can the search release its best run alone, which is what
   Theorem 1 is about. That plan has some budget; step 6 asks again, with the budgets of the fits.
5. The budget is divided by public numbers (`BudgetSplit`): what the shared steps, each run and
   the last fit may spend.
6. Each fit gets a `PrivacyPlan` (`_candidate_plan`): an entry for each private step, and one for
   the score.
7. The plan of the whole search is made of these. It is what the ledger is charged, once.

No row is looked at: everything here is a function of the parameters, of the ledger's terms, of the
number of columns and of the unit. So an error that is raised here tells nothing about rows, and it
costs nothing, because the ledger is charged later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import is_clusterer
from sklearn.pipeline import Pipeline

from .._base import budget_of
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import check_choice
from .._privacy._ledger import open_ledger
from .._privacy._plan import Mechanism, PrivacyPlan
from .._privacy.mechanisms.fits import lump
from .._validation import names_of
from ._candidate_plan import (
    BestOf,
    BudgetSplit,
    Fit,
    Maker,
    Shares,
    one_step,
    only_gaussian,
    release_all,
    release_best,
    releases_are_gaussian,
)
from ._candidates import (
    Candidate,
    Limits,
    Step,
    candidate,
    shared_prefix,
    step_weights,
    widths,
)
from ._scorers import check_can_be_scored, check_scoring, scorer_of

_FEW = 8
"""Up to so many candidates it is better to release all of them and to fit again: see the table of
costs in doc/development/private_search.md."""
_NOT_BOTH = (
    "selection='best' needs a target in epsilon: a (rho, delta) target cannot be met by a random "
    "number of runs; give epsilon, or use selection='all'."
)


@dataclass(frozen=True)
class SearchPlan:
    """Everything about a search that is known before data are read.

    Two forms, told apart by `best_of`:

    * None: every candidate is run once, and all models and scores are released. `plan` has the
      entries "first steps", "candidates" and "last fit", as far as there are such fits.
    * a `BestOf`: `plan` has one entry, "selection", an (epsilon, delta)-DP step of the whole
      target. The budgets of the inner fits are in a note of the plan, as they do not add up to it:
      Theorem 1 of doc/development/private_search.md covers them together.
    """

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
    target = budget_of(search.epsilon, search.delta, search.rho)
    check_scoring(search.scoring)
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
    limits = Limits(search.max_distance, getattr(first, "bounds", None), n_features)
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
        refit = _final(search, best_of)
        if best_of is None:
            # Fits of single steps: those of the candidates, the last fit and the shared ones.
            n_fits = (len(candidates) + 1) * max(len(each.private) for each in candidates) + size
            split = release_all(
                target, len(candidates), prefix_share, shares, refit, 0 if gaussian else n_fits
            )
        else:
            split = release_best(target, len(candidates), prefix_share, best_of, refit)
        make = Maker(target, split, n_features, unit, shares.score)
        prefix, runs, refits = _fits(make, split, candidates, size, weights)
        fits = [fit for fit in (prefix, *runs, *(refits or ())) if fit is not None]
        if gaussian and not all(only_gaussian(fit.plan) for fit in fits):
            return planned(False)  # what a step releases may depend on its budget
        if best_of is None:
            outer = _in_sequence(target, unit, prefix, runs, refits)
        else:
            outer = one_step(target, unit, (_note(split, prefix, len(runs), refits),))
        return SearchPlan(candidates, prefix, runs, refits, split, scorer, outer, best_of)

    return planned(gaussian)


def _fits(
    make: Maker,
    split: BudgetSplit,
    candidates: list[Candidate],
    size: int,
    weights: list[dict[str, float]],
) -> tuple[Fit | None, list[Fit], list[Fit] | None]:
    """The shared first steps, the run of each candidate, and the last fit of each."""
    prefix = make.prefix([each.steps[:size] for each in candidates], weights[0])

    def each_with(rho: float, scored: bool) -> list[Fit]:
        return [
            make.fit(each.steps, size, weight, rho, scored=scored)
            for each, weight in zip(candidates, weights, strict=True)
        ]

    runs = each_with(split.run, True) if len(candidates) > 1 else []
    return prefix, runs, each_with(split.refit, False) if split.refit else None


def _scoring(scoring: Any, params: list[dict[str, Any]], steps: Sequence[Step]) -> Any:
    """Return the scoring that the user has set, or a default that is comparable between candidates.
    By default a score with a maximum inside the grid where k varies.

    The default has to be a score that is comparable between candidates:

    * a density compares models of any shape and number of components;
    * "silhouette" has its maximum inside the range of `n_clusters`, while the cost of k-means falls
      with every further center, so it chooses the largest number;
    * "cost" is what clusterers minimize, and fair where all have as many centers;
    * what is left can at least be transformed and transformed back.

    `steps` are those of a candidate.
    """
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

    The best of secretly many runs needs four things:

    1. All releases of all candidates are Gaussian, and nothing can fail: Theorem 1 bounds the
       winner's loss by that of a pair of normal laws, into which every run can be turned. A failure
       of each of a random number of runs is not in it.
    2. A target in epsilon. The result is one (epsilon, delta)-DP step, no zCDP statement, so a
       target in rho cannot be met.
    3. A ledger that can add up such a step: not one of composition "gaussian".
    4. More than one candidate; with one there is nothing to choose, whatever was asked for.

    "auto" takes it only beyond eight candidates and with a ledger of composition "basic", or none.
    An explicit "best" that misses one of the first three is an error, and no silent change to
    "all".
    """
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
            "selection='best' needs candidates whose releases are all Gaussian, with the budget of "
            "one run and without a probability of failure: use selection='all', or give the "
            "candidates bounds if they have none."
        )
    if composition == "gaussian":
        raise ValueError(
            "a ledger of composition 'gaussian' cannot hold selection='best': use selection='all'."
        )
    return asked if isinstance(asked, BestOf) else BestOf()


def _final(search: Any, best_of: BestOf | None) -> bool:
    """Whether the chosen candidate is fitted again: by default where all runs are released, as each
    had a small part."""
    check_choice("final", search.final, ("auto", "refit", "winner"))
    return search.final == "refit" or (search.final == "auto" and best_of is None)


def _note(split: BudgetSplit, prefix: Fit | None, n_runs: int, refits: list[Fit] | None) -> str:
    """Describe the single step of a search that releases only the winner."""
    before = f"first steps: rho = {split.prefix:.4g}; " if prefix is not None else ""
    after = f"; last fit: rho = {split.refit:.4g}" if refits else ""
    return (
        f"selection among {n_runs} candidates: {before}each run: rho = {split.run:.4g}, "
        f"score included, by the rule {split.rule}{after}; covered together by Theorem 1 "
        "of doc/development/private_search.md"
    )


def _in_sequence(
    target: PrivacyBudget,
    unit: str,
    prefix: Fit | None,
    runs: list[Fit],
    refits: list[Fit] | None,
) -> PrivacyPlan:
    """The plan of a search that releases all: the parts are plain entries in sequence. One part
    that is not Gaussian makes all of them `SEVERAL`: accounting as Gaussian needs that everything
    is."""
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
