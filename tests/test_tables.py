"""Tables, weights and targets of users: errors that quote no data.

`test_bad_input.py` tries these on every estimator.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from sklearn_dp import DPKMeans
from sklearn_dp._privacy._groups import code_groups
from sklearn_dp._tables import (
    _without_data,
    check_table,
    check_weights,
    entries,
    validate_quietly,
)
from sklearn_dp.ensemble._output import target_column

SECRET = 7319.4825


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


class Quoting:
    """A column of some other library, whose errors quote what it holds."""

    dtype, shape = np.dtype(float), (2,)

    def __array__(self, *arguments, **options):
        raise KeyError(SECRET)

    def __len__(self):
        return 2


@pytest.mark.parametrize(
    "call",
    [
        lambda column: check_weights(column, 2),
        lambda column: target_column(column, 2),
        lambda column: target_column(column, 2, np.arange(2)),
        code_groups,
    ],
)
def test_errors_of_whatever_kind_quote_nothing(call):
    with pytest.raises(ValueError, match=r"sample_weight|\by\b|groups") as caught:
        call(Quoting())
    error = caught.value
    assert "7319" not in str(error) and error.__context__ is None and error.__cause__ is None


@pytest.mark.parametrize("weight", [10**400, Fraction(10**400), -1, float("nan"), [1.0, 10**400]])
def test_weights_that_are_no_finite_numbers_are_refused_by_name(weight):
    """Also numbers beyond the floats, which Python cannot convert."""
    with pytest.raises(ValueError, match="sample_weight"):
        check_weights(weight, 2)


@pytest.mark.parametrize(
    ("message", "reworded"),
    [
        ("Found array with dim 3, while dim <= 2 is required.", "X: Found array with dim 3"),
        ("Found array with 0 feature(s) (shape=(77, 0))", "X: Found array with 0 feature"),
        (
            "Expected 2D array, got 1D array instead:\narray=[77.]",
            "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data: "
            "X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one row.",
        ),
        ("Input X contains NaN.", "Input X contains NaN."),
        ("Feature names are only supported if ...", "X: Feature names are only supported"),
        ("Expected unique column names, got:\n- 'a'", "X: the names of columns must differ."),
        ("something else, 77", "X must be a dense"),
    ],
)
def test_messages_about_rows_name_them(message, reworded):
    told = _without_data(message, "X")
    assert told.startswith(reworded) and "77" not in told


def test_missing_values_get_advice_that_is_private():
    """Scikit-learn's own words advise an imputer, which learns from the rows."""
    with pytest.raises(ValueError, match="Input X contains NaN. Drop rows") as told:
        DPKMeans(2).fit(np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert "sklearn.impute" not in str(told.value) and "HistGradient" not in str(told.value)


def ages(**columns):
    return {"age": [1.0, 2.0, 3.0], **columns}


@pytest.mark.parametrize(
    "table, words",
    [
        (pd.DataFrame(ages(pid=["p7319", "b", "c"])), "column 'pid' is not"),
        (
            pd.DataFrame(ages(a=["7319", "b", "c"], b=list("abc"))),
            r"column 'a' \(and 1 more\) is not",
        ),
        (pd.DataFrame(ages(day=np.full(3, np.datetime64("7319", "s")))), "column 'day' is not"),
        (pd.DataFrame(ages(kind=pd.Categorical(["7319", "b", "b"]))), "column 'kind' is not"),
        (pl.DataFrame(ages(pid=["p7319", "b", "c"])), "column 'pid' is not"),
    ],
    ids=["text", "two", "dates", "categories", "polars"],
)
@pytest.mark.parametrize("bounds", [None, ([0.0], [99.0])])
def test_columns_that_are_no_numbers_are_named(table, words, bounds):
    """Also where bounds are those of the others: not the bounds are what is wrong."""
    with pytest.raises((TypeError, ValueError), match=f"^X must be numeric: {words}. Drop") as told:
        DPKMeans(2, bounds=bounds).fit(table)
    assert "7319" not in str(told.value)


def test_bounds_of_too_few_columns_are_blamed_where_all_are_numbers():
    table, bounds = pd.DataFrame(ages(a=[True, False, True], b=[1, 2, 3])), ([0, 0], [99, 9])
    with pytest.raises(ValueError, match="^bounds: low and high must be numbers or arrays of 3"):
        DPKMeans(2, bounds=bounds).fit(table)


def test_a_lazy_frame_among_tables_is_not_asked_for_its_columns(recwarn):
    """Polars warns whoever asks, as scikit-learn before 1.8 does. By itself it is a table in parts;
    of a list each is in memory."""
    with pytest.raises(ValueError, match="^X, part 0"):
        DPKMeans(2).fit_partitions([pl.DataFrame(ages()).lazy()])
    assert not [each for each in recwarn if "sklearn_dp" in each.filename]


def test_types_of_numbers_are_not_blamed_for_another_error():
    table = pd.DataFrame(ages(a=[True, False, True], b=[1, 2, 3]))
    for numbers in (table.astype({"b": "Int64", "a": "boolean"}), pl.DataFrame(table)):
        DPKMeans(2, bounds=3.0, random_state=0).fit(numbers)
    table.loc[0, "age"] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        DPKMeans(2).fit(table)


def test_one_column_is_told_how_to_become_a_table():
    for column, words in (
        (np.arange(9.0), r"X.reshape\(-1, 1\)"),
        (list(range(9)), r"X.reshape\(-1, 1\)"),
        (pd.Series(range(9)), r"X.to_frame\(\)"),
    ):
        with pytest.raises(ValueError, match=words):
            DPKMeans(2).fit(column)
