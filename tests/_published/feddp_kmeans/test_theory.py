"""The algorithms of the paper's theory, put together: averages, and the whole of Algorithm 5."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from federated_states import clusters, session_of

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._privacy._plan import PlanError
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._published.feddp_kmeans.theory import (
    Facts,
    NearCounts,
    Translation,
    ball_around,
    cluster,
    diameter_reduction,
    private_average,
    simplify_rounds,
    simplify_server_data,
)
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._player import Replay
from sklearn_dp.federated._engines import LocalEngine

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_the_average_has_noise_for_the_squared_radius():
    """Standard deviation of the sum is radius / sqrt(2 rho): twice the radius, twice the noise."""
    scales = []
    for radius in (4.0, 8.0):
        recorder = Trace()
        with trace(recorder):
            private_average(np.full((100, 3), 1.0), radius, epsilon=1.0, random_state=0)
        event = next(e for e in recorder.events if e.entry == "sum")
        scales.append(float(event.scale) * event.public["unit"])
    rho = PrivacyBudget(epsilon=1.0, delta=1e-6).to_rho()
    assert scales[1] == pytest.approx(2 * scales[0])
    assert scales[0] == pytest.approx(4.0 / np.sqrt(2 * 0.85 * rho))


def test_the_average_is_near_the_mean_and_inside_the_ball():
    X = np.random.default_rng(0).normal(size=(20_000, 5)) + 1.0
    # Noise on each coordinate 8 * 4.6 / 20000 = 0.002; ten of them.
    assert private_average(X, 8.0, epsilon=1.0, random_state=0) == pytest.approx(
        X.mean(axis=0), abs=0.02
    )
    for n in (0, 1, 5):
        assert np.linalg.norm(private_average(X[:n], 0.5, epsilon=0.1, random_state=0)) <= 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_left_out_of_the_average(bad):
    """Each on its own account: with them or without them, sum and count are the same integers."""
    X = np.random.default_rng(1).normal(size=(50, 3))
    worse = np.insert(X, [0, 20, 50], [bad, 1.0, 1.0], axis=0)
    seen = []
    for rows in (X, worse):
        recorder = Trace()
        with trace(recorder):
            private_average(rows, 4.0, epsilon=1.0, random_state=0)
        seen.append([np.asarray(event.value).tolist() for event in recorder.events])
    assert seen[0] == seen[1] and seen[0][-1] == 50


# -- all of the theory ----------------------------------------------------------------------------


def far_clusters(seed, n=6000, d=6, k=3, spread=0.05):
    """Components of which one is far apart from the others."""
    rng = np.random.default_rng(seed)
    means = np.vstack([rng.uniform(-1, 1, size=(k - 1, d)), 1e4 * np.eye(d)[:1]])
    server = np.repeat(means, 12, axis=0) + spread * rng.normal(size=(12 * k, d))
    return means[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)), means, server


FACTS = Facts(n_rows=6000, w_min=0.25, sigma_max=0.05)


@pytest.mark.parametrize("d", [6, 3])
def test_the_whole_algorithm_finds_clusters_that_are_far_apart(d):
    """The public ball has a radius of 1e4; the components come to within a few hundred."""
    X, means, server = far_clusters(0, d=d)
    centers, report = cluster(np.split(X, 10), server, 3, FACTS, epsilon=4.0, random_state=0)
    assert report.epsilon <= 4.0
    assert np.linalg.norm(means[:, None] - centers, axis=2).min(axis=1).max() < 0.2
    names = [row["release"] for row in report.releases]
    assert names[0] == "diameter" and names.count("simplify") >= 1
    assert names[-6:] == ["margin sums", "margin counts", *["lloyd sums", "lloyd counts"] * 2]
    assert ("second moment" in names) is (d > 3)


def test_the_whole_algorithm_answers_whatever_the_data():
    _, _, server = far_clusters(1)
    for X in (np.empty((0, 6)), np.full((3, 6), 1e300), np.full((4, 6), np.nan), server[:1]):
        centers, _ = cluster([X], server, 3, FACTS, epsilon=0.5, random_state=0)
        assert centers.shape == (3, 6) and np.isfinite(centers).all()


def test_neighbors_of_the_whole_algorithm():
    X, _, server = far_clusters(2, n=120)
    facts = replace(FACTS, n_rows=120)
    with trace(Trace()) as recorder:
        centers, _ = cluster([X], server, 3, facts, epsilon=8.0, random_state=0)
    worst = {}
    for pair in neighboring_pairs(X, 0, points=centers, repeats=2):
        replay = Replay(recorder.events, pair.units)
        with trace(replay):
            again, _ = cluster(
                [pair.X[:50], pair.X[50:]], server, 3, facts, epsilon=8.0, random_state=0
            )
        assert replay.finish() == [] and np.array_equal(again, centers)
        worst = {name: max(worst.get(name, 0), ratio) for name, ratio in replay.ratios.items()}
    assert worst.keys() == {
        "diameter",
        "second moment",
        "simplify",
        "weights",
        "margin sums",
        "margin counts",
        "lloyd sums",
        "lloyd counts",
    }


# -- far components come together, and their centers go back --------------------------------------


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


# -- numbers of rows next to public points --------------------------------------------------------


def on_grid(X, domain):
    return np.unique(Grid.for_radius(domain.radius).quantize(X, domain.radius), axis=0)


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
    assert exact.tolist() == [3, 2] and 1 <= event.sensitivity <= 1 + 2**-52
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
