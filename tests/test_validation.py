"""What users may give: limits of parameters, and errors that quote no data.

`test_bad_input.py` tries these on every estimator.
"""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_dp._validation import (
    _without_data,
    budget_of,
    check_integer,
    check_real,
    check_steps,
    check_table,
    check_weights,
    entries,
    names_of,
    validate_quietly,
)
from sklearn_dp.cluster._dp_one_cluster import check_n_points

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


def test_entries_of_lists_stay_what_they_are():
    assert entries([1, "a", None, [2]]).tolist() == [1, "a", None, [2]]
    assert entries((2**53 + 1, 0.5)).tolist() == [2**53 + 1, 0.5]
    assert entries(np.arange(3)).dtype == np.arange(3).dtype and entries([]).shape == (0,)


@pytest.mark.parametrize(
    "weights",
    [
        10**400,
        [1, 10**400],
        np.ones(2, "M8[s]"),
        np.ones(2, "m8[s]"),
        "a",
        True,
        {},
        None,
        [1, "x"],
    ],
    ids=lambda value: type(value).__name__,
)
def test_weights_that_are_none_are_named(weights):
    with pytest.raises(ValueError, match="^sample_weight must be"):
        check_weights(weights, 2)


def test_names_are_a_collection_of_texts():
    for names in ((), ["a"], {"a"}, np.array(["a"]), dict.fromkeys("a").keys()):
        assert set(names_of(names, "own")) <= {"a"}
    for bad in (None, 3, "a", b"a", {"a": 1}, [1], [None], iter("a"), np.array("a"), np.eye(2)):
        with pytest.raises(TypeError, match="^own must be a collection of names"):
            names_of(bad, "own")


def test_steps_are_named_instances():
    check_steps([("a", None), ("b", "passthrough"), ("c", BaseEstimator(), [0])])
    for bad in (None, "ab", [1], [("a",)], [(1, None)], [("a", 1), ("a", 2)], [("a__b", 1)]):
        with pytest.raises((TypeError, ValueError), match="^estimator: "):
            check_steps(bad)
    with pytest.raises(TypeError, match="step 'a' is a class"):
        check_steps([("a", BaseEstimator)])


def test_a_budget_is_epsilon_or_rho():
    assert budget_of(None, 1e-6, None).epsilon == 1.0
    assert budget_of(None, 1e-6, 0.5).rho == 0.5
    for options in ((1.0, 1e-6, 0.5), (1.0, 0.0, None), (1e-30, 1e-6, None), (None, 1e-6, 1e-9)):
        with pytest.raises(ValueError, match="epsilon|delta|rho"):
            budget_of(*options)


@pytest.mark.parametrize("entry", [f"{SECRET}m", 1j, 10**400, object(), [SECRET], np.nan])
def test_errors_name_the_table_and_quote_no_entry(entry):
    table = np.full((4, 2), SECRET, dtype=object)
    table[1, 1] = entry
    calls = {
        "X": lambda: validate_quietly(BaseEstimator(), table, dtype=np.float64),
        "centers": lambda: check_table(table, "centers", dtype=np.float64),
    }
    for name, call in calls.items():
        with pytest.raises((TypeError, ValueError), match=name) as caught:
            call()
        error = caught.value
        assert "7319" not in str(error) and error.__context__ is None and error.__cause__ is None


@pytest.mark.parametrize("weight", [10**400, Fraction(10**400), -1, float("nan"), [1.0, 10**400]])
def test_weights_that_are_no_finite_numbers_are_refused_by_name(weight):
    """Also numbers beyond the floats, which Python cannot convert."""
    with pytest.raises(ValueError, match="sample_weight"):
        check_weights(weight, 2)


def test_a_fraction_of_the_points_lies_between_zero_and_one():
    assert check_n_points(Fraction(1, 4)) == 0.25
    with pytest.raises(ValueError, match="n_points"):
        check_n_points(Fraction(10**400, 3))


@pytest.mark.parametrize(
    ("message", "reworded"),
    [
        ("Found array with dim 3, while dim <= 2 is required.", "X: Found array with dim 3"),
        ("Found array with 0 feature(s) (shape=(77, 0))", "X: Found array with 0 feature"),
        ("Input X contains NaN.", "Input X contains NaN."),
        ("Feature names are only supported if ...", "X: Feature names are only supported"),
        ("Expected unique column names, got:\n- 'a'", "X: the names of columns must differ."),
        ("something else, 77", "X must be a dense"),
    ],
)
def test_messages_about_rows_name_them(message, reworded):
    told = _without_data(message, "X")
    assert told.startswith(reworded) and "77" not in told
