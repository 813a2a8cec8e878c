"""Candidates of a search, from public facts alone: their steps, parameters and widths.

Nothing learns from private rows but private steps: of others only those are admitted that need no
fitting, and those that the user says were fitted on public rows. Nobody but the search sets
budgets, ledgers or seeds: a ledger of a step would be charged in each secret run, and so tell how
many there were.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import get_tags

from .._base import BaseDPEstimator
from .._compositions import PrivatePipeline
from .._costs.numbers import is_integer
from .._guarantee import PublicStep, SingleRows, problem_of
from .._n_clusters import check_number_of_clusters
from .._parameters import (
    DEFAULT_EPSILON,
    SQUARABLE,
    check_real,
    check_steps,
    domain_of,
    shares_of_one,
)
from .._rows.single_rows import finite
from .._silence import row_by_row
from ..preprocessing import DPOneHotEncoder, PublicEncoder, PublicScaler

MOST_CANDIDATES = 10_000
NOT_PRIVATE = (
    "estimator must be a private estimator of sklearn_dp, or a Pipeline that ends with one: "
    "privatize makes one of an estimator of scikit-learn."
)


def listed(name: str, space: Any, make: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The candidates of a grid or of a sample, as a list; an error names the parameter.

    A generator is refused: it could be read only once, and a search lists its candidates for each
    plan and for each fit. ``make(space)`` gives scikit-learn's collection of candidates.

    >>> from sklearn.model_selection import ParameterGrid
    >>> listed("param_grid", {"n_clusters": [2, 3]}, ParameterGrid)
    [{'n_clusters': 2}, {'n_clusters': 3}]
    """
    spaces = [space] if isinstance(space, dict) else space
    if not isinstance(spaces, list | tuple) or not all(isinstance(each, dict) for each in spaces):
        raise TypeError(f"{name} must be a dict or a list of dicts.")
    if not all(isinstance(key, str) for each in spaces for key in each):
        raise TypeError(f"{name} must have names of parameters as keys.")
    try:
        items = make(space) if spaces else ()
        few = 1 <= len(items) <= MOST_CANDIDATES
        candidates = list(items) if few else []
    except Exception as error:  # also of a distribution, which is the user's code
        raise ValueError(f"{name}: {error}") from error
    if not few:
        raise ValueError(f"{name} must hold between 1 and {MOST_CANDIDATES} candidates.")
    return candidates


def set_values(estimator: Any, params: dict[str, Any], grid: str) -> Any:
    """Set parameters of a candidate in place, or raise in the name of the grid."""
    try:
        return estimator.set_params(**params)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{grid}: {error}") from error


def same(one: Any, two: Any) -> bool:
    """True if two values of parameters, arrays too, are the same as far as can be told."""
    if isinstance(one, BaseEstimator):
        return type(one) is type(two)  # their parameters are compared by their own names
    try:
        return one is two or bool(np.all(np.asarray(one == two)))
    except (TypeError, ValueError):  # a missing value; arrays of other shapes
        return False


# -- candidates ------------------------------------------------------------------------------------


_OWN = {
    "epsilon": (None, DEFAULT_EPSILON),
    "rho": (None,),
    "ledger": (None,),
    "random_state": (None,),
    "delta": (1e-6,),
}
"""Parameters that the search sets itself; in the steps they must be left alone."""
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
    """One combination of parameters: clones of the user's steps; the last one is private."""

    params: dict[str, Any]
    steps: tuple[Step, ...]

    @property
    def private(self) -> tuple[Step, ...]:
        """The steps that spend budget."""
        return tuple(step for step in self.steps if step.private)


@dataclass(frozen=True)
class Limits:
    """Public limits of the rows, which scores need, from what the search is given."""

    distance: float | None  # what the user says is the largest distance that counts
    bounds: Any  # of the first step; None if there are none, or if other steps come before it
    n_features: int

    def __post_init__(self) -> None:
        if self.distance is not None:
            check_real(self.distance, "max_distance", **SQUARABLE)

    def max_distance(self, name: str) -> float:
        """Cap of a distance, the same for all candidates: by default the radius of `bounds`."""
        if self.distance is not None:
            return float(self.distance)
        if self.bounds is None:
            raise ValueError(
                f"scoring={name!r} needs bounds or max_distance: a public cap of distances that is "
                "the same for all candidates."
            )
        radius = float(domain_of(self.bounds, self.n_features).radius)
        return check_real(radius, "bounds: the radius", **SQUARABLE)

    def log_uniform_density(self) -> float:
        """Log-density of the uniform law on the bounds, in logs; no side may be of length zero."""
        if self.bounds is None:
            raise ValueError("scoring='log_density' needs bounds, the same for all candidates.")
        domain_of(self.bounds, self.n_features)
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
    """Set one combination of parameters and check every step of it; errors name the `grid`. Each
    step is private, in `public_steps` or free of fitting; the search sets budgets."""
    for name in params:
        parameter = name.rpartition("__")[2]
        if parameter in _OWN:
            curve = " To compare budgets, use sklearn_dp.inspection.utility_curve on public rows."
            raise ValueError(
                f"{grid} sets {name}: the search sets the budgets, the ledger and the noise of "
                "its fits." + curve * (parameter in ("epsilon", "delta", "rho"))
            )
    if isinstance(estimator, Pipeline):
        named = _pipeline_steps(estimator, params, public_steps, grid)
    else:
        if isinstance(estimator, type):
            raise TypeError("estimator must be an instance, not a class.")
        if not isinstance(estimator, BaseDPEstimator):
            raise TypeError(NOT_PRIVATE)
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
    """Names and unfitted steps with parameters, without empty ones; public ones are fitted."""
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
    if isinstance(pipeline, PrivatePipeline):  # the search sets budgets; a ledger is still refused
        for _, step in fresh.steps:
            if isinstance(step, BaseDPEstimator):
                step.set_params(**{name: _OWN[name][-1] for name in _SPLIT})
    check_steps(set_values(fresh, params, grid).steps)
    return [
        (name, deepcopy(fitted[name]) if name in public_steps else step)
        for name, step in fresh.steps
        if step is not None and not (isinstance(step, str) and step == "passthrough")
    ]


def _step(name: str, estimator: Any, public: Any) -> Step:
    """Tell whether a step is private, public or without state (`requires_fit`), or refuse it."""
    where = f"step {name!r}" if name else "estimator"
    if public:
        return Step(name, estimator, False)
    if isinstance(estimator, BaseDPEstimator):
        if estimator._divides_rows:
            raise TypeError(f"{where} ({type(estimator).__name__}) cannot be searched over.")
        params = estimator.get_params(deep=False)
        for parameter, defaults in _OWN.items():
            # An error is better than a budget that somebody believes in, and that is overwritten.
            value = params.get(parameter, defaults[0])
            if not any(same(value, default) for default in defaults):
                raise ValueError(
                    f"{where} sets {parameter}: the search sets it for all its fits; give "
                    f"{parameter} to the search."
                )
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


def shared_prefix(candidates: Sequence[Candidate]) -> int:
    """Number of leading steps, without the last, that are the same in all candidates, but for
    parameters that releases do not depend on (``_post_processing_params``). Public steps after the
    last private one are left to the candidates."""
    first, size = candidates[0], 0
    for step in first.steps[:-1]:
        others = [each.steps[size] if size < len(each.steps) - 1 else None for each in candidates]
        if not all(_same(step, other) for other in others):
            break
        size += 1
    # What follows the last private one of them has nothing to be fitted once for.
    return max((i + 1 for i in range(size) if first.steps[i].private), default=0)


def _same(step: Step, other: Step | None) -> bool:
    """True if one fitted step serves both candidates: all agree, but for slices."""
    if other is None or type(step.estimator) is not type(other.estimator):
        return False
    if step.name != other.name or step.private != other.private:
        return False
    # Deep parameters: those of nested estimators are compared under their own names.
    one, two = step.estimator.get_params(), other.estimator.get_params()
    # Integers, or None: they only say how much of what was released is kept.
    sliced = [
        name
        for name in getattr(step.estimator, "_post_processing_params", ())
        if step.private
        and all(params[name] is None or is_integer(params[name]) for params in (one, two))
    ]
    return one.keys() == two.keys() and all(
        name in sliced or same(one[name], two[name]) for name in one
    )


def step_weights(steps: Sequence[Step], weights: dict[str, float] | None) -> dict[str, float]:
    """Part of the budget of each private step."""
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
    """A copy of the estimator with its budget, in rho: zCDP is what adds up over steps and fits."""
    return deepcopy(estimator).set_params(rho=rho, delta=delta, epsilon=None)


# -- widths ----------------------------------------------------------------------------------------


def widths(steps: Sequence[Step], n_features: int) -> Iterator[tuple[Any, Any]]:
    """Each step with the public numbers of columns that may come in: one, unless one is chosen."""
    columns: tuple[int, ...] = (n_features,)
    for step in steps:
        yield step, columns
        if step is not steps[-1]:
            columns = widths_after(step, columns)


def widths_after(step: Step, widths: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of columns, increasing, that a step may make of any of `widths` columns: public.

    A step without fitting is asked with one row of zeros, which is no data. A private one tells
    their number by its parameters, or all numbers that it may choose from: which one it is, only
    its releases tell.

    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.model_selection._candidates import Step
    >>> widths_after(Step("clusters", DPKMeans((2, 5)), True), (7,))
    (2, 3, 4, 5)
    """
    made = _widths_of_private if step.private else _width_of_answer
    return tuple(sorted({each for width in widths for each in made(step, width)}))


def _width_of_answer(step: Step, width: int) -> tuple[int]:
    if isinstance(step.estimator, SingleRows):
        return (step.estimator.columns_after(width),)
    try:
        return (int(np.asarray(step.estimator.transform(np.zeros((1, width)))).shape[1]),)
    except NotFittedError:
        kind = type(step.estimator).__name__
        raise ValueError(
            f"public_steps: step {step.name!r} ({kind}) is not fitted. Fit it on public rows "
            "first: the search uses it as it is."
        ) from None


def _widths_of_private(step: Step, width: int) -> Any:
    estimator = step.estimator
    if hasattr(estimator, "n_components"):
        value = estimator.n_components
        if isinstance(value, int | np.integer):
            return (int(value),)
        if isinstance(value, tuple | list):
            return range(value[0], min(value[1], width) + 1)
        return (width,) if value is None else range(1, width + 1)
    if hasattr(estimator, "n_clusters"):
        asked = check_number_of_clusters(estimator.n_clusters, "n_clusters")
        if isinstance(asked, int):
            return (asked,)
        return range(asked.low, asked.high + 1)
    if isinstance(estimator, DPOneHotEncoder):
        raise ValueError(
            "DPOneHotEncoder: the number of categories is released by the fit, so it is not known "
            "in advance. Fit it separately, and pass its `schema_` to PublicEncoder."
        )
    return (width,)


# -- fitted ----------------------------------------------------------------------------------------
# A score may call anything here, and its sensitivity is proved row by row. So every function of
# rows has to give each row a result that depends on that row (and on what was released) alone, to
# the last bit. Matrix products of a linear algebra library break that: they pick their kernels by
# the number of rows, so one row more may change the last bits of all others. Results are made in a
# fixed order (:mod:`sklearn_dp._rows.single_rows`).


_ELEMENTWISE = (Binarizer, MaxAbsScaler, MinMaxScaler, PublicScaler, RobustScaler, StandardScaler)


def transformed(step: Any, X: Any) -> np.ndarray:
    """Transform rows by a fitted step, each row on its own, bit for bit; the results are finite.
    Steps of others get one row at a time; a row that they fail at counts as zeros."""
    inner = getattr(step, "estimator_", step)  # of another library, if it has one
    if len(X) and (isinstance(inner, BaseDPEstimator) or type(inner) in _ELEMENTWISE):
        return finite(step.transform(X))
    (first,) = row_by_row(step.transform, np.zeros((1, X.shape[1])))

    def of_row(row: np.ndarray) -> np.ndarray:
        try:
            return finite(np.asarray(step.transform(row), dtype=np.float64))
        except Exception:  # one row must not decide about the whole fit
            return np.zeros(first.shape)

    return np.concatenate([np.zeros((0, first.shape[1])), *row_by_row(of_row, X)])


class Fitted:
    """The fitted steps of a candidate, as (name, estimator), model last; "" without pipeline."""

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    @property
    def model(self) -> Any:
        """What the user searched with, fitted; steps known by the user's word alone are marked."""
        if self.steps[0][0] == "":
            return self.steps[0][1]
        marked = [
            step
            if not problem_of(step, fitted=True)
            else (PublicStep if get_tags(step).requires_fit else SingleRows)(step)
            for _, step in self.steps
        ]
        return Pipeline([(name, step) for (name, _), step in zip(self.steps, marked, strict=True)])

    @property
    def final(self) -> Any:
        """The last step."""
        return self.steps[-1][1]

    @property
    def centers(self) -> np.ndarray:
        """Released centers (k, q), in the space of the last step, whose class has some."""
        return np.atleast_2d(np.asarray(getattr(self.final, self.final._centers), np.float64))

    @property
    def input_centers(self) -> np.ndarray:
        """Released centers in the space of the input, where costs are comparable."""
        return self._back(self.centers)

    def last(self, X: Any) -> Any:
        """Rows in the space of the last step."""
        for _, step in self.steps[:-1]:
            X = transformed(step, X)
        return X

    def _back(self, points: Any) -> Any:
        """Points of the last step's space, in the space of the input."""
        for _, step in reversed(self.steps[:-1]):
            points = finite(step.inverse_transform(points))
        return points

    def reconstructed(self, X: Any) -> Any:
        """Rows as far as the steps can give them back."""
        final = self.final
        return self._back(finite(final.inverse_transform(final.transform(self.last(X)))))

    def log_density(self, X: Any) -> np.ndarray:
        """Log-density of the only step, by its own `score_samples`, in the units of the rows. Its
        bits are those of the row alone."""
        (only,) = self.steps
        return only[1].score_samples(X)

    def stripped(self) -> Self:
        """Without what was not released: labels of training rows must not survive a search."""
        for _, step in self.steps:
            for name in getattr(step, "_not_released", ()):
                vars(step).pop(name, None)
        return self
