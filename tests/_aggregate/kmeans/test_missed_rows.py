"""From where on rows are far from every center, and what is said of them."""

import dataclasses

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.lloyd import LloydResult
from sklearn_dp._aggregate.kmeans.missed_rows import FarRows, far_limits, missed_in_words
from sklearn_dp._aggregate.kmeans.tuning import TUNING

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

FINAL = LloydResult(
    centers=np.zeros((4, 2)),
    variance=np.ones(4),
    counts=np.array([4000.0, 3000.0, 2900.0, 100.0]),
    counts_sd=np.full(4, 20.0),
    counted=np.zeros((4, 2)),
    reach=np.array([30.0, 30.0, 30.0, 90.0]),
    spread=np.array([99.0, 150.0, 120.0, 9e4]),
    spread_variance=np.array([1.0, np.inf, np.inf, np.inf]),
    n_iterations=3,
    error=0.0,
)


def test_rows_that_the_count_can_see_cost_a_part_of_all():
    """A quarter of the rows are in a cluster of mean square 100 at most, with its error."""
    limits = far_limits(FINAL, 10_000.0, 5.0, 1e4, TUNING)
    seen = TUNING.far_sd * 5.0 * limits[0] ** 2
    assert seen == pytest.approx(TUNING.far_cost * 10_000 * 100.0)
    assert np.allclose(limits, limits[0])


def test_rows_at_the_edge_of_a_cluster_are_not_far():
    """Where the noise is large: six times its width, which is three times that of the others."""
    found = far_limits(FINAL, 10_000.0, 1e4, 1e4, TUNING)
    assert np.allclose(found, [60.0, 60.0, 60.0, 180.0])


def test_nobody_is_farther_than_the_radius_of_the_data():
    found = far_limits(FINAL, 10_000.0, 1e4, 100.0, TUNING)
    assert found.tolist() == [60.0, 60.0, 60.0, np.inf]


@pytest.mark.parametrize(
    "change",
    [{"spread": np.zeros(4), "spread_variance": np.full(4, np.inf)}, {"counts": np.full(4, 30.0)}],
    ids=["no spread", "no sure cluster"],
)
def test_nothing_is_far_where_nothing_is_known(change):
    final = dataclasses.replace(FINAL, **change)
    assert np.isinf(far_limits(final, 10_000.0, 5.0, 1e4, TUNING)).all()


@pytest.mark.parametrize(
    ("count", "near", "light", "told"),
    [
        (100.0, (1.0, 0.1), True, True),
        (100.0, (1.0, 0.1), False, False),  # 2.5 standard deviations
        (130.0, (1.0, 0.1), False, True),
        (90.0, (1.0, 0.1), True, False),
        (-500.0, (0.0, 0.1), True, False),
        (100.0, (40.0, 1.0), True, False),  # they cost 9
        (100.0, (40.0, 10.0), True, True),  # as far as is known, not
        (3000.0, (1.0, 0.1), True, False),  # no small clusters
    ],
)
def test_what_is_said(count, near, light, told):
    words = missed_in_words(FarRows(count, 40.0, 0.3), near, 10_000.0, light, TUNING)
    assert (words is not None) == told
    assert words is None or words.startswith(f"clusters may be missing: about {count:.0f} units")


def test_nobody_looked():
    assert missed_in_words(FarRows(), (1.0, 0.1), 100.0, True, TUNING) is None


def test_a_missed_cluster_is_told_and_a_long_tail_is_not():
    """Two heavy clusters and one of 150 rows that two centers cannot have; and tails of both."""
    rng = np.random.default_rng(0)
    places = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 0.8]])
    heavy = places[np.arange(8000) % 3] + 0.01 * rng.normal(size=(8000, 2))
    light = places[3] + 0.01 * rng.normal(size=(150, 2))
    tails = places[np.arange(8000) % 3] + 0.01 * rng.standard_t(3, size=(8000, 2))
    for X, words in ((np.vstack([heavy, light]), "clusters may be missing"), (tails, "ok")):
        found = [
            DPKMeans(3, epsilon=2.0, bounds=1.0, random_state=seed).fit(X).status_
            for seed in range(3)
        ]
        assert [status.split(":")[0] for status in found] == [words] * 3, found
