"""One long run of Lloyd's algorithm, on other rows each day."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from grid_tools import table_rows

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.days import StreamState, day_entries, fit_day
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._status import Message, Status

K, D, SPREAD = 8, 8, 0.05
DOMAIN = domain_of(2.0, D)


def truth(seed):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, size=(K, D))


def one_center():
    """What a first day of next to no rows has shown: one center for all."""
    return SimpleNamespace(
        cluster_centers_=np.zeros((K, D)),
        cluster_centers_std_error_=np.full((K, D), 0.1),
        cluster_weights_=np.array([200.0] + [0.0] * (K - 1)),
        _weights_errors=(np.array([5.0] + [0.0] * (K - 1)), np.zeros(K)),
        inertia_=130.0,
        inertia_std_error_=20.0,
        explained_=0.0,
        size_=200.0,
        size_std_error_=10.0,
        radius_=1.5,
        messages_=Status([Message("few_rows", "mostly noise", severity="all")]),
    )


def followed(n_days, seed=0, n=200, keep=1.0, drift=0.0, epsilon=1.0, moves=True):
    """Centers at the end, the result, and the stream."""
    rng, centers = np.random.default_rng(seed), truth(seed)
    way = rng.normal(size=centers.shape)
    way *= drift / np.linalg.norm(way, axis=1, keepdims=True)
    stream, target = StreamState.of(one_center(), DOMAIN, 1.0), PrivacyBudget(epsilon, 1e-6)
    plan = PrivacyPlan(target, day_entries(target.to_rho(), moves=moves))
    for day in range(n_days):
        centers = centers + way
        X = centers[rng.integers(K, size=n)] + SPREAD * rng.normal(size=(n, D))
        session = PrivacySession(plan, random_state=1000 * seed + day)
        table = table_rows(X)
        result, stream = fit_day(session, table, DOMAIN, stream, keep=keep)
    return centers, result, stream


def cost(centers, result):
    """Sum of squares per row and coordinate, over that about the true centers."""
    distance = np.linalg.norm(centers[:, None] - result.centers, axis=2)
    return 1 + float(np.mean(distance.min(axis=1) ** 2)) / (D * SPREAD**2)


def test_few_rows_a_day_find_all_clusters_from_a_single_center():
    """25 rows of each cluster a day, beside a noise of 14 in each count."""
    centers, result, stream = followed(40)
    assert cost(centers, result) < 1.1 and not result.status
    assert stream.n_windows > 5 and stream.days == 41
    assert abs(result.size - 8200) < 5 * result.size_sd
    assert (
        abs(result.weights.sum() - result.size) < 1e-6 * result.size + K * result.weights_sd.max()
    )
    assert result.quality.explained > 0.9
    centers, result, _ = followed(5)
    assert cost(centers, result) > 2 and result.status  # and says so while it has not


def test_errors_are_those_of_the_combination():
    errors, stated = [], []
    for seed in range(3):
        centers, result, _ = followed(40, seed, n=400)
        distance = np.linalg.norm(centers[:, None] - result.centers, axis=2)
        errors.append(np.sqrt(distance.min(axis=1) ** 2 / D))
        stated.append(result.centers_sd)
    ratio = math.sqrt(np.mean(np.square(errors)) / np.mean(np.square(stated)))
    assert 0.5 < ratio < 1.5 and np.mean(stated) < 0.02


def test_the_noise_of_counts_adds_up_over_days_as_variances():
    """Each day adds about the same: added up as deviations, the last one adds 1.7 times that."""
    rng, squares = np.random.default_rng(0), []
    model = DPKMeans(2, bounds=6.0, random_state=0)
    for _ in range(6):
        places = np.array([[-3.0, 0], [3, 0]])[rng.integers(2, size=3000)]
        model.partial_fit(places + 0.3 * rng.normal(size=(3000, 2)))
        squares.append(np.square(model.cluster_weights_std_error_).mean())
    added = np.diff(squares)
    assert added[4] == pytest.approx(added[2], rel=0.2)
