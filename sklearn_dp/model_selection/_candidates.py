"""What a search is going to fit, from public facts alone: steps, parameters, widths, plans.

Who calls: `_search_plan` for the searches of this package, and `_preflight`, which counts the fits
of scikit-learn's searches.

Two things have to hold for the guarantee of a search, and both are decided here:

* Nothing learns from private rows but private steps. Of other steps only those are admitted that
  need no fitting, and those that the user says were fitted on public rows. A ``StandardScaler`` is
  refused: means and scales of private rows would go into everything after it, without noise.
* Nobody but the search sets budgets, ledgers or seeds. A step with a ledger of its own would charge
  it in each secret run, and so tell how many there were.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from .._base import BaseDPEstimator
from .._compositions import PrivatePipeline
from .._privacy._domain import Domain
from .._privacy._plan import PrivacyPlan
from .._validation import DEFAULT_EPSILON, SQUARABLE, check_real, check_steps, shares_of_one
from ..preprocessing import PublicEncoder
from ._arguments import NOT_PRIVATE, check_final, same, set_values

__all__ = [
    "Candidate",
    "Limits",
    "Step",
    "candidate",
    "plan_of",
    "shared_prefix",
    "step_weights",
    "with_budget",
]

_OWN = {
    "epsilon": (None, DEFAULT_EPSILON),
    "rho": (None,),
    "ledger": (None,),
    "random_state": (None,),
    "delta": (1e-6,),
}
"""What the search sets itself, and what it may be in the steps: left alone."""
_SPLIT = ("epsilon", "rho", "delta")
_EARLIER = 0.2
"""Weight of all private steps before the last one, together."""


@dataclass(frozen=True)
class Step:
    """One step of a candidate, not fitted (or fitted elsewhere, if it is public)."""

    name: str
    estimator: Any
    private: bool


@dataclass(frozen=True)
class Candidate:
    """One combination of parameters.

    The steps, of which the last one is private, are clones with these parameters set: the user's
    own estimator is never fitted. Public steps are copied with what they have learned.
    """

    params: dict[str, Any]
    steps: tuple[Step, ...]

    @property
    def private(self) -> tuple[Step, ...]:
        """The steps that spend budget."""
        return tuple(step for step in self.steps if step.private)


@dataclass(frozen=True)
class Limits:
    """Public limits of the rows, which scores need.

    A score needs a cap, for its sensitivity, and the cap must be the same for all candidates, or a
    candidate with a narrow cap would win by its cap. So it is made of what the search is given,
    never of what a candidate has.
    """

    distance: float | None  # what the user says is the largest distance that counts
    bounds: Any  # of the first step; None if there are none, or if other steps come before it
    n_features: int

    def __post_init__(self) -> None:
        if self.distance is not None:
            check_real(self.distance, "max_distance", **SQUARABLE)

    def max_distance(self, name: str) -> float:
        """Cap of a distance, the same for all candidates.

        Without `max_distance` it is the radius of the domain of `bounds`, half of the largest
        distance of two rows in it: a row that is as far from every center as that is no better
        served by any of them.
        """
        if self.distance is not None:
            return float(self.distance)
        if self.bounds is None:
            raise ValueError(
                f"scoring={name!r} needs bounds or max_distance: a public cap of distances that is "
                "the same for all candidates."
            )
        radius = float(Domain.from_bounds(self.bounds, self.n_features).radius)
        return check_real(radius, "bounds: the radius", **SQUARABLE)

    def log_uniform_density(self) -> float:
        """Log-density of the uniform law on the bounds.

        Minus the log of the volume. A ball of radius r in d dimensions has the volume pi^(d/2) r^d
        / Gamma(d/2 + 1). Its logarithm is what is computed, since volumes overflow and underflow in
        high dimensions. A side of length zero has no density, so it is refused.
        """
        if self.bounds is None:
            raise ValueError("scoring='log_density' needs bounds, the same for all candidates.")
        Domain.from_bounds(self.bounds, self.n_features)
        d = self.n_features
        if np.ndim(self.bounds) == 0:
            ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
            return -(ball + d * math.log(float(self.bounds)))
        low, high = (np.broadcast_to(np.asarray(x, dtype=np.float64), d) for x in self.bounds)
        if not np.all(high > low):
            raise ValueError("scoring='log_density' needs bounds with low less than high.")
        return -float((np.log(high / 2 - low / 2) + math.log(2)).sum())


def candidate(
    estimator: Any, params: dict[str, Any], public_steps: tuple[str, ...], grid: str = "param_grid"
) -> Candidate:
    """Set one combination of parameters and check every step of it; errors name the `grid`.

    `public_steps` are names of steps that were fitted elsewhere, without private rows. An error if
    a step is neither private, nor public, nor free of fitting; if a step or the grid sets what the
    search sets; for parameters that do not exist.
    """
    for name in params:
        own = name.rpartition("__")[2]
        if own in _OWN:
            curve = " To compare budgets, use sklearn_dp.inspection.utility_curve on public rows."
            raise ValueError(
                f"{grid} sets {name}: the search sets the budgets, the ledger and the noise of "
                "its fits." + curve * (own in ("epsilon", "delta", "rho"))
            )
    if isinstance(estimator, Pipeline):
        named = _pipeline_steps(estimator, params, public_steps, grid)
    else:
        check_final(estimator)
        if public_steps:
            raise ValueError(f"public_steps: no step is named {public_steps[0]!r}.")
        named = [("", set_values(clone(estimator), params, grid))]
    steps = tuple(_step(name, inner, name in public_steps) for name, inner in named)
    if not steps or not steps[-1].private:
        raise TypeError(NOT_PRIVATE)
    return Candidate(params, steps)


def _pipeline_steps(
    pipeline: Any, params: dict[str, Any], public_steps: tuple[str, ...], grid: str
) -> list[tuple[str, Any]]:
    """Names and unfitted steps with their parameters; public steps keep what they have learned.

    All steps are cloned, and the public ones then replaced by copies of what the user has fitted,
    since a clone forgets what it has learned. A parameter of the grid that changes a public step is
    refused: it would not have that effect on what the step has learned. Empty steps ("passthrough"
    or None) are left out, so that equal prefixes are found by position.
    """
    check_steps(pipeline.steps)
    if pipeline.memory is not None:
        raise ValueError("estimator: memory must be None: a cache would keep unreleased fits.")
    unknown = set(public_steps) - {name for name, _ in pipeline.steps}
    if unknown:
        raise ValueError(f"public_steps: no step is named {sorted(unknown)[0]!r}.")
    fitted = dict(pipeline.steps)
    for name in public_steps:
        if any(key == name or key.startswith(f"{name}__") for key in params):
            raise ValueError(f"{grid} changes {name!r}, which is one of public_steps.")
    # "passthrough" and None are no estimators: they stay as they are.
    fresh = Pipeline(
        [
            (name, clone(step) if isinstance(step, BaseEstimator) else step)
            for name, step in pipeline.steps
        ]
    )
    if isinstance(pipeline, PrivatePipeline):
        _without_budgets(fresh)
    check_steps(set_values(fresh, params, grid).steps)
    return [
        (name, deepcopy(fitted[name]) if name in public_steps else step)
        for name, step in fresh.steps
        if step is not None and not (isinstance(step, str) and step == "passthrough")
    ]


def _without_budgets(pipeline: Any) -> None:
    """Of what `privatize` made, the search sets the budgets; a ledger is still refused."""
    for _, step in pipeline.steps:
        if isinstance(step, BaseDPEstimator):
            step.set_params(**{name: values[-1] for name, values in _OWN.items() if name in _SPLIT})


def _step(name: str, estimator: Any, public: Any) -> Step:
    """Tell whether a step is private, public or without state; refuse any other.

    `requires_fit` is scikit-learn's tag for what has no state. It is the estimator's own word: the
    search cannot see whether it is true.
    """
    where = f"step {name!r}" if name else "estimator"
    if public:
        return Step(name, estimator, False)
    if isinstance(estimator, BaseDPEstimator):
        if estimator._divides_rows:
            raise TypeError(f"{where} ({type(estimator).__name__}) cannot be searched over.")
        _check_untouched(estimator, where)
        return Step(name, estimator, True)
    if isinstance(estimator, BaseEstimator) and not get_tags(estimator).requires_fit:
        return Step(name, estimator, False)
    if name and not hasattr(estimator, "fit"):
        raise TypeError(f"estimator: {where} must be an estimator, got {type(estimator).__name__}.")
    if isinstance(estimator, PublicEncoder):
        raise ValueError(
            f"{where} ({type(estimator).__name__}) learns only the columns: before the search, fit "
            "it to any rows with these columns, such as zeros, and list it in public_steps."
        )
    raise ValueError(
        f"{where} ({type(estimator).__name__}) learns from private rows without privacy: use "
        "bounds instead, or list it in public_steps if it was fitted on public rows."
    )


def _check_untouched(estimator: Any, where: str) -> None:
    """Refuse a private step that sets what the search sets.

    Such a value would be overwritten. An error is better than a budget that somebody believes in.
    """
    params = estimator.get_params(deep=False)
    for name, defaults in _OWN.items():
        value = params.get(name)
        if name in params and not any(same(value, default) for default in defaults):
            raise ValueError(
                f"{where} sets {name}: the search sets it for all its fits; give {name} to the "
                "search."
            )


def shared_prefix(candidates: Sequence[Candidate]) -> int:
    """Number of leading steps that are the same in all candidates, the last step left out.

    They are fitted once, for all candidates. A step counts as the same if the candidates differ in
    parameters only that its releases do not depend on (``_post_processing_params`` of its class).

    The last step never belongs to it: what is scored has to be a candidate's own. Public and
    stateless steps count as shared where their classes and parameters agree. At the end, those
    after the last private step are given back to the candidates: to transform is all that they do,
    and that costs no budget. So 0 where nothing that spends budget is shared.
    """
    first, size = candidates[0], 0
    for step in first.steps[:-1]:
        others = [each.steps[size] if size < len(each.steps) - 1 else None for each in candidates]
        if not all(_same(step, other) for other in others):
            break
        size += 1
    # What follows the last private one of them has nothing to be fitted once for.
    return max((i + 1 for i in range(size) if first.steps[i].private), default=0)


def _same(step: Step, other: Step | None) -> bool:
    """Whether two steps may be one that is fitted for both candidates.

    Position, class, name and parameters have to agree. Privately fitted steps may differ in
    parameters that slice their releases.
    """
    if other is None or type(step.estimator) is not type(other.estimator):
        return False
    if step.name != other.name or step.private != other.private:
        return False
    if not step.private:
        return _same_values(step.estimator, other.estimator, ())
    return _same_values(step.estimator, other.estimator, sliced_params(step.estimator, other))


def sliced_params(estimator: Any, other: Any) -> tuple[str, ...]:
    """Parameters that only say how much of what was released is kept: integers, or None.

    Only these can be compared by size, as :func:`_candidate_plan._kept` has to. A value of another
    kind, such as a share of the variance, is no slice of public size: then the steps count as
    different.
    """
    names = getattr(estimator, "_post_processing_params", ())
    return tuple(
        name
        for name in names
        if all(
            getattr(each, name) is None or isinstance(getattr(each, name), int | np.integer)
            for each in (estimator, other.estimator)
        )
    )


def _same_values(one: Any, two: Any, but: Any) -> bool:
    """Whether two estimators agree in all parameters `but` some.

    Deep parameters, so those of nested estimators are compared under their own names.
    """
    first, second = one.get_params(), two.get_params()
    return first.keys() == second.keys() and all(
        name in but or same(first[name], second[name]) for name in first
    )


def step_weights(steps: Sequence[Step], weights: dict[str, float] | None) -> dict[str, float]:
    """Part of the budget of each private step: they add up to one.

    The last step is the model, and most of the error is its; .8 for it, and .2 for the others
    together, are a convention, which `Shares.steps` replaces by other positive numbers.
    """
    names = [step.name for step in steps]
    if weights is None:
        if len(names) == 1:
            return {names[0]: 1.0}
        earlier = {name: _EARLIER / (len(names) - 1) for name in names[:-1]}
        return {**earlier, names[-1]: 1 - _EARLIER}
    if not isinstance(weights, dict) or set(weights) != set(names):
        raise ValueError("shares: steps must be a dict with a weight for each private step.")
    return shares_of_one(weights, "shares: steps")


def with_budget(estimator: Any, rho: float, delta: float) -> Any:
    """The estimator with the budget that the search has for it.

    In place. Budgets of a search are in rho, since zCDP is what adds up over steps and fits.
    """
    return estimator.set_params(rho=rho, delta=delta, epsilon=None)


def plan_of(estimator: Any, width: int, unit: str) -> PrivacyPlan:
    """The plan of a private step with its budget set.

    A plan is made of parameters, width and unit alone; nothing is fitted.
    """
    plan: PrivacyPlan = estimator.privacy_plan(width, unit=unit)
    return plan
