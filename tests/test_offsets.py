"""A constant added to columns and bounds moves what is released of places, and nothing else.

The constant is a power of two far above the spread, so that rows and grids lose no bits that count.
Outputs of `SampleAndAggregate` are measured in magnitudes: coefficients have an origin.
"""

import numpy as np
import pytest
from estimators import all_estimators

from sklearn_dp import (
    DPQuantiles,
    DPStandardScaler,
    FriendlyCovariance,
    FriendlyMean,
    SampleAndAggregate,
)

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
    z = rng.integers(2, size=4000)
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


def raw_like(n, seed):
    """Columns of a symmetric, a skewed, a spiky and a narrow law, with clusters."""
    rng = np.random.default_rng(seed)
    z, spiky = rng.integers(3, size=n), rng.random(n) < 0.6
    return np.column_stack(
        [
            8.0 * (z - 1) + rng.normal(size=n),
            rng.gamma(2, size=n) + 6 * (z == 1),
            np.where(spiky, -1.0, rng.exponential(20, n)),
            rng.normal(size=n) / 50,
        ]
    )


def off(model, X):
    """Errors of places and of spreads, in standard deviations."""
    mean, sd, fitted = X.mean(axis=0), X.std(axis=0), vars(model)
    if "quantiles_" in fitted:
        return [(model.quantiles_ - np.quantile(X, [0.25, 0.5, 0.75], axis=0)) / sd]
    found = [(fitted.get("mean_", fitted.get("location_")) - mean) / sd]
    if "scale_" in fitted:
        found.append(np.log(model.scale_ / sd))
    if "covariance_" in fitted:
        found.append((model.covariance_ - np.cov(X.T)) / np.outer(sd, sd))
    return found


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    "kind", [FriendlyMean, DPStandardScaler, FriendlyCovariance, DPQuantiles], ids=str
)
def test_offsets_of_many_deviations_cost_little_accuracy(kind, bounded):
    """The mean of a real table was 300 deviations off, moved by 2023 of them, as each nearer look
    at columns had half the budget of the one before."""
    for seed, n in enumerate([1500, 2000, 3000, 10_000]):
        X = raw_like(n, seed)
        sd, far = X.std(axis=0), 2 * np.abs(X).max(axis=0)
        for by in (0.0, 10.0, 2023.0, 1e6):
            box = (by * sd - far, by * sd + far) if bounded else None
            model = kind(epsilon=2.0, bounds=box, random_state=seed).fit(X + by * sd)
            for errors in off(model, X + by * sd):
                assert np.abs(errors).max() < 0.5, (by, n)
