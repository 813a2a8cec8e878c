"""The algorithms of the paper's theory, put together: averages, and the whole of Algorithm 5."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit import neighbouring_pairs
from sklearn_dp.audit._player import Replay
from sklearn_dp.federated._theory import cluster, private_average
from sklearn_dp.federated._translation import Facts

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


# -- private averaging -----------------------------------------------------------------------------


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


# -- all of the theory -----------------------------------------------------------------------------


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


def test_neighbours_of_the_whole_algorithm():
    X, _, server = far_clusters(2, n=120)
    facts = replace(FACTS, n_rows=120)
    with trace(Trace()) as recorder:
        centers, _ = cluster([X], server, 3, facts, epsilon=8.0, random_state=0)
    worst = {}
    for pair in neighbouring_pairs(X, 0, points=centers, repeats=2):
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
