"""Noise that is not what it is said to be: its size, its mean, its independence, its source.

A replay cannot see any of these, because it forces the recorded outputs on the second fit. So they
are left to statistical tests of the noise, and to comparisons of fits with and without a seed. Laws
that a sampler might have by mistake are in `tests/mutants/law.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._privacy import _session
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._session import PrivacySession

from .planting import mutant

for _name, _sampler, _change in (
    # A standard deviation where a formula has a scale.
    (
        "noise halved",
        "rounded_gaussian",
        lambda draw, self, sigma, size: draw(self, sigma / 2, size),
    ),
    # The branch of a debugging session.
    ("noise forgotten", "rounded_gaussian", lambda draw, *given: 0 * draw(*given)),
    # Right in size, and the mean is off: halves of the law are missing.
    ("noise of one sign", "rounded_gaussian", lambda draw, *given: np.abs(draw(*given))),
    # One seed for all releases: two of the same scale give their difference away.
    ("same noise twice", "rounded_gaussian", lambda draw, _, *given: draw(NoiseSource(1), *given)),
    # Sensitivity over twice epsilon: a factor of two of another definition of neighbors.
    (
        "Laplace noise halved",
        "rounded_laplace",
        lambda draw, self, b, size: draw(self, b / 2, size),
    ),
):

    def _changed(original: Callable[..., Any], change: Callable[..., Any] = _change) -> Any:
        return lambda self, scale, size=None: change(original, self, np.asarray(scale), size)

    mutant(_name, "check_kernel_noise", NoiseSource, _sampler)(_changed)


# The exponential mechanism without the 2 in its denominator.
@mutant("selection too sharp", "check_noise_law", NoiseSource, "exponential_choice")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, gaps, rate: original(self, gaps, 2 * rate)


# Reproducible for whoever has the code.
@mutant("noise seeded without a seed", "check_noise_is_fresh", _session, "seed_of")
def _(original: Callable[..., Any]) -> Any:
    return lambda random_state: 0 if random_state is None else original(random_state)


# Whoever calls numpy.random.seed can take the noise off.
@mutant("noise from numpy's global generator", "check_noise_is_fresh", _session, "seed_of")
def _(original: Callable[..., Any]) -> Any:
    def seed_of(random_state: Any) -> Any:
        state = np.random.randint(2**31) if random_state is None else random_state  # noqa: NPY002
        return original(state)

    return seed_of


# Noise from a parameter: fits with the same parameter share it.
@mutant("noise seeded by n_jobs", "check_n_jobs_has_no_effect", BaseDPEstimator, "_open_session")
def _(original: Callable[..., Any]) -> Any:
    def open_session(self: Any, X: Any, unit: str, **public: Any) -> Any:
        before, self.random_state = self.random_state, self.random_state + (self.n_jobs or 1)
        try:
            return original(self, X, unit, **public)
        finally:
            self.random_state = before

    return open_session


# Seeded noise protects nobody who knows the seed, so a report has to say it.
@mutant("seed kept quiet", "check_seeded_noise_is_told", PrivacySession, "report")
def _(original: Callable[..., Any]) -> Any:
    return lambda self: replace(original(self), noise="system")
