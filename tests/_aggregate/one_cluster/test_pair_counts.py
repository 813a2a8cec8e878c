"""Counts of neighbors and the score of a radius: by hand, exact."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from sklearn_dp._queries.balls import counts_within
from sklearn_dp._queries.pairs import LinearRadii, LogRadii, neighbor_counts, radius_scores


@dataclass
class Squares:
    """Any squared radii."""

    squares: np.ndarray

    def bins(self, squared):
        return np.searchsorted(self.squares, squared)


def plain_score(points, square, t):
    """L by its definition."""
    if not len(points):
        return 0
    counts = (cdist(points, points, "sqeuclidean") <= square).sum(axis=1)
    return np.sort(np.minimum(counts, t))[::-1][:t].sum()


def integer_points(draw_from, n, d, high=2**23):
    return draw_from.integers(-high, high, (n, d)).astype(float) / math.isqrt(d)


@settings(max_examples=40)
@given(
    st.integers(0, 40),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 2**32),
    st.sampled_from([3, 60, 2**20]),
)
def test_scores_agree_with_their_definition_for_every_tiling(n, d, t, seed, high):
    rng = np.random.default_rng(seed)
    points = np.trunc(integer_points(rng, n, d, high))
    for radii in (LogRadii(1.0, 2.0 * high * 2), LinearRadii(high / 30 + 1, 4.0 * high)):
        counts = neighbor_counts(points, radii)
        scores = radius_scores(counts, t)
        for tile in ((1, 3), (3, 7), (7, 64), (64, 500)):
            assert np.array_equal(neighbor_counts(points, radii, tile=tile), counts)
        assert scores.tolist() == [plain_score(points, s, t) for s in radii.squares]
        assert (np.diff(scores) >= 0).all() and scores[0] >= 0 and scores[-1] <= t * t
        if n >= t:
            assert scores[-1] == t * t  # the last radius reaches across the domain
        order = rng.permutation(n)
        assert np.array_equal(radius_scores(neighbor_counts(points[order], radii), t), scores)


@pytest.mark.parametrize("d", [1, 3, 5, 24])
def test_squared_distances_are_exact(d):
    rng = np.random.default_rng(d)
    points = np.trunc(integer_points(rng, 70, d, 2**24))
    exact = points.astype(np.int64)
    exact = np.square(exact[:, None] - exact[None]).sum(axis=2)
    radii = Squares(np.unique(exact)[::7].astype(float))
    found = neighbor_counts(points, radii, tile=(9, 16))
    assert np.array_equal(found, (exact[:, :, None] <= radii.squares).sum(axis=1))


def test_counts_within_are_exact():
    squared = np.array([0.0, 1, 4, 4, 9, math.inf])
    assert counts_within(squared, np.array([0.0, 3, 4, 100])).tolist() == [1, 2, 4, 5]
