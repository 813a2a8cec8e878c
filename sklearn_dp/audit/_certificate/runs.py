"""Fits for a certificate: many, with system noise, in several processes if asked for."""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._base import BaseDPEstimator
from ..._privacy._noise import NoiseSource
from ..._privacy._trace import altering
from .._observe import run_fit
from .cases import Pair
from .likelihood import log_likelihood_ratio
from .shown import shown

__all__ = ["Runs", "less_noise", "run_pair", "sees_releases"]

_CHUNK = 50


@dataclass(frozen=True)
class Runs:
    """What many fits on two data sets have shown."""

    rows: list[Any]  # numbers and words
    is_other: np.ndarray  # whether the fit had the data set with the record
    # log-likelihood ratio of all releases; None where they cannot be seen
    ratios: np.ndarray | None


def sees_releases(estimator: Any) -> bool:
    """Whether releases on the way can be seen: in estimators of this package."""
    return isinstance(estimator, BaseDPEstimator)


def less_noise(factor: float) -> type[NoiseSource]:
    """A source of noise whose samplers all draw too little of it, by a factor above 1.

    Scales are divided, and the rate of a choice is multiplied, as it is an inverse scale. The
    accounting stays as it is: this is the deficit that a certificate has to find.
    """

    class LessNoise(NoiseSource):
        """The source of a context that :func:`~sklearn_dp._privacy._trace.altering` has made."""

        def rounded_gaussian(self, sigma: Any, size: Any = None) -> np.ndarray:
            return super().rounded_gaussian(np.asarray(sigma) / factor, size)

        def rounded_laplace(self, scale: Any, size: Any = None) -> np.ndarray:
            return super().rounded_laplace(np.asarray(scale) / factor, size)

        def exponential_choice(self, gaps: np.ndarray, rate: float) -> int:
            return super().exponential_choice(gaps, rate * factor)

    return LessNoise


def run_pair(
    estimator: Any, pair: Pair, fits: int, *, jobs: int = 1, deficit: float | None = None
) -> Runs:
    """Fit clones to both data sets of a pair, half of the fits each, by `jobs` processes.

    Fits of the two sides alternate, so each part of the fits (to learn, to choose, to count) has as
    many of both. Chunks of 50 keep the cost of sending a task small against that of its fits. With
    one job, everything runs in this process. `deficit` plants noise that is too small by this
    factor: a test of the certificate itself.
    """
    sides = [bool(i % 2) for i in range(fits)]
    tasks = [(estimator, pair, sides[i : i + _CHUNK], deficit) for i in range(0, fits, _CHUNK)]
    if jobs == 1:
        parts = [_chunk(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
            parts = list(pool.map(_chunk, *zip(*tasks, strict=True)))
    results = [result for part in parts for result in part]
    ratios = np.array([ratio for _, ratio in results]) if sees_releases(estimator) else None
    return Runs([row for row, _ in results], np.array(sides), ratios)


def _one_thread() -> None:
    """Small fits do not gain from threads, and processes that share cores lose by them."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def _chunk(estimator: Any, pair: Pair, sides: Any, deficit: float | None) -> list[Any]:
    """Some fits in one process; a deficit is planted there, as contexts do not travel to workers.

    Only these fits have it: sessions of other threads take their noise from the kernel's own
    source.
    """
    planted = nullcontext() if deficit is None else altering(NoiseSource, less_noise(deficit))
    with planted:
        return [_run(estimator, pair, side) for side in sides]


def _run(estimator: Any, pair: Pair, other: Any) -> tuple[Any, float]:
    """One fit: what it shows, and its log-likelihood ratio for the other data set.

    The ratio is turned around for fits on the larger data set, so that it is large for that one on
    both sides.
    """
    copy = clone(estimator)
    X, rest = (pair.other, pair.X) if other else (pair.X, pair.other)
    if not sees_releases(estimator):
        return shown(run_fit(copy, X, strict=False)), 0.0
    units = pair.units_of_X if other else pair.units_of_other
    outcome, score = log_likelihood_ratio(copy, X, rest, units)
    return shown(outcome), -score if other else score
