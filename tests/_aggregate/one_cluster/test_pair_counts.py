"""Counts of neighbors and the score of a radius: by hand, exact."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from sklearn_dp._queries.balls import LinearRadii, LogRadii, neighbor_counts, radius_scores


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
