"""The algorithms of the paper's theory, put together: averages, and the whole of Algorithm 5."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import session_of

from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._privacy._plan import PlanError
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._published.feddp_kmeans.theory import (
    Facts,
    NearCounts,
    Translation,
    cluster,
    private_average,
)
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._replay import Replay
from sklearn_dp.federated._clients import LocalEngine

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_the_average_has_noise_for_the_squared_radius():
    """Standard deviation of a sum is radius / sqrt(2 rho): twice the radius, twice the noise."""
    scales = []
    for radius in (4.0, 8.0):
        recorder = Trace()
        with trace(recorder):
            private_average(np.full((100, 3), 1.0), radius, epsilon=1.0, random_state=0)
        event = next(e for e in recorder.events if e.entry == "average")
        scales.append(event.scale[0] * event.public["unit"][0])
    rho = PrivacyBudget(epsilon=1.0, delta=1e-6).to_rho()
    assert scales[1] == pytest.approx(2 * scales[0])
    assert scales[0] == pytest.approx(4.0 / np.sqrt(2 * 0.85 * rho))


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
    assert seen[0] == seen[1] and seen[0][-1][-1] == 50


# -- all of the theory ----------------------------------------------------------------------------


def far_clusters(seed, n=6000, d=6, k=3, spread=0.05):
    """Components of which one is far apart from the others."""
    rng = np.random.default_rng(seed)
    means = np.vstack([rng.uniform(-1, 1, size=(k - 1, d)), 1e4 * np.eye(d)[:1]])
    server = np.repeat(means, 12, axis=0) + spread * rng.normal(size=(12 * k, d))
    return means[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)), means, server


FACTS = Facts(n_rows=6000, w_min=0.25, sigma_max=0.05)


@pytest.mark.slow
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


def test_a_row_moves_by_what_its_nearest_point_says_whatever_other_rows_there_are():
    rng = np.random.default_rng(0)
    moved = Translation(10 * rng.normal(size=(9, 3)), 100 * rng.normal(size=(9, 3)))
    X = 10 * rng.normal(size=(40, 3))
    whole = moved.apply(X)
    for i in range(40):
        assert np.array_equal(moved.apply(X[i : i + 1])[0], whole[i])
        j = np.argmin(np.linalg.norm(moved.points - X[i], axis=1))
        assert np.array_equal(whole[i], X[i] + moved.shifts[j])


# -- numbers of rows next to public points --------------------------------------------------------


def on_grid(X, domain):
    return np.unique(Grid.for_radius(domain.radius).quantize(X, domain.radius), axis=0)


def counted(clients, points, domain, rho=1e6, **options):
    """Counts and their exact values, and the session."""
    with trace(Trace()) as recorder:
        near = NearCounts(session_of(rho), "counts", LocalEngine(clients), domain, **options)
        noisy = near(points, rho)
    (event,) = [event for event in recorder.events if event.entry == "counts"]
    return noisy, np.asarray(event.value), event, near


def test_each_row_counts_once_at_its_nearest_point():
    """In all clients together, also outside the domain, and next to the first of two equals."""
    domain = domain_of(1.0, 2)
    points = on_grid(np.array([[-0.5, 0.0], [0.5, 0.0]]), domain)
    X = np.array([[-0.4, 0.0], [0.3, 0.1], [1e9, 0.0], [0.0, 0.5], [-0.1, -0.9]])
    noisy, exact, event, near = counted([X[:2], X[2:], X[:0]], points, domain)
    assert exact.tolist() == [3, 2] and 1 <= event.sensitivity <= 1 + 2**-52
    assert np.abs(noisy - exact).max() < 0.1  # a standard deviation of 7e-4
    with pytest.raises(PlanError):
        near(points, 1e6)  # the entry has one use


def test_counts_in_a_subspace_look_at_nothing_else():
    domain = domain_of(1.0, 2)
    first_axis = np.array([[2.0**20], [0.0]])
    points = on_grid(np.array([[-0.5, 0.0], [0.5, 0.0]]), domain)[:, :1]
    X = np.array([[-0.1, 0.9], [-0.1, -0.9], [0.1, 0.9]])
    assert counted([X], points, domain, basis=first_axis)[1].tolist() == [2, 1]
