"""Shrinkage of released centers, and one center where several would be lost in the noise."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.fallback import lost_in_noise, only_one, toward_one
from sklearn_dp._aggregate.kmeans.fit_context import Context
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size

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
    centers, middle, kept = toward_one(released(0.0), 0, TUNING)
    assert np.array_equal(centers, CENTERS) and not middle.any() and (kept == 1).all()


def test_centers_shrink_by_the_part_that_may_be_noise():
    """Squared distance 100, of which half of 2 * 25 may be noise: three parts of four stay."""
    centers, _, kept = toward_one(released(25.0), 0, TUNING)
    assert np.allclose(kept, 0.75) and np.allclose(centers, 0.75 * CENTERS)
    centers, _, kept = toward_one(released(1e4), 0, TUNING)
    assert not centers.any() and not kept.any()


@pytest.mark.parametrize("n_leaves", [None, 4])
def test_what_the_cells_have_shown_stays(n_leaves):
    assert np.array_equal(toward_one(released(25.0), n_leaves, TUNING)[0], CENTERS)


def test_a_center_far_out_keeps_its_place():
    far = np.vstack([CENTERS / 10, [[100.0, 0.0]]])
    _, _, kept = toward_one(released(4.0, far), 0, TUNING)
    assert kept[-1] > 0.99


def test_in_many_features_they_shrink_all_the_same():
    """Cells are cut along a few axes: what they show is not where a center is in the others."""
    wide = np.hstack([CENTERS, np.zeros((4, 9))])
    _, _, kept = toward_one(released(75.0 / 11, wide), 4, TUNING)  # 25 of 75 is believed
    assert np.allclose(kept, 0.75)
    _, _, kept = toward_one(released(25.0 / 11, wide), 4, TUNING)
    assert (kept == 1).all()


def test_their_mean_shrinks_too_where_they_are_not_believed():
    """13 features, four centers of variance 12 about a mean 20 off: 39 of its 400 are noise."""
    wide = np.hstack([np.zeros((4, 11)), CENTERS]) + 20.0 * np.eye(13)[0]
    _, middle, kept = toward_one(released(12.0, wide), 0, TUNING)
    assert np.allclose(kept, 1 - 0.78) and TUNING.shrink_middle * 0.78 > 1
    assert np.allclose(middle, 20.0 * np.eye(13)[0] * (1 - 39 / 400))
    centers, middle, kept = toward_one(released(1.0, wide), 0, TUNING)
    doubt = TUNING.shrink_middle * (1 - kept[0])
    assert np.allclose(kept, 1 - 0.065)
    assert np.allclose(middle, 20.0 * np.eye(13)[0] * (1 - doubt * 3.25 / 400))
    assert np.allclose(centers.mean(axis=0), middle)
    # All of its way, and no more.
    assert not toward_one(released(1e3, wide), 0, TUNING)[1].any()


def test_in_few_features_or_alone_the_mean_stays():
    moved = CENTERS + [20.0, 0.0]
    assert np.allclose(toward_one(released(25.0, moved), 0, TUNING)[1], [20.0, 0.0])
    alone = np.full((1, 13), 5.0)
    assert np.array_equal(toward_one(released(25.0, alone), 0, TUNING)[0], alone)


def located(n, d, k):
    return SimpleNamespace(
        rows=SimpleNamespace(n_features=d), n_clusters=k, size=Size(n, 0.02), tuning=TUNING
    )


@pytest.mark.parametrize(
    ("n", "d", "k", "lost"),
    [
        (1000, 50, 10, True),
        (1000, 50, 1, False),
        (10_000, 50, 10, False),
        (1000, 2, 2, False),
        (1000, 200, 3, True),
        (3000, 200, 3, False),
    ],
)
def test_when_several_centers_are_lost(n, d, k, lost):
    """rho = 2.6e-4 (epsilon = .1): noise of 44 rows."""
    assert lost_in_noise(located(n, d, k), 2.6e-4) == lost


@pytest.mark.parametrize("k", [3, 10])
def test_in_few_features_centers_anywhere_are_worth_their_noise(k):
    """The same noise of a center, in radii of the data: lost in 100 features, and not in 2."""
    for d, lost in ((2, False), (100, True)):
        n = 44 * k * np.sqrt(d / 2.3)  # squared noise 2.3
        assert lost_in_noise(located(n, d, k), 2.6e-4) == lost


def test_one_center_gets_few_iterations_of_any_data():
    context = Context(
        session=None, rows=SimpleNamespace(), n_clusters=7, size=Size(100, 1.0), radius=1.0
    )
    alone = only_one(context)
    assert alone.n_clusters == 1 and context.n_clusters == 7
    for name in ("most_iterations", "small_most_iterations"):
        assert getattr(alone.tuning, name) == TUNING.alone_iterations
    for name in ("iteration_share", "small_iteration_share"):
        assert getattr(alone.tuning, name) == TUNING.alone_share


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
def test_all_that_is_left_is_spent_on_the_one_center():
    """Nobody looks for axes or cells that could show nothing."""
    X = load_digits().data / 128
    model = DPKMeans(10, epsilon=0.1, bounds=1.0, random_state=0).fit(X)
    report = model.privacy_report_
    assert model.status_.startswith("one center")
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
