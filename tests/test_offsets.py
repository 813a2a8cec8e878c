"""A constant added to columns and bounds moves what is released of places, and nothing else.

The constant is a power of two far above the spread, so that rows and grids lose no bits that count.
Outputs of `SampleAndAggregate` are measured in magnitudes: coefficients have an origin.
"""

import numpy as np
import pytest

from sklearn_dp import SampleAndAggregate
from sklearn_dp.audit import all_estimators

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]
KINDS = {
    name: kind
    for name, kind in all_estimators()
    if "bounds" in kind().get_params() and kind is not SampleAndAggregate
}
BY = 2.0**20
PLACES = (
    "cluster_centers_",
    "center_",
    "means_",
    "mean_",
    "location_",
    "quantiles_",
    "points_",
    "core_cells_",
)


def released(kind, by):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=10_000)
    X = np.column_stack([6.0 * z, -6.0 * z]) + rng.normal(size=(len(z), 2))
    low, high = np.full(2, by - 20.0), np.full(2, by + 20.0)
    model = kind(epsilon=3.0, bounds=(low, high), random_state=0).fit(X + by)
    found = {
        name: value - by * (name in PLACES)
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }
    return model.status_, found


@pytest.mark.parametrize("name", KINDS)
def test_a_constant_moves_places_and_nothing_else(name):
    (status, here), (moved_status, moved) = (released(KINDS[name], by) for by in (0.0, BY))
    assert status == moved_status and here.keys() == moved.keys() and here
    for key, value in here.items():
        assert np.allclose(value, moved[key], rtol=0.05, atol=0.05, equal_nan=True), key
