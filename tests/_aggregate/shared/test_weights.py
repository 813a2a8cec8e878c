"""How uneven weights are, and what the largest one cuts off: from exact and from noisy totals."""

import numpy as np
import pytest

from sklearn_dp._aggregate.shared.weights import Weights
from sklearn_dp._privacy._units import Units


def exact(weights, largest, groups=None):
    units, _ = Units.weighted(np.asarray(weights, dtype=float), largest, groups)
    return units.totals * units.step


def test_the_factor_is_that_of_the_effective_number_of_rows():
    weights = np.random.default_rng(0).uniform(1, 300, size=1000)
    found = Weights.of(exact(weights, 400.0), np.zeros(3))
    total = weights.sum() / 400
    effective = weights.sum() ** 2 / np.sum(weights**2)
    assert found.square / total == pytest.approx(1 / effective, rel=1e-4)
    assert found.above == 0 and found.told("ok") == "ok"


def test_an_excess_counts_as_one_more_unit_at_most():
    """5, 1/2 and 3/2 of the largest weight: 1 and 1/2 above it, of 2.5 that count."""
    assert exact([10.0, 1.0, 3.0], 2.0)[[0, 2]].tolist() == [2.5, 1.5]
    assert Weights.of(exact([10.0, 1.0, 3.0], 2.0), np.zeros(3)).above == 1.5 / 4
    # In groups: half of 1 and half of 1/2, and nothing.
    grouped = exact([10.0, 3.0, 1.0], 2.0, ["ann", "ann", "bob"])
    assert grouped[[0, 2]].tolist() == [1.5, 0.75]


def test_groups_have_the_bound_of_their_squares():
    weight, squares, _ = exact([1.0, 0.5, 0.25], 1.0, ["ann", "ann", "bob"])
    assert squares == weight == 1.0


def test_noise_leaves_factors_in_their_range_and_status_alone():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        found = Weights.of(rng.normal(size=3) * 100, np.full(3, 100.0))
        assert 0 < found.square <= 1 and 0 <= found.above < 1
    assert Weights.of(np.array([1e4, 5e3, 290.0]), np.full(3, 100.0)).told("ok") == "ok"
    assert Weights.of(np.array([7.0]), 1.0) == Weights()
    assert Weights(above=0.5).told("mostly noise") == "mostly noise"
