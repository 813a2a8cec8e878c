"""Standard errors of federated fits: what they are made of, coverage, and where there are none."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import states

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated._learn import count_errors

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alike", "of one cluster", "apart"])
def test_intervals_of_clients_hold_the_truth(kind):
    """100 clients of 20 rows, 50 fits: 95% intervals hold 93% of 1,200 coordinates or more.

    What a client's rows have in common is known to nobody, so there is no upper limit.
    """
    held, weights = [], []
    for seed in range(50):
        rng = np.random.default_rng(100 + seed)
        X, points, clients = draw(2000, rng), draw(200, rng), np.arange(2000) // 20
        if kind == "of one cluster":
            clients[np.argsort(nearest(X, PLACES), kind="stable")] = np.arange(2000) // 20
        elif kind == "apart":
            X += 0.03 * rng.normal(size=(100, 6))[clients]
        model = FederatedDPKMeans(4, epsilon=4.0, bounds=1.0, random_state=seed)
        model.fit(X, groups=clients, X_server=points)
        place = nearest(model.cluster_centers_, PLACES)
        low, high = model.confidence_interval()
        held.append((low <= PLACES[place]) & (PLACES[place] <= high))
        low, high = model.confidence_interval(attribute="cluster_weights_")
        number = np.bincount(nearest(X, PLACES), minlength=4)[place] / 20
        weights.append((low <= number) & (number <= high))
    assert np.mean(held) >= 0.93, np.mean(held)
    assert np.mean(weights) >= 0.93, np.mean(weights)
