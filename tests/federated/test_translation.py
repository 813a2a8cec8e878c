"""Far components come together, and their centers go back."""

import itertools
import math

import numpy as np
import pytest
from federated_states import clusters, session_of

from sklearn_dp._privacy._domain import Domain
from sklearn_dp.federated._engines import LocalEngine
from sklearn_dp.federated._near_counts import NearCounts
from sklearn_dp.federated._translation import Facts, Translation, ball_around, diameter_reduction

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_far_components_come_together_and_go_back():
    X, means, server = clusters(3, k=3, d=2, spread=0.01)
    far = np.array([[0.0, 0.0], [5e4, 0.0], [0.0, -7e4]])
    labels = np.linalg.norm(X[:, None] - means, axis=2).argmin(axis=1)
    X, server = X + far[labels], server + np.repeat(far, 10, axis=0)
    moved = diameter_reduction(
        NearCounts(session_of(0.5), "counts", LocalEngine([X]), Domain.from_bounds(1e5, 2)),
        server,
        Facts(n_rows=4000, w_min=0.3, sigma_max=0.01),
        rho=0.5,
        epsilon=1.0,
    )
    near = moved.apply(X)
    assert np.ptp(near, axis=0).max() < 0.01 * np.ptp(X, axis=0).max()
    centers = np.array([near[labels == j].mean(axis=0) for j in range(3)])
    truth = np.array([X[labels == j].mean(axis=0) for j in range(3)])
    assert moved.invert(centers) == pytest.approx(truth, abs=1e-3)
    gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(centers, 2)]
    assert min(gaps) > 1.0


def test_points_without_rows_are_dropped_and_nothing_moves_where_all_are():
    """Four far groups of public points; rows next to one, to two, to none of them."""
    places = np.array([[0.0, 0.0], [900.0, 0.0], [0.0, 900.0], [-900.0, 0.0]])
    server = np.repeat(places, 5, axis=0) + 1e-3 * np.arange(20)[:, None]
    facts, domain = Facts(n_rows=500, w_min=0.4, sigma_max=0.01), Domain.from_bounds(1e3, 2)
    for groups in ([0], [1, 3]):
        X = np.repeat(places[groups], 500, axis=0)
        near = NearCounts(session_of(50.0), "counts", LocalEngine([X]), domain)
        moved = diameter_reduction(near, server, facts, rho=50.0, epsilon=30.0)
        assert len(moved.points) == 5 * len(groups)
        assert np.ptp(moved.apply(X), axis=0).max() < 5
    near = NearCounts(session_of(50.0), "counts", LocalEngine([]), domain)
    nothing = diameter_reduction(near, server, facts, rho=50.0, epsilon=30.0)
    assert len(nothing.points) == 20 and not nothing.shifts.any()


def test_a_row_moves_by_what_its_nearest_point_says_whatever_other_rows_there_are():
    rng = np.random.default_rng(0)
    moved = Translation(10 * rng.normal(size=(9, 3)), 100 * rng.normal(size=(9, 3)))
    X = 10 * rng.normal(size=(40, 3))
    whole = moved.apply(X)
    for i in range(40):
        assert np.array_equal(moved.apply(X[i : i + 1])[0], whole[i])
        j = np.argmin(np.linalg.norm(moved.points - X[i], axis=1))
        assert np.array_equal(whole[i], X[i] + moved.shifts[j])


def test_the_ball_holds_the_points_and_the_rows_next_to_them():
    points, facts = np.array([[3.0, 0.0], [-1.0, 0.0]]), Facts(1000, 0.1, 0.5)
    ball = ball_around(points, facts)
    assert ball.center.tolist() == [1.0, 0.0]
    assert ball.radius == pytest.approx(2 + 4 * math.log(1000) * math.sqrt(2) * 0.5)
    moved = Translation(points, np.array([[0.0, 7.0], [0.0, 7.0]])).domain(facts)
    assert moved.center.tolist() == [1.0, 7.0] and moved.radius == ball.radius
