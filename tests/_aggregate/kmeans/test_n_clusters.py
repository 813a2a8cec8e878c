"""The choice of the number of clusters inside the engine: its plan, its paths, its neighbors."""

import math

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.engine import engine_entries
from sklearn_dp._aggregate.kmeans.fit_context import Candidates
from sklearn_dp._aggregate.kmeans.n_clusters import SurplusCenters, surplus_choice


def mixture(n, d, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return 12 * np.eye(k, d)[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("criterion", ["auto", "gap", "bic"])
def test_the_plan_follows_from_public_numbers(d, criterion):
    """The shares are the same whatever number is chosen, and for all ranges."""
    one, other = (
        engine_entries(1.0, d, bounds_known=True, quality=True, n_clusters=candidates)
        for candidates in (Candidates(1, 30, criterion), Candidates(4, 6, criterion))
    )
    assert one == other
    given = engine_entries(1.0, d, bounds_known=True, quality=True)
    release_surplus = criterion == "bic" or (criterion, d) == ("auto", 20)
    assert (one == given) is not release_surplus
    assert sum(entry.rho for entry in one) <= 1.0


def test_the_number_of_clusters_is_found():
    for d in (2, 10):
        model = DPKMeans((1, 6), epsilon=100.0, bounds=40.0, random_state=0).fit(mixture(600, d))
        assert model.n_clusters_ == len(model.cluster_centers_) == 3
        assert set(model.n_clusters_criterion_) <= set(range(1, 7))


def test_a_sketch_spends_no_more_than_its_share():
    """Also in small data, where it may take twice the share."""
    for n in (60, 4000):
        model = DPKMeans("auto", bounds=40.0, random_state=0).fit(mixture(n, 10))
        plan = DPKMeans("auto", bounds=40.0).privacy_plan(10)
        spent = [
            line["rho"]
            for line in model.privacy_report_.releases
            if line["release"].startswith("sketch/")
        ]
        assert len(spent) == 4 and sum(spent) <= plan["sketch/lloyd sums"].cap
        whole = sum(line["rho"] for line in model.privacy_report_.releases)
        assert whole <= plan.rho * (1 + 1e-12)  # a sum of floats; the accounts have exact ones


# -- acceptance: how often the number is right -----------------------------------------------------


def surplus(n_clusters, each, d=20, seed=0, noise=0.1):
    """Surplus centers: some for each of a few round clusters of unit width.

    Three parts of such a cluster, as k-means makes them, explain about 1.25 of its variance d.
    """
    rng = np.random.default_rng(seed)
    places = 12 * np.eye(n_clusters, d)[np.repeat(np.arange(n_clusters), each)]
    m = len(places)
    centers = places + 0.25 * rng.normal(size=(m, d)) + math.sqrt(noise) * rng.normal(size=(m, d))
    counts = rng.uniform(300, 600, m)
    return SurplusCenters(centers, np.full(m, noise), counts, np.full(m, 20.0), counts * (d - 1.25))


@pytest.mark.parametrize("criterion", ["auto", "bic", "silhouette"])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_round_clusters_are_counted(k, criterion):
    choice = chosen(surplus(k, 3), Candidates(criterion=criterion))
    assert choice.n_clusters == k and not choice.unclear
    assert max(choice.criterion, key=choice.criterion.get) == k


def chosen(surplus, candidates):
    return surplus_choice(surplus, candidates, candidates.rule(20))


def test_a_number_on_which_two_criteria_differ_is_not_clear():
    """More clusters than the range has are not round, and long ones are several round ones."""
    many = surplus(12, 3)
    for high in (4, 8):
        found = chosen(many, Candidates(2, high))
        assert found.n_clusters == chosen(many, Candidates(2, high, "silhouette")).n_clusters
        assert found.unclear.endswith(
            f"two criteria suggest {found.n_clusters} and more than {high}"
        )
        assert chosen(many, Candidates(2, high, "bic")).n_clusters == high
    assert chosen(many, Candidates(15, 30)).n_clusters == 15
    long = surplus(3, 6)
    long.centers[:, 19] += np.tile(np.linspace(-4, 4, 6), 3)
    found = chosen(long, Candidates())
    assert found.n_clusters > 5 and found.unclear
    assert chosen(long, Candidates(criterion="silhouette")).n_clusters == 3
