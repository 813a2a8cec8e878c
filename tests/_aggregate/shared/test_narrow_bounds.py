"""Bounds that are too narrow: "ok" is not said of numbers that they have made."""

import numpy as np
import pytest

import sklearn_dp
from sklearn_dp._parameters import domain_of
from sklearn_dp._rows.rows import outside

RNG = np.random.default_rng(0)
N = 6000
AGE, PAY, HOURS = (RNG.normal(*law, N) for law in ((45, 12), (34_890, 6_000), (38, 8)))
ZEROS = np.where(RNG.random(N) < 0.8, 0.0, RNG.gamma(3.0, 10.0, N)).clip(0, 100)
MODELS = {
    "FriendlyMean": {},
    "DPKMeans": {"n_clusters": 3},
    "DPKTupleKMeans": {"n_clusters": 2},
    "DPOneCluster": {},
    "DPOneClusterKMeans": {"n_clusters": 2},
    "FederatedDPKMeans": {"n_clusters": 2},
    "DPGaussianMixture": {"n_components": 2},
    "FriendlyCovariance": {},
    "DPPCA": {"n_components": 1},
    "DPStandardScaler": {},
    "DPRobustScaler": {},
    "DPQuantiles": {},
    "DPCoreset": {"n_clusters": 3},
    "DPOutlierScreen": {},
}
each_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, X, bounds):
    model = getattr(sklearn_dp, name)(bounds=bounds, random_state=0, **MODELS[name])
    return model.fit(X)


@pytest.mark.quick("bounds1-*")
@each_model
@pytest.mark.parametrize("bounds", [(0.0, 100.0), ([0.0, 0.0], [100.0, 1000.0])])
def test_a_column_beyond_its_bounds_is_not_ok(name, bounds):
    model = fitted(name, np.column_stack([AGE, PAY]), bounds)
    assert not model.trustworthy_, str(model.messages_)
    assert "bound" in str(model.messages_)
    if name != "DPCoreset":
        assert model.column_status_[1] in ("bound", "noise")


@pytest.mark.quick("half of them-*")
@each_model
@pytest.mark.parametrize("radius", [20.0, 58.0], ids=["all rows", "half of them"])
def test_a_ball_that_is_too_small_is_told(name, radius):
    X = np.column_stack([AGE, HOURS])
    model = fitted(name, X, radius)
    if name in ("DPRobustScaler", "DPQuantiles") and radius > 50:
        assert model.trustworthy_  # their ball is a box, which holds these quantiles
    elif name == "DPStandardScaler":  # its ball is a box, too: 14% of ages and 1% of hours beyond
        assert model.column_status_.tolist() == (["bound", "ok"] if radius > 50 else ["bound"] * 2)
    else:
        assert model.status_ != "ok"
    if name in ("DPKMeans", "DPKTupleKMeans"):
        assert not model.trustworthy_ and "beyond the bounds" in str(model.messages_)


@pytest.mark.quick("capped-*", "zeros-FriendlyMean")
@each_model
@pytest.mark.parametrize("case", ["zeros", "within", "capped"])
def test_columns_within_their_bounds_stay_ok(name, case):
    """Four in five zeros in bounds from zero; a third of the values capped at the bound, before."""
    other = {"zeros": ZEROS, "within": HOURS, "capped": (HOURS + 57).clip(0, 100)}[case]
    model = fitted(name, np.column_stack([AGE, other]).clip(0, 100), (0.0, 100.0))
    spread_hidden = name in ("DPStandardScaler", "DPGaussianMixture") and case == "zeros"
    quantile_there = name in ("DPRobustScaler", "DPQuantiles") and case == "capped"
    not_counted = name == "DPPCA" and case == "capped"
    one_ball = [each.code for each in model.messages_[:1]] == ["no_ball"]  # of several
    there = spread_hidden or quantile_there or not_counted or one_ball
    assert model.trustworthy_ or there, str(model.messages_)
    assert "beyond the bounds" not in str(model.messages_)


def test_columns_lost_in_a_box_for_wider_ones_are_told():
    """Ages in a box for salaries are off by 8 spreads and more; like columns are as before."""
    X = np.column_stack([AGE, PAY, HOURS])
    model = fitted("DPPCA", X, (0.0, 1e5))
    assert model.column_status_.tolist() == ["unknown", "ok", "unknown"]
    assert "their means may be noise, too: x0, x2; use separate bounds" in str(model.messages_)
    model = fitted("FriendlyMean", X, (0.0, 1e5))  # finds where they are
    assert (np.abs(model.mean_ - X.mean(axis=0)) < 0.2 * X.std(axis=0)).all()
    for name in ("FriendlyMean", "DPPCA"):
        model = fitted(name, np.column_stack([AGE, HOURS, AGE - HOURS + 50]), (0.0, 120.0))
        assert model.status_ == "ok" and (model.column_status_ == "ok").all()


def test_rows_outside_are_told_by_each_row_alone():
    box, ball = domain_of((0.0, [1.0, 0.0]), 2), domain_of(5.0, 2)
    rows = np.array([[0.5, 0.0], [1.0 + 1e-6, 0.0], [1.1, 0.0], [0.5, -1e-9], [-1.0, 0.0]])
    assert outside(box, rows).tolist() == [False, False, True, True, True]
    rows = np.array([[3.0, 4.0], [3.0, 4.0 + 1e-5], [3.0, 4.001], [0.0, 0.0], [1e200, 0.0]])
    assert outside(ball, rows).tolist() == [False, False, True, False, True]
    assert outside(ball, rows[:4].astype(np.float32)).tolist() == [False, False, True, False]
