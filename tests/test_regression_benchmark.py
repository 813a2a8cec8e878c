"""The comparison with stored ratios, and that it sees noise which is larger than it should be."""

import json

import numpy as np
import pytest
from benchmark_tools import benchmark_module

from sklearn_dp._privacy._noise import NoiseSource


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("regression")


@pytest.mark.slow
def test_noise_half_as_large_again_is_worse(benchmark, monkeypatch):
    """What `make regression` is for, on its quickest cell; the others see it as well."""
    name = "DPKMeans, n=20000 d=2 k=8, epsilon=0.1"
    stored = json.loads(benchmark.TABLE.read_text(encoding="utf-8"))[f"{name}: median"]["ratio"]
    original = NoiseSource.rounded_gaussian

    def louder(self, sigma, size=None):
        return original(self, 1.5 * np.asarray(sigma), size)

    monkeypatch.setattr(benchmark, "CELLS", {name: benchmark.CELLS[name]})
    kind, honest = benchmark.measure()[f"{name}: median"]
    assert benchmark.verdict(kind, stored, honest) == "ok"
    monkeypatch.setattr(NoiseSource, "rounded_gaussian", louder)
    kind, spoiled = benchmark.measure()[f"{name}: median"]
    assert benchmark.verdict(kind, stored, spoiled) == "WORSE"
