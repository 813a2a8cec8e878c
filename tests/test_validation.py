"""What users may give for a parameter: limits, and errors that name it.

`test_bad_input.py` tries these on every estimator.
"""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_dp._validation import (
    budget_of,
    check_integer,
    check_n_points,
    check_real,
    check_steps,
    names_of,
    shares_of_one,
)

SECRET = 7319.4825


def test_integers_have_inclusive_limits_and_become_pythons():
    assert [check_integer(value, "n", low=1, high=3) for value in (1, np.uint8(3))] == [1, 3]
    assert type(check_integer(np.int8(2), "n")) is int
    for value in (0, 4, 10**400, -(10**400)):
        with pytest.raises(ValueError, match="^n must be at least 1 and at most 3.$"):
            check_integer(value, "n", low=1, high=3)
    for value in (1.0, True, "1", None):
        with pytest.raises(TypeError, match="^n must be an integer.$"):
            check_integer(value, "n")


def test_numbers_lie_in_an_open_interval():
    assert check_real(np.float32(0.5), "x", high=1) == 0.5
    for value in (0, 1, np.nan, np.inf, 10**400, -(10**400)):
        with pytest.raises(ValueError, match="^x must be greater than 0 and less than 1.$"):
            check_real(value, "x", high=1.0)


def test_names_are_a_collection_of_texts():
    for names in ((), ["a"], {"a"}, np.array(["a"]), dict.fromkeys("a").keys()):
        assert set(names_of(names, "own")) <= {"a"}
    for bad in (None, 3, "a", b"a", {"a": 1}, [1], [None], iter("a"), np.array("a"), np.eye(2)):
        with pytest.raises(TypeError, match="^own must be a collection of step names"):
            names_of(bad, "own")


def test_steps_are_named_instances():
    check_steps([("a", None), ("b", "passthrough"), ("c", BaseEstimator(), [0])])
    for bad in (None, "ab", [1], [("a",)], [(1, None)], [("a", 1), ("a", 2)], [("a__b", 1)]):
        with pytest.raises((TypeError, ValueError), match="^estimator: "):
            check_steps(bad)
    with pytest.raises(TypeError, match="step 'a' is a class"):
        check_steps([("a", BaseEstimator)])


def test_a_budget_is_epsilon_or_rho():
    assert budget_of(1.0, 1e-6, None).epsilon == 1.0
    for left_out in (None, 1.0, 1, np.float32(1.0)):  # 1.0 is what signatures show
        budget = budget_of(left_out, 1e-6, 0.5)
        assert (budget.rho, budget.epsilon) == (0.5, None)
    both = ((2.0, 1e-6, 0.5), (0.999, 1e-6, 0.5), ("1", 1e-6, 0.5), (True, 1e-6, 0.5))
    small = ((1.0, 0.0, None), (1e-30, 1e-6, None), (None, 1e-6, 1e-9))
    for options in (*both, *small, (None, 1e-6, None)):
        with pytest.raises(ValueError, match="epsilon|delta|rho"):
            budget_of(*options)
    with pytest.raises(ValueError, match=r"^delta must lie in .*, 1\), got 1.0$"):  # zero is none
        budget_of(1.0, 1, None)


def test_a_fraction_of_the_points_lies_between_zero_and_one():
    assert check_n_points(Fraction(1, 4)) == 0.25
    with pytest.raises(ValueError, match="n_points"):
        check_n_points(Fraction(10**400, 3))


def test_shares_are_in_proportion_and_add_up_to_one():
    assert shares_of_one({"a": 1, "b": 3}, "own") == {"a": 0.25, "b": 0.75}
    huge = shares_of_one({"a": 1e308, "b": 1e308, "c": 1e308}, "own")  # their sum overflows
    assert sum(huge.values()) == pytest.approx(1.0) and min(huge.values()) > 0.3
    for bad, error in (
        ({"a": "1"}, TypeError),
        ({"a": True}, TypeError),
        ({"a": 0.0}, ValueError),
        ({"a": np.inf}, ValueError),
        ({"a": np.nan}, ValueError),
        ({"a": 1.0, "b": 1e-10}, ValueError),
    ):
        with pytest.raises(error, match="^own must"):
            shares_of_one(bad, "own")
