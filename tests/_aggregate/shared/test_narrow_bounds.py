"""Bounds that are too narrow: "ok" is not said of numbers that they have made."""

import numpy as np
import pytest

import sklearn_dp
from sklearn_dp._aggregate.shared.narrow_bounds import (
    ends_of,
    told_of_balls,
    told_of_centers,
    told_of_outside,
    told_of_points,
)
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._rows.outside import outside

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
RNG = np.random.default_rng(0)
N = 6000
AGE, PAY, HOURS = (RNG.normal(*law, N) for law in ((45, 12), (34_890, 6_000), (38, 8)))
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


@each_model
@pytest.mark.parametrize("bounds", [(0.0, 100.0), ([0.0, 0.0], [100.0, 1000.0])])
def test_a_column_beyond_its_bounds_is_not_ok(name, bounds):
    model = fitted(name, np.column_stack([AGE, PAY]), bounds)
    assert not model.trustworthy_, model.status_
    assert "bound" in model.status_
    if name != "DPCoreset":
        assert model.column_status_[1] in ("bound", "noise")


@each_model
def test_a_column_half_of_which_is_beyond_its_bounds_is_told(name):
    """Also of sides that are equal, where nothing tells the columns from each other."""
    model = fitted(name, np.column_stack([AGE, 100 + HOURS - 38]), (0.0, 100.0))
    assert "bound" in model.status_ or "noise" in model.status_
    assert model.status_ != "ok"
    if name != "DPCoreset":
        assert model.column_status_[1] == "bound"


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
        assert not model.trustworthy_ and "beyond the bounds" in model.status_


@pytest.mark.parametrize("name", ["FriendlyMean", "DPPCA", "FriendlyCovariance"])
def test_a_ball_that_cuts_most_rows_is_told_where_the_others_are_at_zero(name):
    """A mean of 700 of salaries of 30,000 was "ok": the mean and the spread are well inside."""
    pay = np.where(np.arange(N) % 10 < 3, 0.0, 3e4 + 300 * (HOURS - 38))
    X = np.column_stack([AGE, pay])
    words = "% of the bound, so longer rows may have been clipped", "rows are beyond the bounds"
    assert any(each in fitted(name, X, 1000.0).status_ for each in words)
    assert not any(each in fitted(name, X, 1e5).status_ for each in words)


@each_model
@pytest.mark.parametrize("case", ["zeros", "within", "capped"])
def test_columns_within_their_bounds_stay_ok(name, case):
    """Four in five zeros in bounds from zero; a third of the values capped at the bound, before."""
    other = {
        "zeros": np.where(RNG.random(N) < 0.8, 0.0, RNG.gamma(3.0, 10.0, N)).clip(0, 100),
        "within": HOURS,
        "capped": (HOURS + 57).clip(0, 100),
    }[case]
    model = fitted(name, np.column_stack([AGE, other]).clip(0, 100), (0.0, 100.0))
    spread_hidden = name in ("DPStandardScaler", "DPGaussianMixture") and case == "zeros"
    quantile_there = name in ("DPRobustScaler", "DPQuantiles") and case == "capped"
    not_counted = name == "DPPCA" and case == "capped"
    one_ball = name == "DPOneClusterKMeans" and model.status_.startswith(("few points", "no dense"))
    there = spread_hidden or quantile_there or not_counted or one_ball
    assert model.trustworthy_ or there, model.status_
    assert "beyond the bounds" not in model.status_


@pytest.mark.parametrize("name", ["DPKMeans", "DPKTupleKMeans"])
def test_rows_at_the_bound_that_were_there_are_no_complaint(name):
    """Ones beside zeros, rows of one length, and a column that ends where most of its rows are."""
    ones = np.column_stack([np.arange(N) % 2, np.ones(N), AGE / 100])
    assert fitted(name, ones, (0.0, 1.0)).trustworthy_
    rows = np.column_stack([AGE, HOURS, 20 * RNG.normal(size=N)])
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    assert fitted(name, rows, 1.0).status_ == "ok"


def test_columns_lost_in_a_box_for_wider_ones_are_told():
    """Ages in a box for salaries are off by 8 spreads and more; like columns are as before."""
    X = np.column_stack([AGE, PAY, HOURS])
    model = fitted("DPPCA", X, (0.0, 1e5))
    assert model.column_status_.tolist() == ["unknown", "ok", "unknown"]
    assert "their means may be noise, too: x0, x2 (separate bounds" in model.status_
    model = fitted("FriendlyMean", X, (0.0, 1e5))  # finds where they are
    assert (np.abs(model.mean_ - X.mean(axis=0)) < 0.2 * X.std(axis=0)).all()
    for name in ("FriendlyMean", "DPPCA"):
        model = fitted(name, np.column_stack([AGE, HOURS, AGE - HOURS + 50]), (0.0, 120.0))
        assert model.status_ == "ok" and (model.column_status_ == "ok").all()


@pytest.mark.parametrize("name", ["DPOneCluster", "DPOneClusterKMeans", "DPCoreset"])
def test_answers_that_are_noise_say_nothing_of_bounds(name):
    """Noise has put them at a bound: wider ones would be no help."""
    model = fitted(name, np.column_stack([AGE, HOURS])[:5], (10.0, 100.0))
    assert not model.trustworthy_ and "at a bound" not in model.status_


def test_rows_outside_are_told_by_each_row_alone():
    box, ball = Domain.from_bounds((0.0, [1.0, 0.0]), 2), Domain.from_bounds(5.0, 2)
    rows = np.array([[0.5, 0.0], [1.0 + 1e-6, 0.0], [1.1, 0.0], [0.5, -1e-9], [-1.0, 0.0]])
    assert outside(box, rows).tolist() == [False, False, True, True, True]
    rows = np.array([[3.0, 4.0], [3.0, 4.0 + 1e-5], [3.0, 4.001], [0.0, 0.0], [1e200, 0.0]])
    assert outside(ball, rows).tolist() == [False, False, True, False, True]
    assert outside(ball, rows[:4].astype(np.float32)).tolist() == [False, False, True, False]


BOX, BALL = Domain.from_bounds((0.0, 100.0), 2), Domain.from_bounds(10.0, 2)
SEEN = np.zeros(2, dtype=bool)
AT = np.array([[40.0, 100.0], [60.0, 100.0]])
ONES, NONE = np.ones((2, 2)), np.zeros(2)


@pytest.mark.parametrize(
    ("outside", "found", "cut"),
    [
        ((0.0, 0.01), "ok", [False, False]),
        ((0.0, 0.2), "the means of these columns are at a bound", [False, True]),
        ((0.1, 0.01), "ok, but about 10% of the rows are beyond the bounds", [False, True]),
        ((0.6, 0.01), "about 60% of the rows are beyond the bounds", [False, True]),
    ],
)
def test_the_number_of_rows_beyond_decides(outside, found, cut):
    status, columns = told_of_outside("ok", BOX, AT, ONES, 10 * ONES[0], NONE, outside, "ab")
    assert (status.startswith(found), columns.tolist()) == (True, cut)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_bounds_in_the_wrong_place_are_all_that_is_said(share):
    """Remedies of what else is wrong there follow from the wrong bounds."""
    where = BOX, AT, ONES, 10 * ONES[0], NONE, (share, 0.01), "ab"
    found = told_of_outside("mostly noise; use fewer clusters", *where)[0]
    assert found.endswith("(use wider bounds)") == (share > 0.5)
    found = told_of_outside("mostly noise; use fewer clusters", *where[:5], (0.0, 0.2), "ab")[0]
    assert found.endswith("(try wider bounds)")  # all centers are at a bound


def test_a_status_that_complains_of_something_else_stays():
    worse = "mostly noise"
    known = BOX, AT, ONES, AT, 10 * ONES[0], "ab"
    assert told_of_centers(worse, *known)[0].endswith("; mostly noise")
    noise = BOX, AT, 5 * ONES, AT, 10 * ONES[0], "ab"
    assert told_of_centers(worse, *noise)[0] == worse  # which has put them there
    within = BOX, AT - 50.0, ONES, AT - 50.0, 10 * ONES[0], "ab"
    assert told_of_centers(worse, *within)[0] == worse
    assert told_of_balls(worse, BALL, np.array([[9.99, 0.0]]), SEEN, 0.1, "ab")[0] == worse
    assert told_of_balls("ok", BALL, np.array([[9.99, 0.0]]), SEEN, 0.1, "ab")[0][:7] == "ok, but"
    assert told_of_balls("ok", None, AT, SEEN, 0.1, "ab")[0] == "ok"
    assert told_of_centers("ok", BOX, np.empty((0, 2)), np.empty((0, 2)), *known[3:])[0] == "ok"
    assert told_of_points("ok", BOX, AT, NONE, SEEN, "ab").startswith("the means of these columns")
    assert told_of_points("ok", BOX, AT, NONE, np.array([False, True]), "ab") == "ok"


@pytest.mark.parametrize("seed", [1, 2])
def test_columns_that_cells_say_nothing_about_are_at_no_bound(seed):
    """Many points had the age 16, or 99, by noise: wider bounds would have been no help."""
    bounds = ([16.0, 0.0], [99.0, 2e5])
    model = sklearn_dp.DPCoreset(bounds=bounds, random_state=seed)
    model.fit(np.column_stack([AGE, PAY]).clip(*bounds))
    assert model.status_.endswith("it says nothing about them: x0")


def test_ends_are_those_of_a_box_about_the_origin():
    low, high = np.array([0.0, 10.0]), np.array([2.0, 30.0])
    box = Domain((low + high) / 2, 11.0, low, high)
    assert ends_of(box, np.array([1.0, 20.0]), 0.5).tolist() == [[-2.0, -20.0], [2.0, 20.0]]
    assert ends_of(Domain(np.zeros(2), 1.0), np.zeros(2), 1.0) is None
    assert ends_of(None, np.zeros(2), 1.0) is None
