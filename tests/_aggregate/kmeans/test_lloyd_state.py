"""What iterations may do, from released sizes, and what is known of the centers between them."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.lloyd_state import LloydContext, LloydState, changed_sides
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size


def test_counts_are_averaged_over_iterations():
    state = LloydState(np.zeros((1, 2)))
    for count in (100.0, 110.0, 90.0, 100.0):
        state.update_counts(np.array([count]), 10.0, TUNING.count_memory)
    assert np.isclose(state.old_count[0], 100) and np.isclose(state.old_count_variance[0], 25)
    assert 5 < state.count_sd[0] < 10
    state.forget([0])
    state.update_counts(np.array([500.0]), 10.0, TUNING.count_memory)
    assert np.isclose(state.count[0], 500)


def test_a_radius_doubles_while_its_cluster_creeps_and_comes_back():
    state = LloydState(np.zeros((2, 3)))
    for expected in (2.0, 4.0, 5.0, 5.0):
        state.widen(np.array([True, False]), 5.0)
        assert state.reach.tolist() == [expected, 1.0]
    for expected in (2.5, 1.25, 1.0):
        state.widen(np.array([False, False]), 5.0)
        assert state.reach.tolist() == [expected, 1.0]
    state.widen(np.array([True, True]), 5.0)
    state.forget([1])
    assert state.reach.tolist() == [2.0, 1.0]


def context(signal=1e5, n_clusters=3):
    nothing = SimpleNamespace()
    return LloydContext(
        session=nothing,
        rows=nothing,
        n_clusters=n_clusters,
        size=Size(signal, 1.0),
        radius=1.0,
        budget=1.0,
        inside=0.9,
    )


@pytest.mark.parametrize(("signal", "small"), [(1.0, True), (999.0, True), (1000.0, False)])
def test_small_data_get_other_numbers_of_iterations(signal, small):
    found = context(signal)
    prefix = "small_" if small else ""
    assert found.most_iterations == getattr(TUNING, f"{prefix}most_iterations")
    assert found.share == getattr(TUNING, f"{prefix}iteration_share")


def test_spread_is_asked_for_early_and_where_two_clusters_can_be_merged():
    last = TUNING.spread_iterations
    assert context().asks_for_spread(last, 3)
    assert not context().asks_for_spread(last + 1, 3)
    assert not context().asks_for_spread(1, 4)  # before centers are reduced to k
    assert not context(n_clusters=2).asks_for_spread(1, 2)
    assert not context(n_clusters=1).asks_for_spread(1, 1)


def test_rows_that_a_border_passes():
    """Two clusters of 100 rows, 10 apart; one center goes 4: 2 of 10 of half of their rows."""
    before, after = np.array([[0.0, 6.0], [0.0, 0.0]]), np.array([[0.0, 10.0], [0.0, 0.0]])
    weights = np.array([100.0, 100.0])
    assert changed_sides(before, after, weights).tolist() == [20.0, 20.0]
    assert not changed_sides(after, after, weights).any()
    # Centers that are one, and a negative number of rows.
    assert changed_sides(after, 0 * after, np.array([100.0, -5.0])).tolist() == [100.0, 100.0]
