"""How good a fit is beside one without privacy, and how good it can be at best.

All of it looks at public rows. A score of private rows would have to be released, and paid for.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._aggregate.shared.column_means import REFINEMENT
from .._base import BaseDPEstimator
from .._dropin.replacing import REPLACED
from .._privacy._plan import PrivacyPlan
from ._public_rows import clusters_of

__all__ = ["COST", "Yardstick", "cost_floor", "yardstick"]

COST = "cost over cost without privacy"
"""The label of ratios of costs; displays write them as what is lost, in percent."""

# Parameters that mean the same without privacy. Nothing else is handed over.
_SHARED = ("n_clusters", "n_components", "covariance_type", "whiten", "assume_centered")
# One start may end in a poor basin, and private fits would then seem better than they are.
_STARTS = {"KMeans": 10, "GaussianMixture": 5}
# From measurements of the engine: extra cost over the square of the noise, see `cost_floor`.
_FLOOR = 1.4


@dataclass(frozen=True)
class Yardstick:
    """What fits are measured by."""

    label: str  # in words, for an axis
    value: Callable[[Any], float]  # from a fitted estimator to a number
    reference: float  # the number of the non-private twin; NaN where there is none
    # whether numbers are costs over that of the twin, which `cost_floor` bounds
    is_cost: bool = False


def yardstick(
    estimator: BaseDPEstimator, X: np.ndarray, metric: Callable[..., Any] | None, seed: int | None
) -> Yardstick:
    """The metric of the user, or the score beside that of the non-private twin.

    A metric goes from a fitted estimator and rows to a number. The twin is fitted on the public
    rows `X`. Scores of k-means are costs, and compared by their ratio. Log-densities have no zero,
    so their difference counts.
    """
    alone = getattr(estimator, "metric", "euclidean") != "euclidean"
    if metric is None and alone:
        raise TypeError("metric must be given for an estimator whose distance is not Euclidean.")
    twin = None if alone else _fitted_twin(estimator, X, seed)
    # A function of the user may measure anything; how it compares is for the user to see.
    if metric is not None:
        if not callable(metric):
            raise TypeError("metric must be None or a function of a fitted estimator and rows.")
        found = math.nan if twin is None else _number(metric(twin, X))
        name = getattr(metric, "__name__", "metric").strip("<>")
        return Yardstick(name.replace("_", " "), lambda model: _number(metric(model, X)), found)
    if twin is None or not hasattr(twin, "score"):
        raise TypeError(f"metric must be given: {type(estimator).__name__} has no score.")
    with np.errstate(all="ignore"):  # what overflows is refused by name
        best = float(twin.score(X))
    if not math.isfinite(best):
        raise ValueError("X_public: its rows are too large for a score.")
    if estimator._replaces != "KMeans":
        label = "log-density lost per row"
        return Yardstick(label, lambda model: best - float(model.score(X)), 0.0)
    if best == 0:
        raise ValueError("X_public: its cost without privacy is zero; give a metric.")
    return Yardstick(COST, lambda model: float(model.score(X)) / best, 1.0, is_cost=True)


def _number(value: Any) -> float:
    """What a metric has returned, as a float; an error names the metric and not its value.

    >>> _number(np.float32(0.5))
    0.5
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        kind = type(value).__name__
    raise TypeError(f"metric must return a number, got {kind}.")


def _fitted_twin(
    estimator: BaseDPEstimator, X: np.ndarray, seed: int | None
) -> BaseEstimator | None:
    """The class that an estimator takes the place of, fitted on public rows; None without one.

    Parameters of the same meaning carry over; the seed is that of its starts.
    """
    name = getattr(estimator, "_replaces", "")
    if not name:
        return None
    kind = REPLACED[name][0]
    known = inspect.signature(kind).parameters
    options = {each: getattr(estimator, each) for each in _SHARED if hasattr(estimator, each)}
    options = {each: value for each, value in options.items() if each in known}
    for each in ("n_clusters", "n_components"):
        if isinstance(options.get(each), str | tuple | list):
            raise TypeError(f"{each} must be a number: a curve compares fits with the same value.")
    if name in _STARTS:
        options["n_init"] = _STARTS[name]
    if "random_state" in known:
        options["random_state"] = seed
    try:
        with np.errstate(all="ignore"):
            return kind(**options).fit(X)
    except ValueError as error:  # such as fewer rows than clusters
        raise ValueError(f"X_public: {error}") from error


def cost_floor(
    estimator: BaseDPEstimator, plan: PrivacyPlan, n_features: int, n_units: int
) -> float:
    """A cost over that of the twin which no fit of this plan gets below, by its noise alone.

    With the share rho_s of Lloyd's sums, mu^2 = 2 rho_s; where columns are alike the iterations
    also get what was planned to refine centers. Each of the k centers has noise of
    standard deviation nu = sqrt(d) k / (n mu), in the scale of the clusters, and the cost exceeds
    the best by about 1.4 nu^2. Lost clusters and wrong basins come on top: it is a floor.

    The plan is that of the private fit. NaN where it has no such sums, or the number of clusters is
    not known.
    """
    spent = {entry.name: entry.rho for entry in plan.entries}
    n_clusters = clusters_of(estimator)
    if "lloyd sums" not in spent or n_clusters is None:
        return math.nan
    iterations = sum(rho for name, rho in spent.items() if name.startswith("lloyd "))
    rho = spent["lloyd sums"] * (1 + spent.get(REFINEMENT, 0.0) / iterations)
    nu = math.sqrt(n_features) * n_clusters / (n_units * math.sqrt(2 * rho))
    return 1 + _FLOOR * nu**2
