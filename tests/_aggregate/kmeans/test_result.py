"""From iterations to the answer: units, errors, and one center for many clusters."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.kmeans.result import _centers_sd, build_result
from sklearn_dp._aggregate.shared.centering import Size, Weights
from sklearn_dp._parameters import domain_of
from sklearn_dp._status import Status


def result(centers, **changes):
    k = len(centers)
    found = LloydState(np.array(centers, dtype=float))
    found.variance, found.reach = np.full(k, 4.0), np.full(k, 50.0)
    found.counts, found.counts_sd = np.full(k, 5000.0), np.full(k, 1.0)
    found.n_iterations = 3
    vars(found).update(changes)
    return found


def context(n_clusters, origin=(0.0, 0.0), unit=0.5):
    return SimpleNamespace(
        n_clusters=n_clusters,
        tuning=TUNING,
        rows=SimpleNamespace(unit=unit, origin=np.array(origin)),
        size=Size(10_000.0, 1.0),
        radius=80.0,
        session=SimpleNamespace(budget_for=str),
        pays=lambda entry: False,
    )


def test_the_answer_is_in_lengths_and_in_the_domain():
    """Steps of 1/2 about an origin of (10, 0) steps, in a domain about (100, 100)."""
    domain = domain_of((60.0, 140.0), 2)
    final = result([[0, 0], [2, 4], [1000, 0]])
    found = build_result(context(3, (10.0, 0.0)), final, domain, Status(), 3, None)
    assert np.allclose(found.centers, [[105, 100], [106, 102], [140, 100]])
    assert (found.radius, found.n_iterations) == (40.0, 3)
    assert found.quality is None and found.centers_sd is None and not found.status
    assert found.weights.tolist() == [5000.0] * 3


SIZE = Size(400.0, 1.0)


def test_errors_of_centers_have_noise_and_sampling():
    """Variance 4 of the noise; 100 rows of mean squared distance 10 in two features: 10 / 200."""
    final = result([[0, 0], [1, 1]], counts=np.array([100.0, 1.0]))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE)[0], np.sqrt(4 + 10 / 200))
    # A count of next to nothing is taken for what is sure, here twice its noise.
    least = TUNING.certain_count_sd
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE)[1], np.sqrt(4 + 10 / (2 * least)))
    # Of weights whose squares come to half of their sum: half of the sampling.
    even = replace(SIZE, weights=Weights(square=0.5))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, even)[0], np.sqrt(4 + 10 / 400))


def rare_flag(n, d, seed):
    """A column of zeros and few ones beside others that know nothing of it."""
    rng = np.random.default_rng([seed, n, d])
    flag = (rng.random(n) < 0.05).astype(float)
    return np.column_stack([rng.normal(0, 0.15, (n, d - 1)), flag])


@pytest.mark.parametrize(("d", "bounds"), [(4, 1.2), (6, 1.2), (8, 1.2), (6, (-1.2, 1.2))])
def test_a_rare_flag_is_a_cluster(d, bounds):
    """200 rows, 7 widths from all others: in finer cells than that none of them stands out. From
    the corner of a box on, nearly all lengths are next to zero."""
    found = 0
    for seed in range(10):
        X = rare_flag(4000, d, seed)
        model = DPKMeans(2, epsilon=1.0, bounds=bounds, random_state=seed).fit(X)
        found += np.ptp(model.cluster_centers_[:, -1]) > 0.5
    assert found >= 9


@pytest.mark.parametrize("epsilon", [1e2, 1e3, 1e5])
def test_a_far_row_that_costs_next_to_nothing_is_no_missing_cluster(epsilon):
    """It is seen with much budget, and the centers are those of k-means up to two in 10,000."""
    rng = np.random.default_rng(0)
    means = np.array([[0, 0, 0], [8, 0, 4], [0, 8, -4.0]])
    X = means[rng.choice(3, 4000, p=[0.5, 0.3, 0.2])] + rng.normal(size=(4000, 3))
    X = np.column_stack([X, rng.lognormal(3, 1, 4000) / 10])
    X[0, 3] = 87.0
    bounds = ([-10, -10, -10, 0], [20, 20, 20, 100])
    model = DPKMeans(3, epsilon=epsilon, bounds=bounds, random_state=0).fit(X)
    assert model.trustworthy_ and "clusters may be missing" not in str(model.messages_)


def test_rows_in_reach_of_no_center_are_told():
    """75 rows, which the tree finds in about half of the fits."""
    told = found = 0
    for seed in range(20):
        X = rare_flag(1500, 2, seed)
        model = DPKMeans(2, epsilon=1.0, bounds=1.5, random_state=seed).fit(X)
        has_center = np.ptp(model.cluster_centers_[:, -1]) > 0.5
        found += has_center
        if "from the overall center" in str(model.messages_):
            assert not has_center
            told += 1
    assert told >= 5 and found >= 8


@pytest.mark.parametrize("seed", range(4))
def test_a_long_tail_beyond_the_released_radius_is_no_ok(seed):
    """Two fits of three cost twice as much as k-means, and were "ok"."""
    rng = np.random.default_rng(seed)
    balance = rng.lognormal(6.3, 1.3, 20_000)
    X = np.column_stack([rng.normal(41, 10, len(balance)), balance])
    assert DPKMeans(5, random_state=seed).fit(X).status_ != "ok"
    places = 500 * rng.normal(size=(5, 2))
    X = rng.normal(places[rng.integers(5, size=len(X))], 20)
    assert DPKMeans(5, random_state=seed).fit(X).status_ == "ok"
