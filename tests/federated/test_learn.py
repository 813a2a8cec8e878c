"""What the server learns from releases."""

import numpy as np
import pytest

from sklearn_dp.federated import _learn


def test_public_proxies_stay_where_the_nearest_one_is_found_exactly():
    """Products with rows are exact for norms up to 2**25, however wide the released spread is."""
    points = _learn._public_proxies(np.full(400, 2.0**24), 4, 2.0**24, np.random.default_rng(0))
    assert len(points) == 200 and np.array_equal(points, np.rint(points))
    assert 0.999 * 2**25 < np.linalg.norm(points, axis=1).max() <= 2**25
    narrow = _learn._public_proxies(np.array([9.0, 3.0]), 4, 2.0**24, np.random.default_rng(0))
    assert np.std(narrow, axis=0) == pytest.approx([10.8, 3.6], rel=0.4)
