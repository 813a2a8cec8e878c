"""What iterations may do, from released sizes, and what is known of the centers between them."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.kmeans.lloyd_state import (
    LloydContext,
    LloydState,
    changed_sides,
    cluster_scales,
    likely_counts,
    seen_width,
)
from sklearn_dp._aggregate.shared.axes import plain_axes
from sklearn_dp._aggregate.shared.centering import Size

CENTERS = np.array([[0.0, 0.0], [1000.0, 0.0]])


def with_coreset(points, weights, noise=1.0, coarse=False, small=False):
    core = Coreset(
        np.array(points, dtype=float),
        np.array(weights, dtype=float),
        len(points),
        np.zeros((len(points), 2)),
        noise,
        plain_axes(2, 1e4),
    )
    size = SimpleNamespace(small=small)
    return SimpleNamespace(coreset=core, tuning=TUNING, coarse=coarse, size=size, width=None)


def around(center, distance, weight):
    return [[center + distance, 0], [center - distance, 0]], [weight, weight]


def test_clusters_of_one_width_share_a_radius():
    points, weights = around(0, 10, 500)
    more, heavier = around(1000, 12, 500)
    assert (cluster_scales(with_coreset(points + more, weights + heavier), CENTERS) == 1.0).all()


def test_a_wide_light_cluster_gets_a_wider_radius():
    """Squared width 100 and 10000, weights 2000 and 200: typical 1000, so 10000 over 1000 or so."""
    points, weights = around(0, 10, 1000)
    more, lighter = around(1000, 100, 100)
    narrow, wide = cluster_scales(with_coreset(points + more, weights + lighter), CENTERS)
    typical = (2000 * 100 + 200 * 10000) / 2200
    expected = np.sqrt((200 * 10000 + 4 * typical) / (204 * typical)) / TUNING.scale_dead
    assert np.isclose(wide, expected) and 1 / 3 < narrow < 1


def test_noise_of_the_coreset_makes_no_width():
    points, weights = around(0, 10, 1000)
    more, lighter = around(1000, 100, 1)
    scales = cluster_scales(with_coreset(points + more, weights + lighter, noise=1000.0), CENTERS)
    assert (scales == 1.0).all()


def test_without_leaves_all_widths_are_equal():
    empty = with_coreset(np.zeros((0, 2)), [])
    assert (cluster_scales(empty, CENTERS) == 1.0).all()


def test_the_width_of_a_typical_cluster_is_seen_in_small_data():
    """Squared width 100 and 400, of as many rows, and cells 12 and 0 wide: (100 + 400) / 2 + 6."""
    points, weights = around(0, 10, 500)
    more, others = around(1000, 20, 500)
    small = with_coreset(points + more, weights + others, small=True)
    small.coreset.widths[:, 0] = 12
    assert np.isclose(seen_width(small, CENTERS), np.sqrt(256))
    assert seen_width(with_coreset(points + more, weights + others), CENTERS) is None  # much data
    assert seen_width(with_coreset(np.zeros((0, 2)), [], small=True), CENTERS) is None
    small.coarse = True  # cells are wider than clusters
    assert seen_width(small, CENTERS) is None


def test_unsure_counts_are_averaged_with_the_leaves():
    state = LloydState(CENTERS)
    state.count, state.count_sd = np.array([1000.0, 10.0]), np.array([10.0, 10.0])
    core = with_coreset([[0, 0], [1000, 5]], [900, 40], noise=10.0)
    counts, sd, seen = likely_counts(core, state)
    assert counts[0] == 1000  # sure: a hundred standard deviations
    assert np.isclose(counts[1], 25)  # the mean of 10 and 40, which have the same noise
    assert np.allclose(sd, [10, 10 / np.sqrt(2)]) and seen.all()


def test_what_neither_cells_nor_counts_show_is_unseen():
    state = LloydState(CENTERS)
    state.count, state.count_sd = np.array([1000.0, 10.0]), np.array([10.0, 10.0])
    *_, seen = likely_counts(with_coreset([[0, 0]], [900], noise=10.0), state)
    assert seen.tolist() == [True, False]
    *_, seen = likely_counts(with_coreset([[0, 0]], [900], noise=10.0, coarse=True), state)
    assert seen.all()


def test_counts_are_averaged_over_iterations():
    state = LloydState(np.zeros((1, 2)))
    for count in (100.0, 110.0, 90.0, 100.0):
        state.update_counts(np.array([count]), 10.0, TUNING.memory)
    assert np.isclose(state.old_count[0], 100) and np.isclose(state.old_count_variance[0], 25)
    assert 5 < state.count_sd[0] < 10
    state.forget([0])
    state.update_counts(np.array([500.0]), 10.0, TUNING.memory)
    assert np.isclose(state.count[0], 500)


def context(signal=1e5, n_clusters=3, n_features=2):
    nothing = SimpleNamespace()
    return LloydContext(
        session=nothing,
        rows=SimpleNamespace(n_features=n_features),
        n_clusters=n_clusters,
        size=Size(signal, 1.0),
        radius=1.0,
        budget=1.0,
        inside=0.9,
    )


@pytest.mark.parametrize(("signal", "small"), [(1.0, True), (999.0, True), (1000.0, False)])
def test_small_data_get_other_numbers_of_iterations(signal, small):
    found = context(signal)
    assert found.most_iterations == (TUNING.few_iterations if small else TUNING.most_iterations)
    assert found.share * (found.most_iterations + 1) == pytest.approx(1.0)  # the last has two


@pytest.mark.parametrize(
    ("n_clusters", "n_iterations"), [(10, 8), (13, 8), (20, 6), (50, 5), (200, 4)]
)
def test_fewer_iterations_where_their_noise_rules(n_clusters, n_iterations):
    found = context(1000.0, n_clusters, n_features=64)
    noise = 8 * n_clusters / 1000  # of a center, in radii
    assert found.noise_of_center == pytest.approx(noise)
    assert found.lean == pytest.approx(min(1.0, TUNING.lean_noise / noise))
    assert found.most_iterations == n_iterations


def test_spread_is_asked_for_early_and_where_two_clusters_can_be_merged():
    last = TUNING.few_iterations
    assert context().asks_for_spread(last, 3)
    assert not context().asks_for_spread(last + 1, 3)
    assert not context().asks_for_spread(1, 4)  # before centers are reduced to k
    assert not replace(context(), moves=False).asks_for_spread(1, 3)
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


def test_many_centers_of_many_features_take_little_memory():
    """All differences of pairs of them at once would be 128 MB."""
    centers = np.random.default_rng(0).random((400, 100))
    tracemalloc.start()
    changed_sides(centers, centers[::-1], np.ones(400))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7
