"""What a search is going to fit, from public facts alone: steps, parameters, widths, plans."""

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from .._base import BaseDPEstimator, check_real
from .._privacy._domain import Domain
from .._privacy._plan import PrivacyPlan

__all__ = [
    "Candidate",
    "Limits",
    "Step",
    "candidate",
    "plan_of",
    "shared_prefix",
    "step_weights",
    "width_after",
    "with_budget",
]

_OWN = {"epsilon": None, "rho": None, "ledger": None, "random_state": None, "delta": 1e-6}
"""What the search sets itself, and what it must be in the steps."""
_EARLIER = 0.2
"""Weight of all private steps before the last one, together."""


@dataclass(frozen=True)
class Step:
    """One step of a candidate, not fitted (or fitted elsewhere, if it is public)."""

    name: str
    estimator: object
    private: bool


@dataclass(frozen=True)
class Candidate:
    """One combination of parameters.

    Attributes
    ----------
    params : dict
        As in the grid.
    steps : tuple of Step
        The last one is private.
    """

    params: dict
    steps: tuple

    @property
    def private(self):
        """The steps that spend budget."""
        return tuple(step for step in self.steps if step.private)


@dataclass(frozen=True)
class Limits:
    """Public limits of the rows, which scores need.

    Attributes
    ----------
    distance : float or None
        What the user says is the largest distance that counts.
    bounds : object
        Of the first step; None if there are none, or if other steps come before it.
    n_features : int
    """

    distance: float | None
    bounds: Any
    n_features: int

    def max_distance(self, name):
        """Cap of a distance, the same for all candidates."""
        if self.distance is not None:
            return check_real(self.distance, "max_distance")
        if self.bounds is None:
            raise ValueError(
                f"scoring={name!r} needs bounds or max_distance: a public cap of distances that is "
                "the same for all candidates."
            )
        return float(Domain.from_bounds(self.bounds, self.n_features).radius)

    def log_uniform_density(self):
        """Log-density of the uniform law on the bounds."""
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
        return -float(np.log(high - low).sum())


def candidate(estimator, params, public_steps):
    """Set one combination of parameters and check every step of it.

    Parameters
    ----------
    estimator : BaseDPEstimator or Pipeline
    params : dict
        One element of the grid.
    public_steps : collection of str
        Names of steps that were fitted elsewhere, without private rows.

    Returns
    -------
    candidate : Candidate

    Raises
    ------
    TypeError, ValueError
        If a step is neither private, nor public, nor free of fitting; if a step or the grid sets
        what the search sets; for parameters that do not exist.
    """
    for name in params:
        if name.rpartition("__")[2] in _OWN:
            raise ValueError(
                f"param_grid sets {name}: the search sets the budgets, the ledger and the noise of "
                "its fits."
            )
    if isinstance(estimator, Pipeline):
        named = _pipeline_steps(estimator, params, public_steps)
    else:
        named = [("", clone(estimator).set_params(**params))]
    steps = tuple(_step(name, inner, name in public_steps) for name, inner in named)
    if not steps or not steps[-1].private:
        raise TypeError(
            "estimator must be a private estimator of sklearn_dp, or a Pipeline that ends with one."
        )
    return Candidate(params, steps)


def _pipeline_steps(pipeline, params, public_steps):
    """Names and unfitted steps with their parameters; public steps keep what they have learned."""
    if pipeline.memory is not None:
        raise ValueError("estimator: memory must be None: a cache would keep unreleased fits.")
    unknown = set(public_steps) - {name for name, _ in pipeline.steps}
    if unknown:
        raise ValueError(f"public_steps: no step is named {sorted(unknown)[0]!r}.")
    fitted = dict(pipeline.steps)
    for name in public_steps:
        if any(key == name or key.startswith(f"{name}__") for key in params):
            raise ValueError(f"param_grid changes {name!r}, which is one of public_steps.")
    fresh = Pipeline([(name, _unfitted(step)) for name, step in pipeline.steps])
    fresh.set_params(**params)
    return [
        (name, deepcopy(fitted[name]) if name in public_steps else step)
        for name, step in fresh.steps
        if step is not None and not (isinstance(step, str) and step == "passthrough")
    ]


def _unfitted(step):
    return clone(step) if isinstance(step, BaseEstimator) else step


def _step(name, estimator, public):
    where = f"step {name!r}" if name else "estimator"
    if public:
        return Step(name, estimator, False)
    if isinstance(estimator, BaseDPEstimator):
        _check_untouched(estimator, where)
        return Step(name, estimator, True)
    if isinstance(estimator, BaseEstimator) and not get_tags(estimator).requires_fit:
        return Step(name, estimator, False)
    if not name:
        raise TypeError(
            "estimator must be a private estimator of sklearn_dp, or a Pipeline that ends with one."
        )
    raise ValueError(
        f"{where} ({type(estimator).__name__}) learns from private rows without privacy: use "
        "bounds instead, or list it in public_steps if it was fitted on public rows."
    )


def _check_untouched(estimator, where):
    params = estimator.get_params(deep=False)
    for name, default in _OWN.items():
        value = params.get(name, default)
        if value is not default and value != default:
            raise ValueError(
                f"{where} sets {name}: the search sets it for all its fits; give {name} to the "
                "search."
            )


def shared_prefix(candidates):
    """Number of leading steps that are the same in all candidates, the last step left out.

    They are fitted once, for all candidates. A step counts as the same if the candidates differ in
    parameters only that its releases do not depend on (``_post_processing_params`` of its class).
    """
    first, size = candidates[0], 0
    for step in first.steps[:-1]:
        others = [each.steps[size] if size < len(each.steps) - 1 else None for each in candidates]
        if not all(_same(step, other) for other in others):
            break
        size += 1
    # What follows the last private one of them has nothing to be fitted once for.
    return max((i + 1 for i in range(size) if first.steps[i].private), default=0)


def _same(step, other):
    if other is None or type(step.estimator) is not type(other.estimator):
        return False
    if step.name != other.name or step.private != other.private:
        return False
    if not step.private:
        return _same_values(step.estimator, other.estimator, ())
    return _same_values(step.estimator, other.estimator, sliced_params(step.estimator, other))


def sliced_params(estimator, other):
    """Parameters that only say how much of what was released is kept: integers, or None."""
    names = getattr(estimator, "_post_processing_params", ())
    return tuple(
        name
        for name in names
        if all(
            getattr(each, name) is None or isinstance(getattr(each, name), int | np.integer)
            for each in (estimator, other.estimator)
        )
    )


def _same_values(one, two, but):
    first, second = one.get_params(), two.get_params()
    return first.keys() == second.keys() and all(
        name in but or _equal(first[name], second[name]) for name in first
    )


def _equal(one, two):
    if isinstance(one, BaseEstimator):
        return type(one) is type(two)  # their parameters are compared by their own names
    try:
        return one is two or bool(np.all(np.asarray(one == two)))
    except ValueError:  # arrays of other shapes
        return False


def step_weights(steps, weights):
    """Part of the budget of each private step: they add up to one.

    Parameters
    ----------
    steps : sequence of Step
        Private ones.
    weights : dict or None
        Positive numbers by name. None: .8 for the last step, .2 for the others together.
    """
    names = [step.name for step in steps]
    if weights is None:
        if len(names) == 1:
            return {names[0]: 1.0}
        earlier = {name: _EARLIER / (len(names) - 1) for name in names[:-1]}
        return {**earlier, names[-1]: 1 - _EARLIER}
    if not isinstance(weights, dict) or set(weights) != set(names):
        raise ValueError("budget_shares must be a dict with a weight for each private step.")
    values = {name: check_real(value, "budget_shares") for name, value in weights.items()}
    total = sum(values.values())
    return {name: value / total for name, value in values.items()}


def with_budget(estimator, rho, delta):
    """The estimator with the budget that the search has for it."""
    return estimator.set_params(rho=rho, delta=delta, epsilon=None)


def width_after(step, width):
    """Number of columns that a step makes of `width` columns: a public fact."""
    estimator = step.estimator
    if not step.private:
        return int(np.asarray(estimator.transform(np.zeros((1, width)))).shape[1])
    for name in ("n_components", "n_clusters"):
        value = getattr(estimator, name, None)
        if isinstance(value, int | np.integer):
            return int(value)
    return width


def plan_of(estimator, width, unit):
    """The plan of a private step with its budget set."""
    plan: PrivacyPlan = estimator.privacy_plan(width, unit=unit)
    return plan
