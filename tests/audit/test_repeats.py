"""Fine noise is a fingerprint: used again it is found anywhere, and fresh noise is not blamed."""

import itertools

import numpy as np
import pytest
from configurations import ESTIMATORS
from entropy import FINGERPRINT_BITS, entropy_problems, fingerprint, fork_problems, telling_fit
from scipy.special import ndtri

from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._noise_law import repeat_tests


def release(z, scale):
    value = np.arange(len(z))
    noise = np.rint(z * scale).astype(np.int64)
    return Event("gaussian", "a", value, 1.0, scale, 0.1, {}, value + noise)


def normal(n, seed):
    return ndtri(np.random.default_rng(seed).random(n))


def chance(traces):
    ((text, found),) = repeat_tests(traces)
    assert text == "noise is used again"
    return found


def test_fresh_noise_is_not_blamed():
    """False alarm below 1e-6 by the union bound; 30,000 numbers, at a fixed seed."""
    traces = [
        [release(normal(100, 10 * fit + i), 2.0 ** (25 + i)) for i in range(10)]
        for fit in range(30)
    ]
    assert chance(traces) > 1e-6


@pytest.mark.parametrize("sign", [1, -1])
def test_four_numbers_used_again_with_another_scale_and_place_are_found(sign):
    traces = [
        [release(normal(50, 10 * fit + i), 2.0 ** (26 + i)) for i in range(9)] for fit in range(20)
    ]
    traces[17].append(release(np.append(normal(3, 999), sign * normal(50, 34)[20:24]), 3e9))
    assert chance(traces) < 1e-8


def test_single_numbers_in_a_row_of_releases_are_found():
    """A stream that repeats every 6 calls, one number for each."""
    z = normal(6, 0)
    assert chance([[release(z[i % 6 : i % 6 + 1], 1e9) for i in range(20)]]) < 1e-8


def test_fits_without_a_seed_are_told_apart(toy, points):
    marks, bits = fingerprint(toy, points)
    assert bits >= FINGERPRINT_BITS and len(marks) >= 2
    assert entropy_problems(toy, points, fits=30) == []
    assert fork_problems(toy, points) == []


def test_short_seeds_are_found(toy, points, monkeypatch):
    """8 bits: 60 fits all differ with probability exp(-60^2 / 2^9) = 9e-4; here at fixed seeds."""
    with_seeds(monkeypatch, iter(np.random.default_rng(0).integers(0, 256, 1000).tolist()))
    assert "has the noise of another one" in entropy_problems(toy, points, fits=60)[0]


def with_seeds(monkeypatch, seeds):
    """Noise sources that are not seeded take one of these seeds after the other."""
    original = NoiseSource.__init__

    def init(self, seed=None, tag="noise"):
        original(self, next(seeds) if seed is None else seed, tag)

    monkeypatch.setattr(NoiseSource, "__init__", init)


@pytest.mark.quick("DPKMeans", "DPOneHotEncoder", "FederatedDPKMeans", "FriendlyMean")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_short_seeds_of_every_estimator_are_found(name, monkeypatch):
    """The mutants of the entropy need 1300 fits each, so only `make audit` tries them.
    Here there are 8 seeds in turn: two of 10 fits have the same noise for certain, else none.
    """
    moderate, X = telling_fit(ESTIMATORS[name]())
    assert entropy_problems(moderate, X, fits=10) == []
    with_seeds(monkeypatch, itertools.cycle(range(8)))
    assert "has the noise of another one" in entropy_problems(moderate, X, fits=10)[0]


def test_streams_that_forks_share_are_found(toy, points, monkeypatch):
    original, made = NoiseSource.__init__, []

    def init(self, seed=None, tag="noise"):
        made.append(1)
        original(self, len(made) if seed is None else seed, tag)

    monkeypatch.setattr(NoiseSource, "__init__", init)
    assert fork_problems(toy, points) == ["forked processes have the same noise"]
