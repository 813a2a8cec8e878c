"""Codes of released components, and columns by name."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments.ellipsoid import NARROWEST, Ellipsoid, Errors, codes_of


def component(mean, second, scales=(100.0, 100.0), taken=None, hidden=0, weight=500.0, **more):
    clipped = None if taken is None else (np.zeros(2), np.array(taken))
    errors = Errors(np.array(mean), np.array(second), 20.0, clipped, **more)
    scales = np.array(scales)
    return Ellipsoid(np.zeros(2), np.eye(2), scales, 4.0, weight, errors, hidden)


@pytest.mark.parametrize(
    "parts, codes",
    [
        ({"mean": [0.1, 0.6], "second": [0.1, 0.1]}, ["ok", "noise"]),
        # an error of 0.6 of a variance is one of 0.3 of a deviation, as of scales
        ({"mean": [0.1, 0.1], "second": [0.59, 0.61]}, ["ok", "variance"]),
        # as wide as it seems or not at all, or at least 0.7 of that
        ({"mean": [0.1, 0.2], "second": [0.1, 0.95]}, ["ok", "noise"]),
        ({"mean": [0.3, 0.4], "second": [0.5, 0.5]}, ["ok", "noise"]),
        # what a clip takes makes a column no narrower
        ({"mean": [0.1, 0.1], "second": [0.1, 2.0], "taken": [0.0, 1.99]}, ["ok", "variance"]),
        # and counts as any other error
        ({"mean": [0.1] * 2, "second": [0.59, 0.61], "taken": [0.5, 0.6]}, ["ok", "variance"]),
        # nor does what noise may hide of one
        (
            {"mean": [0.1] * 2, "second": [0.3, 2.0], "unseen_second": np.array([0.1, 1.99])},
            ["ok", "variance"],
        ),
        (
            {"mean": [0.1, 1.0], "second": [0.1, 1.0], "scales": (100.0, NARROWEST)},
            ["ok", "constant"],
        ),
        # in no direction of a column
        ({"mean": [0.1, 0.1], "second": [0.1, 0.1], "hidden": 1}, ["variance"] * 2),
        ({"mean": [0.1, 0.9], "second": [0.1, 0.9], "hidden": 1}, ["ok", "noise"]),
        ({"mean": [0.1, 0.1], "second": [0.1, 0.1], "weight": 39.0}, ["noise"] * 2),
        ({"mean": [np.inf] * 2, "second": [np.inf] * 2, "scales": (1.0, 1.0)}, ["noise"] * 2),
    ],
)
def test_codes_of_released_errors(parts, codes):
    assert codes_of(component(**parts)).tolist() == codes
