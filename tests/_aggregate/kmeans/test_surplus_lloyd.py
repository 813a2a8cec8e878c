"""Surplus centers: their money, their tree and what is chosen by it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.candidates import Candidates
from sklearn_dp._aggregate.kmeans.surplus_lloyd import (
    SurplusCenters,
    Tree,
    bic_choice,
    silhouette_choice,
    surplus_choice,
    surplus_entries,
)
from sklearn_dp._aggregate.kmeans.tuning import TUNING


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


@pytest.mark.parametrize("rho", [0.016, 1 / 3, 7e-7])
def test_entries_are_a_public_part_of_the_iterations(rho):
    entries = surplus_entries(rho, 2 * rho, "part/")
    assert sum(Fraction(entry.rho) for entry in entries) <= Fraction(0.6) * Fraction(rho)
    assert all(entry.cap <= 1.2 * rho and entry.mechanism == "gaussian" for entry in entries)
    assert {entry.name for entry in entries} == {
        f"part/sketch/lloyd {what}" for what in ("distances", "errors", "counts", "sums")
    }


def test_levels_of_the_tree():
    tree = Tree(surplus(4, 3))
    for k, labels in enumerate(tree.labels, 1):
        assert sorted(set(labels.tolist())) == list(range(k))
        finer = tree.labels[min(k, 11)]
        assert all(len(set(labels[finer == j])) == 1 for j in set(finer))
    assert (np.diff(tree.within) <= 0).all()
    assert tree.labels[3].tolist() == np.repeat(np.arange(4), 3).tolist()


def test_noise_is_no_distance():
    """Two centers that differ by noise alone cost next to nothing to merge."""
    rng = np.random.default_rng(0)
    centers = np.concatenate([3 * rng.normal(size=(20, 400)), np.full((20, 400), 9.0)])
    there = SurplusCenters(centers, np.full(40, 9.0), np.full(40, 100.0), np.ones(40), np.zeros(40))
    blind = SurplusCenters(centers, np.zeros(40), np.full(40, 100.0), np.ones(40), np.zeros(40))
    assert Tree(there).within[1] < 0.2 * Tree(blind).within[1]


@pytest.mark.parametrize("choose", [bic_choice, silhouette_choice])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_round_clusters_are_counted(k, choose):
    choice = choose(Tree(surplus(k, 3)), Candidates())
    assert choice.n_clusters == k and choice.status == "ok"
    assert max(choice.criterion, key=choice.criterion.get) == k


def test_more_clusters_than_the_range_has_are_not_round():
    tree = Tree(surplus(12, 3))
    for high in (4, 8):
        found = bic_choice(tree, Candidates(2, high))
        assert found == silhouette_choice(tree, Candidates(2, high))
        assert bic_choice(tree, Candidates(2, high, "bic")).n_clusters == high
    assert bic_choice(tree, Candidates(15, 30)).n_clusters == 15


@pytest.mark.parametrize("m", [0, 1, 2])
@pytest.mark.parametrize("low, high", [(1, 1), (1, 30), (5, 9)])
@pytest.mark.parametrize("choose", [bic_choice, silhouette_choice])
def test_any_number_of_centers_gives_a_candidate(m, low, high, choose):
    full = surplus(2, 1)
    few = SurplusCenters(*(values[:m] for values in vars(full).values()))
    choice = choose(Tree(few), Candidates(low, high))
    assert low <= choice.n_clusters <= high
    assert all(low <= k <= high and np.isfinite(v) for k, v in choice.criterion.items())


def test_a_center_of_few_rows_is_no_cluster_because_of_its_noise():
    """Its distance is what noise makes of it: by chance somewhat more than expected."""
    there = surplus(3, 3)
    d, far = 20, np.zeros(20)
    far[:] = math.sqrt(60 * 1.25 / d)  # noise of 3 in each coordinate, 1.25 times the expectation
    with_it = SurplusCenters(
        np.vstack([there.centers, there.centers[0] + far]),
        np.append(there.variance, 60 / d),
        np.append(there.counts, 70.0),
        np.append(there.counts_sd, 20.0),
        np.append(there.within, 70.0 * d),
    )
    assert bic_choice(Tree(with_it), Candidates()).n_clusters == 3
    bold = replace(TUNING, surplus_noise_sd=0.0)
    assert Tree(with_it).within[2] < Tree(with_it, bold).within[2]


def test_iterations_go_on_from_the_chosen_level():
    there = surplus(4, 3)
    choice = surplus_choice(there, Candidates(), "bic")
    centers, variance = choice.start
    assert choice.n_clusters == 4
    for j in range(4):
        part = slice(3 * j, 3 * j + 3)
        share = there.counts[part] / there.counts[part].sum()
        np.testing.assert_allclose(centers[j], share @ there.centers[part])
        np.testing.assert_allclose(variance[j], share**2 @ there.variance[part])
    assert surplus_choice(there, Candidates(13, 30), "bic").start is None
