"""First guesses of components: halves of a long one take the place of an empty one."""

import numpy as np

from sklearn_dp._aggregate.mixture.fit import split_widest
from sklearn_dp._aggregate.moments.ellipsoid import Ellipsoid


def ellipsoid(center, scales, weight):
    return Ellipsoid(
        np.array(center, dtype=float), np.eye(2), np.array(scales, dtype=float), 6.0, weight
    )


def test_an_empty_component_halves_a_long_one():
    three = [
        ellipsoid([0, 0], [100, 100], 1000),
        ellipsoid([5000, 0], [500, 110], 2000),
        ellipsoid([70, 7], [9, 900], 5),
    ]
    found = split_widest(three, 200.0, 1e5)
    assert sorted(e.center.tolist() for e in found) == [[0, 0], [4500, 0], [5500, 0]]
    assert [round(e.weight) for e in found] == [1000, 1000, 1000]
    assert max(e.scales.max() for e in found) < 120
    round_ones = [three[0], ellipsoid([5000, 0], [150, 110], 2000), three[2]]
    assert split_widest(round_ones, 200.0, 1e5) == round_ones  # nothing looks like two
    full = three[:2] + [ellipsoid([70, 7], [100, 100], 500)]
    assert split_widest(full, 200.0, 1e5) == full  # none is empty
