"""Ways to a first center: cells."""

import numpy as np

from sklearn_dp._aggregate.friendly.mean_routes import _cells


def test_cells_are_functions_of_the_point():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 7)) * 5, np.full((2, 7), 1e140)])
    shift = rng.uniform(size=7)
    codes, counts = _cells(X, shift, 1.0)
    assert counts.sum() == len(X) and len(set(codes.tolist())) == len(codes)
    alone = [_cells(X[i : i + 1], shift, 1.0)[0][0] for i in range(len(X))]
    assert sorted(set(alone)) == sorted(codes.tolist())
