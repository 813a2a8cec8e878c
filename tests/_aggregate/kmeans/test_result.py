"""From iterations to the answer: units, errors, and one center for many clusters."""

import dataclasses
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydResult
from sklearn_dp._aggregate.kmeans.result import (
    EngineResult,
    _centers_sd,
    _directions_sd,
    _for_each,
    build_result,
    shrink_to_mean,
)
from sklearn_dp._aggregate.shared.centering import Size, Weights
from sklearn_dp._privacy._domain import Domain, unit_rows
from sklearn_dp.audit import replay_audit

CENTERS = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 10.0], [0.0, -10.0]])


def released(variance, centers=CENTERS):
    k = len(centers)
    return SimpleNamespace(
        centers=centers,
        counts=np.full(k, 100.0),
        counts_sd=np.ones(k),
        variance=np.full(k, variance),
    )


def test_without_noise_nothing_moves():
    centers, middle, kept = shrink_to_mean(released(0.0), 0, TUNING)
    assert np.array_equal(centers, CENTERS) and not middle.any() and (kept == 1).all()


def test_centers_shrink_by_the_part_that_may_be_noise():
    """Squared distance 100, of which half of 2 * 25 may be noise: three parts of four stay."""
    centers, _, kept = shrink_to_mean(released(25.0), 0, TUNING)
    assert np.allclose(kept, 0.75) and np.allclose(centers, 0.75 * CENTERS)
    centers, _, kept = shrink_to_mean(released(1e4), 0, TUNING)
    assert not centers.any() and not kept.any()


@pytest.mark.parametrize("n_leaves", [None, 4])
def test_what_the_cells_have_shown_stays(n_leaves):
    assert np.array_equal(shrink_to_mean(released(25.0), n_leaves, TUNING)[0], CENTERS)


def test_a_center_far_out_keeps_its_place():
    far = np.vstack([CENTERS / 10, [[100.0, 0.0]]])
    _, _, kept = shrink_to_mean(released(4.0, far), 0, TUNING)
    assert kept[-1] > 0.99


def test_in_many_features_they_shrink_all_the_same():
    """Cells are cut along a few axes: what they show is not where a center is in the others."""
    wide = np.hstack([CENTERS, np.zeros((4, 9))])
    _, _, kept = shrink_to_mean(released(75.0 / 11, wide), 4, TUNING)  # 25 of 75 is believed
    assert np.allclose(kept, 0.75)
    _, _, kept = shrink_to_mean(released(25.0 / 11, wide), 4, TUNING)
    assert (kept == 1).all()


def test_their_mean_shrinks_too_where_they_are_not_believed():
    """13 features, four centers of variance 12 about a mean 20 off: 39 of its 400 are noise."""
    wide = np.hstack([np.zeros((4, 11)), CENTERS]) + 20.0 * np.eye(13)[0]
    _, middle, kept = shrink_to_mean(released(12.0, wide), 0, TUNING)
    assert np.allclose(kept, 1 - 0.78)
    assert np.allclose(middle, 20.0 * np.eye(13)[0] * (1 - 0.78 * 39 / 400))
    centers, middle, kept = shrink_to_mean(released(1.0, wide), 0, TUNING)
    assert np.allclose(kept, 1 - 0.065)
    assert np.allclose(middle, 20.0 * np.eye(13)[0] * (1 - 0.065 * 3.25 / 400))
    assert np.allclose(centers.mean(axis=0), middle)
    # All of its way, and no more.
    assert not shrink_to_mean(released(1e3, wide), 0, TUNING)[1].any()


def test_in_few_features_or_alone_the_mean_stays():
    moved = CENTERS + [20.0, 0.0]
    assert np.allclose(shrink_to_mean(released(25.0, moved), 0, TUNING)[1], [20.0, 0.0])
    alone = np.full((1, 13), 5.0)
    assert np.array_equal(shrink_to_mean(released(25.0, alone), 0, TUNING)[0], alone)


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
def test_all_that_is_left_is_spent_on_the_one_center():
    """Nobody looks for axes or cells that could show nothing."""
    X = load_digits().data / 128
    model = DPKMeans(10, epsilon=0.1, bounds=1.0, random_state=0).fit(X)
    report = model.privacy_report_
    assert model.status_.startswith("only one center")
    names = {release["release"] for release in report.releases}
    assert "lloyd sums" in names and not names & {"second moment", "cells", "cell means"}
    assert report.spent_rho > 0.999 * report.rho


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
def test_a_small_budget_costs_no_more_than_one_center():
    """Digits at epsilon = .1, eight fits each: 1.32 times the mean's cost before, now 1.04."""
    X = load_digits().data
    X = X / np.linalg.norm(X, axis=1).max()

    def cost(k):
        return np.median(
            [
                -DPKMeans(k, epsilon=0.1, bounds=1.0, random_state=seed).fit(X).score(X)
                for seed in range(8)
            ]
        )

    assert cost(10) < 1.02 * cost(1)


def result(centers, **changes):
    k = len(centers)
    found = LloydResult(
        centers=np.array(centers, dtype=float),
        variance=np.full(k, 4.0),
        counts=np.full(k, 5000.0),
        counts_sd=np.full(k, 1.0),
        counted=np.array(centers, dtype=float),
        reach=np.full(k, 50.0),
        spread=np.zeros(k),
        spread_variance=np.full(k, np.inf),
        n_iterations=3,
        error=400.0,
    )
    return dataclasses.replace(found, **changes)


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
    domain = Domain.from_bounds((60.0, 140.0), 2)
    final = result([[0, 0], [2, 4], [1000, 0]])
    found = build_result(context(3, (10.0, 0.0)), final, domain, "ok", n_leaves=3)
    assert np.allclose(found.centers, [[105, 100], [106, 102], [140, 100]])
    assert (found.radius, found.error, found.n_iterations) == (40.0, 100.0, 3)
    assert found.quality is None and found.centers_sd is None and found.status == "ok"
    assert found.weights.tolist() == [5000.0] * 3


def test_what_is_known_to_be_missing_stays_in_the_status():
    domain = Domain(np.zeros(2), 40.0)
    found = build_result(context(1), result([[0, 0]]), domain, "no bound found", n_leaves=None)
    assert found.status.startswith("no bound found")


def test_centers_that_shrink_to_one_point_are_told():
    """1,500 rows of no clusters in 1,000 features: nothing but noise is between the centers."""
    X = np.random.default_rng(0).normal(size=(1500, 1000)) / np.sqrt(1000)
    found = DPKMeans(4, epsilon=1.0, bounds=1.5, random_state=5).fit(X)
    assert np.ptp(found.cluster_centers_, axis=0).max() == 0
    assert found.status_.startswith("only one center was released") and not found.trustworthy_


SIZE = Size(400.0, 1.0)


def test_errors_of_centers_have_noise_and_sampling():
    """Variance 4 of the noise; 100 rows of mean squared distance 10 in two features: 10 / 200."""
    final = result([[0, 0], [1, 1]], counts=np.array([100.0, 1.0]))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE, TUNING)[0], np.sqrt(4 + 10 / 200))
    # A count of next to nothing is taken for what is sure, here twice its noise.
    least = TUNING.certain_count_sd
    assert np.allclose(
        _centers_sd(final, 4000.0, 0.0, SIZE, TUNING)[1], np.sqrt(4 + 10 / (2 * least))
    )
    # Of weights whose squares come to half of their sum: half of the sampling.
    even = replace(SIZE, weights=Weights(square=0.5))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, even, TUNING)[0], np.sqrt(4 + 10 / 400))


def test_errors_of_centers_have_what_the_last_move_may_leave():
    """A move by (6, 8) is 50 in each of two features, 46 beyond the noise of 4: seven tenths of the
    way are half of that. A move that noise explains, and one of one center, leave nothing."""
    counted = np.array([[0.0, 0.0], [1.0, 1.0]])
    final = result([[6, 8], [2, 2]], counted=counted)
    squares = np.square(_centers_sd(final, 0.0, 0.0, SIZE, TUNING))
    assert np.allclose(squares, [4 + 46 / 2, 4])
    alone = result([[6, 8]], counted=counted[:1])
    assert np.allclose(np.square(_centers_sd(alone, 0.0, 0.0, SIZE, TUNING)), 4)


def test_a_spread_that_the_noise_hides_is_as_large_as_the_noise():
    """A common one of 0 with an error of 4000 / 400, and one of a cluster that says 90 +- 5."""
    final = result([[0, 0]], counts=np.array([100.0]))
    assert np.allclose(_centers_sd(final, 0.0, 4000.0, SIZE, TUNING), np.sqrt(4 + 10 / 200))
    own = replace(final, spread=np.array([90.0]), spread_variance=np.array([25.0]))
    mean = (90 / 25 + 0 / 100) / (1 / 25 + 1 / 100)
    assert np.allclose(_centers_sd(own, 0.0, 4000.0, SIZE, TUNING), np.sqrt(4 + mean / 200))


def test_a_spread_that_is_known_exactly_counts_alone():
    final = result([[0, 0]], spread=np.array([90.0]), spread_variance=np.array([1e-12]))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE, TUNING), np.sqrt(4 + 90 / 10_000))


@pytest.mark.parametrize("k", [1, 3])
def test_one_center_stands_for_all_clusters(k):
    alone = EngineResult(
        np.array([[1.0, 2.0]]),
        np.array([70.0]),
        1.0,
        "ok",
        0,
        0.0,
        centers_sd=np.array([0.5]),
        weights_sd=np.array([3.0]),
        weights_drift=np.array([0.0]),
    )
    found = _for_each(alone, k)
    assert found.centers.tolist() == [[1.0, 2.0]] * k
    assert found.weights.tolist() == [70.0] + [0.0] * (k - 1)
    assert found.centers_sd.tolist() == [0.5] * k
    assert found.weights_sd.tolist() == [3.0] + [0.0] * (k - 1)


@pytest.mark.parametrize("d", [2, 3, 30])
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.5, 3.0])
def test_errors_of_directions_are_those_of_noisy_means(d, noise):
    """Means of 20,000 draws: coordinates of directions are off by what is claimed, up to the part
    of large noise that makes means longer. A factor sqrt(d) too much or too little would show."""
    rng, true = np.random.default_rng(d), np.ones(d) / np.sqrt(d)
    means = true + noise * rng.normal(size=(20_000, d))
    points = unit_rows(means)
    claimed = _directions_sd(np.full(20_000, noise), means, points)
    found = np.sqrt(np.square(points - true).mean(axis=0))
    ratio = np.sqrt(np.square(claimed).mean(axis=0)) / found
    assert (ratio > 0.8).all() and (ratio < 1.3).all()


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


@pytest.mark.parametrize(("n", "d", "k"), [(4000, 2, 1), (4000, 3, 1), (4000, 16, 2)])
def test_inertia_has_rows_that_are_seen_far_from_every_center(n, d, k):
    """200 rows of a flag that has no center: they are most of the cost."""
    held, told = 0, set()
    for seed in range(20):
        X = rare_flag(n, d, seed)
        model = DPKMeans(k, epsilon=1.0, bounds=1.2, random_state=seed).fit(X)
        held += abs(model.inertia_ + model.score(X)) < 2 * model.inertia_std_error_
        told |= {"missing" in model.status_}
    assert held >= 16 and told == {False}  # noise hides less than a cluster, or k is one


@pytest.mark.parametrize("d", [3, 5])
def test_neighbors_of_small_data_with_a_look_at_far_rows_are_within_every_claim(d):
    X = rare_flag(900, d, 0)
    model = DPKMeans(2, epsilon=3.0, bounds=1.2, random_state=0)
    frame = model.fit(X).privacy_report_.to_frame()
    assert frame[frame["release"] == "cells"]["rho"].nunique() == 2  # the tree, and the look
    assert replay_audit(model, X).violations == []


def test_rows_in_reach_of_no_center_are_told():
    """75 rows, which the tree finds in about half of the fits."""
    told = found = 0
    for seed in range(20):
        X = rare_flag(1500, 2, seed)
        model = DPKMeans(2, epsilon=1.0, bounds=1.5, random_state=seed).fit(X)
        has_center = np.ptp(model.cluster_centers_[:, -1]) > 0.5
        found += has_center
        if "rows are seen" in model.status_:
            assert not has_center
            told += 1
    assert told >= 5 and found >= 8


@pytest.mark.parametrize(("d", "bounds"), [(2, 1.2), (2, 10.0), (5, 5.0)])
def test_nothing_is_seen_far_from_clean_clusters_in_wide_bounds(d, bounds):
    for seed in range(10):
        rng = np.random.default_rng([seed, d])
        centers = unit_rows(rng.normal(size=(3, d))) * 0.8
        X = centers[rng.integers(3, size=4000)] + 0.05 * rng.normal(size=(4000, d))
        model = DPKMeans(3, epsilon=1.0, bounds=bounds, random_state=seed).fit(X)
        assert model.status_.startswith("ok")


def test_nothing_is_seen_in_a_constant_table():
    model = DPKMeans(2, epsilon=1.0, bounds=1.0, random_state=0).fit(np.zeros((2000, 3)))
    assert "rows are seen" not in model.status_
