"""What the server learns from releases: priors by hand, starts, status, standard errors."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from benchmark_tools import benchmark_module
from federated_states import CLIENT_STATES, clusters, mixture, states
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated import _learn, _state, elbow
from sklearn_dp.federated._learn import HALF_REACH, LEARN, center_errors, count_errors
from sklearn_dp.federated._state import blend_moment, posterior_weights, shrink_counts, shrink_moves

# -- the subspace ----------------------------------------------------------------------------------


def test_a_moment_blends_as_computed_by_hand():
    """d = 2, points (2, 0) and (0, 0): S = diag(2, 0), |S|^2 = 4, mean |x|^4 = 8.

    M = [[6, 1], [1, 3]], s = 1: a = max(12 / 4, 2 / 2) = 3, M - a S = [[0, 1], [1, 3]] with square
    11. Noise 1 * (3 - 1) = 2; sampling 3 * 9 * (8 - 4) / 2 = 54; seen 11 - 2. V = 54, gain 54 / 56.
    """
    moment, gain = blend_moment(np.array([[6.0, 1], [1, 3]]), 1.0, np.array([[2.0, 0], [0, 0]]))
    gained = 54 / 56
    assert gain == pytest.approx(gained)
    assert moment == pytest.approx(np.array([[6, gained], [gained, 3 * gained]]))


def test_noise_alone_gives_the_subspace_of_the_points_and_none_that_of_the_release():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 30)) * np.repeat([3.0, 0.3], [3, 27])
    truth = np.diag(np.repeat([0.01, 4.0], [27, 3]))  # of clients who are nothing like them
    noise = np.triu(rng.normal(size=(30, 30)) / math.sqrt(2), 1)
    noise += noise.T + np.diag(rng.normal(size=30))
    for sd, axes in ((1e6, slice(0, 3)), (1e-6, slice(27, 30))):
        moment, gain = blend_moment(truth + sd * noise, sd, points)
        top = np.linalg.eigh(moment)[1][:, -3:]
        assert np.square(top[axes]).sum() == pytest.approx(3, abs=0.1)
        assert 0 <= gain <= 1 and (gain > 0.999) == (sd < 1)


# -- weights ---------------------------------------------------------------------------------------


def by_integration(weight, sd, mean):
    """The posterior of the prior that the docstring states, by quadrature."""

    def seen(x):
        return norm.pdf((weight - x) / sd) / sd

    above, top = 2 * mean, max(weight, 0.0) + 12 * sd
    some = quad(lambda x: seen(x) * math.exp(-x / above) / above, 0, top, limit=200)[0]
    moment = quad(lambda x: x * seen(x) * math.exp(-x / above) / above, 0, top, limit=200)[0]
    probability = some / (some + seen(0.0))
    return probability ** (1 + (mean / sd) ** 2) * moment / some


@pytest.mark.parametrize("sd", [0.5, 2.0, 10.0])
def test_weights_are_the_posterior_by_integration(sd):
    weights = np.array([-3.0, 0.0, 1.0, 4.0, 8.0])  # of mean 2
    mean = max(2.0 - sd / math.sqrt(5), 0.1 * sd / math.sqrt(5))
    expected = [by_integration(weight, sd, mean) for weight in weights]
    assert posterior_weights(weights, sd) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("sd", [1e-60, 1e-3, 1.0, 1e60])
def test_weights_are_positive_and_finite(sd):
    for weights in (np.zeros(4), np.array([-1e9, 1e9, 0, 1]), np.full(4, -1e6)):
        used = posterior_weights(weights, sd)
        assert np.isfinite(used).all() and (used > 0).all()


# -- counts, movements and reaches, by hand --------------------------------------------------------


def test_counts_are_shrunk_by_their_noise():
    """Prior (6, 6), mean square 16 - 1: a gain of 15/16. A total of 2 with noise sqrt(2), and the
    expected one of 2 with noise 1: an error of sqrt(2/3), of which one is left out in two."""
    assert shrink_counts(np.array([10.0, 2]), 1.0, np.ones(2)) == pytest.approx([9.75, 2.25])
    error, expected = math.sqrt(2 / 3), np.array([1.5, 0.5])
    assert shrink_counts(np.array([2.0, 0]), 1.0, expected, 1.0) == pytest.approx(
        expected * (2 - error) / (2 * error)
    )


@pytest.mark.parametrize(("longest", "prior", "length"), [(10.0, 11.0, 55 / 12), (2.0, 2.0, 2.0)])
def test_movements_are_shrunk_by_their_noise_and_are_no_longer_than_clips(longest, prior, length):
    """12.5 a coordinate, less a noise of 1 and half of its deviation of 1: a prior of 11, and at
    most 2^2 / 2 where no movement is longer than 2."""
    one = np.ones(1)
    moved, gain = shrink_moves(np.array([[3.0, 4.0]]), 2, one, one, 0 * one, longest)
    assert gain == pytest.approx([prior / (prior + 1)])
    assert moved == pytest.approx(length * np.array([[0.6, 0.8]]))


def test_a_reach_is_a_usual_one_as_far_as_noise_hides_it():
    """Lengths of half a reach less, with a noise of two powers of two: a fifth of the way there."""
    state = next(each for each in CLIENT_STATES if each.kind == "lift reach")
    noise = {"lift reach": state.number * 2.0 / HALF_REACH}
    found = LEARN["lift reach"](state, None, {"lift reach": np.zeros(1)}, noise).reaches
    power = -1 + (1 - HALF_REACH) / 5
    assert found["lift sums"] == found["lloyd sums"] == pytest.approx(2.0**power)


def test_errors_add_what_clips_leave_of_a_movement(monkeypatch):
    """Of 3, where a clipped mean follows half of the way: 3 more, over the root of d."""
    state = replace(states()[-1], moved=np.full(3, 3.0))
    spread = np.full(3, 8.0)
    monkeypatch.setattr(_learn, "_units", lambda state: (spread, np.array([0.5, 1.0, 1.0])))
    _, others, counts_sd = center_errors(state)
    sampling = spread / (5 * np.maximum(state.counts, counts_sd))
    assert np.square(others) - sampling == pytest.approx([9 / 5, 0, 0])


def test_sphere_packing_keeps_its_distances():
    rng = np.random.default_rng(0)
    centers = _state.sphere_packing(5, 3, 2.0, rng)
    assert np.abs(centers).max() <= 2.0
    gaps = min(np.linalg.norm(a - b) for a, b in itertools.combinations(centers, 2))
    corner = np.linalg.norm(2.0 - np.abs(centers), axis=1).min()
    # Feasible at some a; 5 balls of radius 0.7 fit easily, 5 of radius 2 do not.
    assert 0.7 < min(gaps / 2, corner) < 2.0


BASELINES = benchmark_module("_federated_baselines")


@pytest.mark.parametrize("d", [2, 20])
def test_k_fed_repaired_finds_the_clusters_of_continuous_data(d):
    """The released code sends raw rows whenever no row occurs twice: that misses some cluster."""
    X, means, _ = clusters(4, d=d)
    centers = BASELINES.k_fed(np.split(X, 20), 4, np.random.default_rng(0))
    assert np.linalg.norm(means[:, None] - centers, axis=2).min(axis=1).max() < 0.1
    few = BASELINES.k_fed([np.repeat(means[:2], 3, axis=0), means[2:]], 4, np.random.default_rng(0))
    assert np.linalg.norm(means[:, None] - few, axis=2).min(axis=1).max() == 0


def test_the_optimum_is_started_at_the_true_means_or_often():
    X, means, _ = clusters(5)
    for start in (means, None):
        centers = BASELINES.optimal_centers(X, 4, start=start)
        assert np.linalg.norm(means[:, None] - centers, axis=2).min(axis=1).max() < 0.05


PLACES = np.zeros((4, 6))
PLACES[[0, 1, 2, 3], [0, 0, 1, 1]] = 0.5, -0.5, 0.5, -0.5


def draw(n, rng):
    """Rows of four separated clusters of 40, 30, 20 and 10 percent, of variance .05^2."""
    return PLACES[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])] + 0.05 * rng.normal(size=(n, 6))


def fitted(seed, n=8000, server=True, **options):
    rng = np.random.default_rng(100 + seed)
    X, points = draw(n, rng), draw(200, rng)
    options = {"epsilon": 1.0, "bounds": 1.0, "random_state": seed, **options}
    return X, FederatedDPKMeans(4, **options).fit(X, X_server=points if server else None)


def nearest(rows, centers):
    return np.square(rows[:, None] - centers).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize("server", [True, False])
def test_errors_are_of_the_centers_and_in_their_order(server):
    X, model = fitted(0, server=server)
    assert model.status_ == "ok"
    errors = model.cluster_centers_std_error_
    assert errors.shape == model.cluster_centers_.shape and (errors > 0).all()
    # A tenth of the rows has a larger error than four tenths, by sampling alone twice as large.
    assert errors[3, 0] > 1.4 * errors[0, 0]
    rows = model.cluster_weights_[:, None]
    assert (errors > 0.8 * 0.05 / np.sqrt(rows)).all() and (errors < 0.02).all()
    truth = PLACES[nearest(model.cluster_centers_, PLACES)]
    assert np.abs((model.cluster_centers_ - truth) / errors).max() < 4.5
    low, high = model.confidence_interval(attribute="cluster_weights_")
    assert (low <= model.cluster_weights_).all() and (model.cluster_weights_ < high).all()
    assert "cluster_centers_[3, 5]" in model.summary().to_frame().index


def test_errors_of_counts_allow_for_what_the_clip_of_clients_may_have_taken():
    """Counts of norm up to one, clipped to .8: up to a quarter more, 1.9 standard errors."""
    state = replace(
        states(server=False)[-1], counts=np.array([320.0, -80.0]), counts_sd=2.0, counts_share=0.8
    )
    assert np.allclose(count_errors(state), [2 + 80 / 1.9, 2])
    assert np.allclose(count_errors(replace(state, counts_share=1.0)), 2.0)
    for per_client in (False, True):
        states_of = states(per_client)
        used = states_of[-1].shares.get("lloyd counts", 1.0)
        assert (used < 1) == per_client
        assert states_of[-1].counts_share == states_of[-2].shares.get("lift counts", 1.0)


def test_the_elbow_is_where_clusters_end():
    X, _, server, _ = mixture(n=2000)
    model = FederatedDPKMeans(8, epsilon=50.0, random_state=0).fit(X, X_server=server[:32])
    best, costs = elbow(model, most=7, n_init=3, random_state=0)
    assert best == 4 and costs[0] == 1 and (np.diff(costs) <= 1e-9).all()
    with pytest.raises(ValueError, match="fitted with X_server"):
        elbow(FederatedDPKMeans(2, bounds=9.0, random_state=0).fit(X))
