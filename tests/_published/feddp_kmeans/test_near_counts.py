"""Noisy counts next to public points, and the points that are kept."""

import numpy as np
import pytest
from federated_states import clusters, session_of

from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._privacy._plan import PlanError
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._published.feddp_kmeans.near_counts import (
    NearCounts,
    simplify_rounds,
    simplify_server_data,
)
from sklearn_dp.federated._engines import LocalEngine

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def on_grid(X, domain):
    return np.unique(Grid.for_radius(domain.radius).quantise(X, domain.radius), axis=0)


def test_server_points_without_rows_are_thinned_out():
    X, means, server = clusters(1)
    domain = Domain.from_bounds(12.0, 6)
    far = 3 + np.random.default_rng(2).uniform(0, 1, size=(60, 6))
    points = on_grid(np.vstack([server, far]), domain)
    rounds, recorder = simplify_rounds(len(points), 1.0, 0.2), Trace()
    assert rounds == 47  # T = 46 = 10 log(4 log(100) / 0.2), rounded up; and one
    with trace(recorder):
        near = NearCounts(session_of(1.0, rounds), "counts", LocalEngine([X[:99], X[99:]]), domain)
        kept = simplify_server_data(near, points, rounds, rho=1.0, threshold=30.0)
    places = points[kept] * Grid.for_radius(12.0).unit
    assert all(np.linalg.norm(places - mean, axis=1).min() < 1.0 for mean in means)
    assert not (places > 2.9).all(axis=1).any() and len(kept) <= 40
    noisy = [event for event in recorder.events if event.entry == "counts"]
    assert 1 < len(noisy) <= rounds
    # Noise for all the T + 1 rounds: sigma^2 = (T + 1) / (2 rho).
    assert all(float(e.scale) == pytest.approx(np.sqrt(rounds / 2)) for e in noisy)


def counted(clients, points, domain, rho=1e6, **options):
    """Counts and their exact values, and the session."""
    with trace(Trace()) as recorder:
        near = NearCounts(session_of(rho), "counts", LocalEngine(clients), domain, **options)
        noisy = near(points, rho)
    (event,) = [event for event in recorder.events if event.entry == "counts"]
    return noisy, np.asarray(event.value), event, near


def test_each_row_counts_once_at_its_nearest_point():
    """In all clients together, also outside the domain, and next to the first of two equals."""
    domain = Domain.from_bounds(1.0, 2)
    points = on_grid(np.array([[-0.5, 0.0], [0.5, 0.0]]), domain)
    X = np.array([[-0.4, 0.0], [0.3, 0.1], [1e9, 0.0], [0.0, 0.5], [-0.1, -0.9]])
    noisy, exact, event, near = counted([X[:2], X[2:], X[:0]], points, domain)
    assert exact.tolist() == [3, 2] and event.sensitivity == 1.0
    assert np.abs(noisy - exact).max() < 0.1  # a standard deviation of 7e-4
    with pytest.raises(PlanError):
        near(points, 1e6)  # the entry has one use


def test_counts_in_a_subspace_look_at_nothing_else():
    domain = Domain.from_bounds(1.0, 2)
    first_axis = np.array([[2.0**20], [0.0]])
    points = on_grid(np.array([[-0.5, 0.0], [0.5, 0.0]]), domain)[:, :1]
    X = np.array([[-0.1, 0.9], [-0.1, -0.9], [0.1, 0.9]])
    assert counted([X], points, domain, basis=first_axis)[1].tolist() == [2, 1]


def test_without_answers_there_is_noise_and_nothing_else():
    domain = Domain.from_bounds(1.0, 2)
    points = on_grid(np.eye(2) / 2, domain)
    noisy, exact, _, _ = counted([], points, domain, rho=0.5)
    assert not exact.any() and noisy.any()


def test_all_points_with_rows_are_kept_at_once_and_none_without():
    """High counts in the first round: nothing is left to halve, and one use has been spent."""
    domain = Domain.from_bounds(1.0, 2)
    points = on_grid(np.array([[-0.5, 0.0], [0.5, 0.0]]), domain)
    for n, kept, uses in ((200, [0, 1], 1), (0, [], None)):
        X = np.repeat([[-0.5, 0.0], [0.5, 0.0]], n, axis=0)
        with trace(Trace()) as recorder:
            near = NearCounts(session_of(1.0, 40), "counts", LocalEngine([X]), domain)
            found = simplify_server_data(near, points, 40, rho=1.0, threshold=60.0)
        assert found.tolist() == kept
        assert uses is None or len([e for e in recorder.events if e.entry == "counts"]) == uses
