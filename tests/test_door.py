"""The door for tables: every container, one odd row in each, and errors that quote no data.

`test_bad_input.py` tries tables on every estimator, `test_public_mistakes.py` what is not charged,
and `test_one_row_more.py` what a row more changes.
"""

import sys
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from table_tools import DATES, FRAME, NO_TABLES, OTHERS, TABLE, TABLES, TEXTS

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger, privatize
from sklearn_dp._columns import check_categories, check_numbers
from sklearn_dp._door import check_weights, column, numbers, read_table, rows_of, schema
from sklearn_dp._door_entries import columns, without_column
from sklearn_dp._privacy._units import code_groups
from sklearn_dp.ensemble._aggregation import target_column

SECRET = 7319.4825


@pytest.mark.parametrize("name", TABLES)
def test_every_container_holds_the_same_numbers(name):
    given = schema(TABLES[name])
    check_numbers(given)
    assert given.n_features == 2 and np.array_equal(numbers(TABLES[name], given), TABLE)
    assert np.array_equal(rows_of(TABLES[name], given), TABLE)
    found = columns(TABLES[name], given)
    assert [list(map(float, each)) for each in found] == TABLE.T.tolist()
    rest, key = without_column(TABLES[name], 1)
    assert np.array_equal(read_table(rest, "X"), TABLE[:, :1])
    assert column(key, "by").astype(float).tolist() == TABLE[:, 1].tolist()


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_refused_by_its_type(name):
    with pytest.raises((TypeError, ValueError), match="^(Expected 2D array: )?X[: ]"):
        schema(NO_TABLES[name])


@pytest.mark.parametrize("name", [*OTHERS, *TEXTS])
def test_columns_of_other_types_are_refused_by_type(name):
    """No date is a number, in no container; texts are categories, and nothing else here is one."""
    given = schema((OTHERS | TEXTS)[name])
    with pytest.raises((TypeError, ValueError), match="X must be (numeric|real)|X is sparse"):
        check_numbers(given)
    if name in TEXTS:
        check_categories(given)
        return
    with pytest.raises((TypeError, ValueError), match="turn them into (days .*)?text|X is sparse"):
        check_categories(given)


def test_masked_entries_are_missing():
    table = np.ma.masked_array(TABLE, mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        numbers(table, schema(table))
    assert columns(table, schema(table))[1] == [2.0, None, 2.0**60]


SPAN = np.timedelta64(5, "ns")


@pytest.mark.parametrize(
    "value", [DATES[0], DATES[0].date(), np.datetime64(5, "s"), SPAN, 1j, b"1"]
)
def test_what_is_no_number_in_a_column_of_objects_is_refused(value):
    for table in (np.array([[value], [1.0]], dtype=object), [[value], [1.0]],
                  pd.DataFrame({"a": [value, 1.0]}, dtype=object)):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="X must be numeric"):
            numbers(table, schema(table))


@pytest.mark.parametrize("entry", [f"{SECRET}m", 1j, 10**400, object(), [SECRET], np.nan])
def test_errors_name_the_table_and_quote_no_entry(entry):
    table = np.full((4, 2), SECRET, dtype=object)
    table[1, 1] = entry
    for held in (table, table.tolist(), pd.DataFrame(table)):
        for name in ("X", "centers"):
            with pytest.raises((TypeError, ValueError), match=name) as caught:
                read_table(held, name)
            error = caught.value
            assert "7319" not in str(error)
            assert error.__context__ is None and error.__cause__ is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr"])
def test_sparse_entries_that_are_stored_twice_add_up_in_every_format(format, dtype):
    """In the order in which they are stored; where the sum is infinite, it is so in all of them."""
    rng = np.random.default_rng(0)
    values = (rng.normal(size=400) * 10.0 ** rng.integers(-6, 7, size=400)).astype(dtype)
    places = rng.integers(2, size=400), rng.integers(2, size=400)
    coo = sp.coo_array((values, places), shape=(2, 2))

    def stored(values):
        if format == "coo":
            return sp.coo_array((values, places), shape=(2, 2))
        order = np.argsort(places[format == "csc"], kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(places[format == "csc"], minlength=2)))
        inner = places[format != "csc"][order]
        if format == "bsr":
            return sp.bsr_array((values[order][:, None, None], inner, ends), shape=(2, 2))
        kind = sp.csc_array if format == "csc" else sp.csr_array
        return kind((values[order], inner, ends), shape=(2, 2))

    table = stored(values)
    found = numbers(table, schema(table))
    assert found.has_canonical_format and found.dtype == dtype
    assert found.toarray().tobytes() == coo.toarray().tobytes()
    big = stored(np.full(400, np.finfo(dtype).max))
    with pytest.raises(ValueError, match="infinity"):
        numbers(big, schema(big))
    with pytest.raises(ValueError, match="infinity"):
        DPKMeans(1).fit(big)


def test_entries_of_lists_stay_what_they_are():
    assert column([1, "a", None, [2]], "y").tolist() == [1, "a", None, [2]]
    assert column(deque([2**53 + 1, 0.5]), "y").tolist() == [2**53 + 1, 0.5]
    assert column(np.arange(3), "y").dtype == np.arange(3).dtype
    assert column([], "y").shape == (0,)
    assert column(FRAME[["a"]], "y").tolist() == FRAME["a"].tolist()
    assert column(TABLE[:, :1], "y").tolist() == FRAME["a"].tolist()


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
    for typed in (table.astype({"b": "Int64", "a": "boolean"}), pl.DataFrame(table)):
        DPKMeans(2, bounds=3.0, random_state=0).fit(typed)
    table.loc[0, "age"] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        DPKMeans(2).fit(table)


def test_one_column_is_told_how_to_become_a_table():
    for line, words in (
        (np.arange(9.0), r"X.reshape\(-1, 1\)"),
        (list(range(9)), r"X.reshape\(-1, 1\)"),
        (pd.Series(range(9)), r"X.to_frame\(\)"),
    ):
        with pytest.raises(ValueError, match=words):
            DPKMeans(2).fit(line)


class Wider:
    """What is read has a column more than what its shape says, which plans believe."""

    shape = (3, 2)

    def __array__(self, dtype=None, copy=None):
        return np.zeros((3, 3))


def test_rows_are_as_wide_as_their_shape_states():
    with pytest.raises(ValueError, match="^X must have the number of columns"):
        DPKMeans(2).fit(Wider())


class Unsized:
    """A row whose code ends the fit."""

    __array__ = shape = property(lambda self: sys.exit("SECRET"))

    def __len__(self):
        sys.exit("SECRET")


@pytest.mark.parametrize("odd", [1.0, None, "ab", [], [1.0], [1.0, 2.0, 3.0], Unsized()])
@pytest.mark.parametrize("place", [0, 100, 200])
def test_an_odd_row_of_a_list_is_told_in_one_way_wherever_it_stands(odd, place):
    """The first one decided which error there was, and whether anything was charged: also where
    bounds are of a number of columns, and in a pipeline, which may get texts."""
    X = np.random.default_rng(0).normal(size=(200, 2)).tolist()
    X.insert(place, odd)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5))
    bounded = DPKMeans(2, bounds=([-9.0] * 2, [9.0] * 2), ledger=ledger)
    steps = privatize(make_pipeline(StandardScaler(), KMeans(2)), epsilon=1.0, ledger=ledger)
    for number, model in enumerate((DPKMeans(2, ledger=ledger), bounded, steps), 1):
        with pytest.raises(ValueError, match="its rows differ in length, or are not rows"):
            model.fit(X)
        assert len(ledger.entries) == number
