"""Codes of released components, and columns by name."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments.codes import (
    at_bound_codes,
    codes_of,
    is_lost,
    told_of_codes,
    worst_codes,
)
from sklearn_dp._aggregate.moments.ellipsoid import NARROWEST, Ellipsoid, Errors
from sklearn_dp._privacy._domain import Domain


def component(mean, second, scales=(100.0, 100.0), taken=None, hidden=0, weight=500.0, **more):
    clipped = None if taken is None else (np.zeros(2), np.array(taken))
    errors = Errors(np.array(mean), np.array(second), 20.0, clipped, **more)
    scales = np.array(scales)
    return Ellipsoid(np.zeros(2), np.eye(2), scales, 4.0, weight, errors, hidden)


@pytest.mark.parametrize(
    "parts, codes",
    [
        ({"mean": [0.1, 0.6], "second": [0.1, 0.1]}, ["ok", "noise"]),
        # an error of 0.4 is two thirds of what it may leave, one of 0.45 is five sixths
        ({"mean": [0.1, 0.1], "second": [0.4, 0.45]}, ["ok", "variance"]),
        # as wide as it seems or not at all, or at least 0.7 of that
        ({"mean": [0.1, 0.2], "second": [0.1, 0.95]}, ["ok", "noise"]),
        ({"mean": [0.1, 0.3], "second": [0.1, 0.5]}, ["ok", "variance"]),
        # what a clip takes makes a column no narrower
        ({"mean": [0.1, 0.1], "second": [0.1, 2.0], "taken": [0.0, 1.99]}, ["ok", "variance"]),
        ({"mean": [0.1] * 2, "second": [0.3] * 2, "taken": [0.19, 0.21]}, ["ok", "variance"]),
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


def test_columns_along_hidden_directions_are_named_and_others_are_not():
    end = component([0.1, 0.1], [0.1, 0.1], hidden=1)
    for part, codes in (([0.9, 0.1], ["variance", "ok"]), ([0.1, 0.1], ["variance", "variance"])):
        found = Ellipsoid(**{**vars(end), "hidden_in": np.array(part)})
        assert codes_of(found).tolist() == codes


def test_a_spread_that_is_seen_in_all_rows_is_what_a_mean_is_compared_with():
    end = component([0.1, 0.4], [0.1, 0.9])
    assert codes_of(end).tolist() == ["ok", "noise"]
    assert codes_of(end, np.array([False, True])).tolist() == ["ok", "variance"]


@pytest.mark.parametrize(
    "codes, lost",
    [
        (["ok", "variance"], False),
        (["noise", "variance"], True),
        (["ok", "ok", "variance"], False),
        (["ok", "ok", "variance", "noise"], True),
        (["constant", "noise"], True),
        (["constant", "bound"], False),
        (["constant"], False),
    ],
)
def test_a_component_is_lost_with_half_of_its_columns(codes, lost):
    assert is_lost(np.array(codes)) == lost


def test_the_culprit_is_named_and_no_other_column():
    codes, names = np.array(["ok", "noise", "variance", "constant"]), ["age", "a", "b", "c"]
    status = told_of_codes("ok", codes, names)
    assert status == (
        "ok, but noise hides the means of these columns: a; "
        "noise hides the variances and covariances of these columns: b; "
        "only a single value is visible in these columns: c"
    )
    assert told_of_codes("mostly noise", codes, names) == "mostly noise"


def test_a_bound_is_no_sign_in_a_column_of_few_values():
    box, error = Domain.from_bounds((1.0, 2.0), 1), np.array([[0.01]])
    place = np.array([["ok"]]), box, np.array([[1.99]]), error, error
    assert at_bound_codes(*place).tolist() == [["bound"]]
    assert at_bound_codes(*place, np.array([True])).tolist() == [["ok"]]


def test_bounds_come_before_variances_and_after_noise():
    box = Domain.from_bounds((0.0, 10.0), 2)
    near, error = np.full((2, 2), 10.0), np.full((2, 2), 0.01)
    lost = component([0.1, 0.9], [0.1, 0.1])
    wide = component([0.1, 0.1], [0.1, 2.0], taken=[0.0, 1.99])
    codes = at_bound_codes(np.array([codes_of(lost), codes_of(wide)]), box, near, error, error)
    assert codes.tolist() == [["bound", "noise"], ["bound", "bound"]]
    assert worst_codes(codes, 0).tolist() == ["bound", "noise"]
    assert worst_codes(codes, 1).tolist() == ["noise", "bound"]
