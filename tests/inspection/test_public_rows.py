"""Rows that stand for private ones: given by the user, or drawn from a mixture."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans

from sklearn_dp import DPGaussianMixture, DPKMeans, FriendlyMean
from sklearn_dp.inspection._curve import clusters_of, inside_bounds, synthetic_rows


def test_clusters_of_an_estimator_are_its_own_word_for_them():
    found = [clusters_of(each) for each in (DPKMeans(7), DPGaussianMixture(3), FriendlyMean())]
    assert found == [7, 3, None]


@pytest.mark.parametrize("bounds", [3.0, (5.0, 6.0), ([-1, 0], [1, 9])])
def test_rows_are_moved_into_the_bounds_of_the_estimator(bounds):
    rows = inside_bounds(
        synthetic_rows((2, 4), 1000, exact=True, seed=0), DPKMeans(4, bounds=bounds)
    )
    assert rows.shape == (1000, 2)
    if np.isscalar(bounds):
        assert np.linalg.norm(rows, axis=1).max() <= bounds
    else:
        assert (rows >= bounds[0]).all() and (rows <= bounds[1]).all()


def test_the_mixture_has_separated_clusters():
    rows = synthetic_rows((2, 30), 100_000, exact=False, seed=3)
    assert rows.shape == (3000, 2)
    centers = KMeans(30, n_init=5, random_state=0).fit(rows).cluster_centers_
    assert pdist(centers).min() > 5
    assert synthetic_rows((3, 2), 7, exact=False, seed=0).shape == (7, 3)
    assert synthetic_rows((1, 1), 5000, exact=True, seed=0).shape == (5000, 1)
