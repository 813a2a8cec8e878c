"""Decisions about single units, released only through what is computed from the survivors.

Whether a unit survives is no release. What such a filter costs, and for which mechanisms, is proved
in :mod:`sklearn_dp._queries.averages`; here is only the law: a noisy score against a threshold, or
a coin of exact probability. Both decide about each unit by its own score and its own noise alone,
so a unit that is added changes other units' decisions only through their scores. `sensitivity`
bounds that change.
"""

import math
from typing import Any

import numpy as np

from ..._costs.plan import Mechanism
from .._entries import exact_integers
from .._session import Release, check_cost, positive_sensitivity, require

_MOST = 2**63  # the range of exactly uniform integers


def friendly_core_filter(
    session: Any,
    entry: str,
    scores: np.ndarray,
    *,
    sigma: float,
    threshold: float,
    bad: float,
    sensitivity: float,
    rho: float,
    delta: float,
    most: float = math.inf,
    fixed: bool = False,
    units: np.ndarray | None = None,
) -> np.ndarray:
    """Keep the units whose noisy score reaches a threshold: a mask. NOT a release.

    Only a mechanism that is private on friendly survivors may use it. Scores, `sigma`,
    `threshold` and `bad` are in grid steps; a unit with a score of at most `bad` survives only
    within delta. No common unit's score moves by more than `sensitivity`. `rho` and `delta` are
    as proved by the caller; `rho` pays for `most` common units, and there are more only within
    delta. `fixed`: the elements are not units but results of blocks, of which one is replaced.
    `units` are the numbers of the units that there are scores of; all of them by default. Unlike
    other laws' the noise scale is the caller's: the cost depends on how many scores move, which
    only the caller's proof knows."""
    scores, sensitivity = exact_integers(scores), positive_sensitivity(sensitivity)
    sigma = float(check_cost("sigma", sigma))
    require(math.isfinite(threshold) and threshold > bad, "a threshold above what is bad")
    release = Release(
        "filter",
        Mechanism.FRIENDLY_CORE,
        scores,
        sensitivity,
        sigma,
        rho,
        lambda noise: scores + noise.rounded_gaussian(sigma, scores.shape) >= threshold,
        delta,
        public={"threshold": threshold, "bad": bad, "most": most, "fixed": fixed, "delta": delta},
        units=units,
    )
    return session._release(entry, release)


def unit_bernoulli(
    session: Any,
    entry: str,
    numerators: np.ndarray,
    denominator: int,
    *,
    sensitivity: float,
    rho: float,
    delta: float,
    units: np.ndarray | None = None,
) -> np.ndarray:
    """Keep unit i with probability numerators[i] / denominator, exactly and independently.

    A mask, which is NOT a release, as in :func:`friendly_core_filter`. A numerator of at most
    0: never kept; of at least `denominator`, which is public and at most 2**63: always.
    `sensitivity` is the proved l1 distance of the vectors of probabilities, over the common
    units; `rho` and `delta` are as proved by the caller; `units` as in
    :func:`friendly_core_filter`.

    A coin is a uniform integer below the denominator, compared with the numerator: the chance of
    a comparison with a uniform float would be off by up to 2^-53."""
    numerators, sensitivity = exact_integers(numerators), positive_sensitivity(sensitivity)
    require(denominator == int(denominator) and 1 <= denominator <= _MOST, "a whole denominator")
    denominator = int(denominator)
    release = Release(
        "bernoulli",
        Mechanism.FRIENDLY_CORE,
        np.clip(numerators / float(denominator), 0.0, 1.0),
        sensitivity,
        1.0,
        rho,
        lambda noise: noise.uniform_integers(denominator, numerators.shape) < numerators,
        delta,
        public={"delta": delta},
        told=(sensitivity, 0.0),
        units=units,
    )
    return session._release(entry, release)
