"""Few public rows for many private ones: budgets that have the same effect.

The noise of a Gaussian release has a standard deviation of sensitivity / mu, with mu = sqrt(2 rho),
and what it is added to grows with the number n of rows. So a result depends on both through n mu:
a tenth of the rows, at ten times mu and a hundred times rho, sees the same noise beside its sums.
What the number of rows itself changes (how well they describe the people they were drawn from)
stays as it is among the public ones.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import clone

from .._base import BaseDPEstimator
from .._privacy._plan import PrivacyPlan
from .._privacy._randomness import seed_of
from ..exceptions import SeededNoiseWarning, UtilityWarning

__all__ = ["Setting", "fits", "plan_at", "scale_freely", "seeds", "settings"]


@dataclass(frozen=True)
class Setting:
    """One point of a curve: an estimator to fit on the public rows."""

    epsilon: float  # what the fit stands for
    plan: PrivacyPlan  # of the private fit that it stands for
    # not fitted, without a ledger, with the budget that the public rows need
    estimator: BaseDPEstimator


def plan_at(estimator: BaseDPEstimator, epsilon: float, n_features: int) -> PrivacyPlan:
    """The plan of a private fit at another epsilon; nothing is charged."""
    return _uncharged(estimator, epsilon=epsilon, rho=None).privacy_plan(n_features)


def scale_freely(estimator: BaseDPEstimator, plan: PrivacyPlan) -> bool:
    """Whether public rows of another number can stand for the private ones.

    They can where all noise is Gaussian and belongs to sums over all rows. Other noise has laws
    that do not scale with n mu. And an aggregate of blocks has noise for the number of blocks,
    whatever the number of rows: estimators of this package that take the place of none of
    scikit-learn's are of that kind, or not Gaussian.
    """
    return plan.gaussian and bool(getattr(estimator, "_replaces", ""))


def settings(
    estimator: BaseDPEstimator, epsilons: Sequence[float], shape: tuple[int, int], n_units: int
) -> Iterator[Setting]:
    """For each epsilon, what to fit on public rows in the place of private ones.

    The shape is that of the public rows; there are `n_units` private ones. A ValueError where rows
    of this number cannot stand for the private ones.
    """
    n_public, n_features = shape
    for epsilon in epsilons:
        plan = plan_at(estimator, epsilon, n_features)
        if n_public == n_units:  # as many rows need no scaling, whatever the noise
            yield Setting(epsilon, plan, _uncharged(estimator, epsilon=epsilon, rho=None))
            continue
        if not scale_freely(estimator, plan):
            raise ValueError(
                f"X_public: the noise of {type(estimator).__name__} at epsilon = {epsilon:g} does "
                "not scale with the number of rows; give n_units rows instead."
            )
        # The cost of the plan, not of the target: failure probabilities keep a part for themselves.
        rho = plan.rho * (n_units / n_public) ** 2
        scaled = _uncharged(estimator, epsilon=None, rho=rho)
        _check_same_releases(scaled, plan, n_features)
        yield Setting(epsilon, plan, scaled)


def _uncharged(estimator: BaseDPEstimator, **budget: float | None) -> BaseDPEstimator:
    """A fresh copy with another budget, that no ledger hears of."""
    return clone(estimator).set_params(ledger=None, **budget)


def _check_same_releases(scaled: BaseDPEstimator, plan: PrivacyPlan, n_features: int) -> None:
    """Refuse a budget at which the estimator would take another way than the private fit.

    Some estimators choose their algorithm by the budget, and a scaled one is no real budget.
    """
    try:
        found = scaled.privacy_plan(n_features)
    except ValueError as error:
        raise ValueError(
            "n_units and epsilons: together too small, or too large, for so many rows of X_public."
        ) from error
    if _releases(found) != _releases(plan):
        raise ValueError(
            f"X_public: {type(scaled).__name__} works in another way at the scaled budget; give "
            "n_units rows instead."
        )


def _releases(plan: PrivacyPlan) -> list[tuple[Any, ...]]:
    """What a plan releases and by which laws."""
    return [(entry.name, entry.mechanism) for entry in plan.entries]


def fits(setting: Setting, X: np.ndarray, fit_seeds: Sequence[int | None]) -> Iterator[Any]:
    """Fits of one setting, each with noise of its own.

    The rows are public, so a seed endangers nobody and a poor answer is what the curve is there to
    show: neither gives a warning. The report of a fit would state a budget that stands for another,
    and is dropped.
    """
    for seed in fit_seeds:
        model = clone(setting.estimator).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            warnings.simplefilter("ignore", UtilityWarning)
            model.fit(X)
        yield model


def seeds(random_state: object, n_seeds: int) -> list[int | None]:
    """Seeds of fits and mixtures that do not repeat; None where nothing is to be repeated.

    Consecutive integers would not do: curves of neighbouring states would share most of their
    noise.
    """
    seed = seed_of(random_state)
    if seed is None:
        return [None] * n_seeds
    texts = [f"sklearn_dp/utility_curve/{seed}/{i}" for i in range(n_seeds)]
    # 31 bits: scikit-learn's own estimators take no more than 32.
    return [int.from_bytes(sha256(text.encode()).digest()[:4], "big") >> 1 for text in texts]
