"""Columns scaled by private medians and ranges."""

import numpy as np
import pytest
from sklearn.preprocessing import RobustScaler

from sklearn_dp import DPRobustScaler


def people(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    money = np.where(rng.random(n) < 0.8, 0.0, rng.exponential(5000, n))
    return np.column_stack([rng.normal(45, 15, n), rng.lognormal(10.5, 0.7, n), money])


BOX = ([0, 0, 0], [120, 1e6, 1e6])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unit_variance": True},
        {"with_centering": False},
        {"with_scaling": False},
        {"quantile_range": (10, 95)},
    ],
)
@pytest.mark.parametrize("bounds", [None, BOX])
def test_it_is_the_scaler_of_scikit_learn(options, bounds):
    X = people()
    theirs = RobustScaler(**options).fit(X)
    ours = DPRobustScaler.from_sklearn(theirs, epsilon=1.0, bounds=bounds, random_state=0).fit(X)
    for name in ("center_", "scale_"):
        if getattr(theirs, name) is None:
            assert getattr(ours, name) is None
        else:
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0.1, atol=9)
    if "quantile_range" not in options and ours.scale_ is not None:
        assert ours.scale_[2] == 1  # as wide as a constant: three quarters are zero
        assert ours.column_status_[2] == "constant" and ours.trustworthy_
        (message,) = ours.messages_
        assert message.columns == ("x2",) and message.code == "single_value"
        assert message.action.endswith("DPStandardScaler if other values are rare")
        assert ("narrower bounds" in message.action) is bool(bounds)
    scaled = ours.transform(X)
    np.testing.assert_allclose(ours.inverse_transform(scaled), X, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(ours.to_sklearn().transform(X), scaled)
    assert ours.trustworthy_ and ours.transform(X[:3].astype("f4")).dtype == "f4"
