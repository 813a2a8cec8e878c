"""Noise that is not what it is said to be.

They break the sampler or the seeding, so every estimator reaches them; whether they are seen
depends on how many numbers its releases have. The laws that a sampler might have by mistake are in
`tests/mutants/law.py`: the sampler is the kernel's, and no estimator can change it.

Each changes one property of the noise and keeps all others: its size, its mean, its independence of
other noise, or where its randomness comes from. A replay cannot see any of these, because it forces
the recorded outputs on the second fit and asks nothing of how they were drawn. So they are left to
statistical tests of the noise (`check_noise_law`), and to comparisons of fits with and without a
seed.
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


# A standard deviation where a formula has a scale.
@mutant("noise halved", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, sigma, size=None: original(self, np.asarray(sigma) / 2, size)


# The branch of a debugging session.
@mutant("noise forgotten", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, sigma, size=None: 0 * original(self, sigma, size)


# Right in size, and the mean is off: halves of the law are missing.
@mutant("noise of one sign", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, sigma, size=None: np.abs(original(self, sigma, size))


# One seed for all releases: two of the same scale give their difference away.
@mutant("same noise twice", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, sigma, size=None: original(NoiseSource(1), sigma, size)


# Sensitivity over twice epsilon: a factor of two of another definition of neighbors.
@mutant("Laplace noise halved", "check_noise_law", NoiseSource, "rounded_laplace")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, scale, size=None: original(self, np.asarray(scale) / 2, size)


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
