"""A center and a count: exact sums, what is claimed of them, and what is made of them."""

import numpy as np

from sklearn_dp._aggregate.shared.centering import Weights, geometric_edges
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.single_rows import bins_of
from sklearn_dp._status import Status


def exact(weights, largest, groups=None):
    units, _ = Units.weighted(np.asarray(weights, dtype=float), largest, groups)
    return units.totals * units.step


def test_an_excess_counts_as_one_more_unit_at_most():
    """5, 1/2 and 3/2 of the largest weight: 1 and 1/2 above it, of 2.5 that count."""
    assert exact([10.0, 1.0, 3.0], 2.0)[[0, 2]].tolist() == [2.5, 1.5]
    assert Weights.of(exact([10.0, 1.0, 3.0], 2.0), np.zeros(3)).above == 1.5 / 4
    # In groups: half of 1 and half of 1/2, and nothing.
    grouped = exact([10.0, 3.0, 1.0], 2.0, ["ann", "ann", "bob"])
    assert grouped[[0, 2]].tolist() == [1.5, 0.75]


def test_noise_leaves_factors_in_their_range_and_status_alone():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        found = Weights.of(rng.normal(size=3) * 100, np.full(3, 100.0))
        assert 0 < found.square <= 1 and 0 <= found.above < 1
    assert not Weights.of(np.array([1e4, 5e3, 290.0]), np.full(3, 100.0)).told(Status())
    assert Weights.of(np.array([7.0]), 1.0) == Weights()
    (cut,) = Weights(above=0.5).told(Status())
    assert cut.code == "weights_cut" and Weights(above=0.5).told(Status([cut])) == (cut,)


def test_bins_hold_their_lower_edge_and_the_last_all_beyond():
    edges = geometric_edges(8.0, 3, 2.0)
    squares = np.array([0.0, 3.99, 4.0, 15.99, 16.0, 1e300, np.inf])
    assert bins_of(squares, edges).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert bins_of(squares[:0], edges).shape == (0,)
    assert geometric_edges(8.0, 1, 2.0).tolist() == [0.0, 8.0]
