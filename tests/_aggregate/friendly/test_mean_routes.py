"""Ways to a first center: cells."""

import numpy as np

from sklearn_dp._aggregate.friendly.mean_routes import _counted_cells
from sklearn_dp._aggregate.shared.table import ArraySource, Part, add_sums
from sklearn_dp._privacy._units import Units


def cells(X, shift):
    part = Part(ArraySource(X), Units(len(X)))
    return _counted_cells(part, shift, 1.0)[1]


def test_cells_are_functions_of_the_point():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 7)) * 5, np.full((2, 7), 1e140)])
    shift = rng.uniform(size=7)
    codes, counts = cells(X, shift)[0].arrays(7)
    assert counts.sum() == len(X) and len(set(codes.tolist())) == len(codes)
    alone = [cells(X[i : i + 1], shift)[0].arrays(7)[0][0] for i in range(len(X))]
    assert sorted(set(alone)) == sorted(codes.tolist())


def test_cells_of_parts_add_up():
    """Cells that two parts share count once, with the points of both."""
    rng = np.random.default_rng(1)
    X, shift = rng.normal(size=(60, 2)), rng.uniform(size=2)
    (whole,) = cells(X, shift)
    total = cells(X[:0], shift)
    for piece in (X[:7], X[7:7], X[7:]):
        total = add_sums(total, cells(piece, shift))
    assert total[0].counts == whole.counts and len(whole.counts) < 30
