"""What each part of a table has to be, and errors that tell its number and nothing else of it."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from partition_tools import SECRET, quotes_nothing
from scipy.sparse import csr_array
from sklearn.utils import check_array

from sklearn_dp._partitions._sources import MOST_ROWS, CheckedSource, Columns, Reason, columns_of
from sklearn_dp.exceptions import PartError

ROWS = np.full((4, 2), SECRET)
FRAME = pd.DataFrame(ROWS, columns=["a", "b"])
ARRAY = Columns(2, None, np.dtype(np.float64))
NAMED = Columns(2, ("a", "b"), np.dtype(np.float64))


def with_entry(value):
    rows = ROWS.astype(object)
    rows[2, 1] = value
    return rows


BAD = {
    "another width": (np.full((4, 3), SECRET), "number of columns"),
    "one dimension": (ROWS[:, 0], "2D"),
    "NaN": (with_entry(np.nan).astype(float), "NaN"),
    "infinity": (with_entry(np.inf).astype(float), "infinity"),
    "text": (with_entry(f"{SECRET}m"), "numeric"),
    "an object": (with_entry([SECRET]), "X"),
    "complex": (ROWS + 1j, "[Cc]omplex"),
    "sparse": (csr_array(ROWS), "sparse"),
    "column names": (FRAME.rename(columns={"a": "c"}), "column names"),
    "column names of polars": (pl.DataFrame(ROWS, schema=["a", "c"]), "column names"),
    "None": (None, "2D"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_part_is_told_by_its_number(name):
    piece, words = BAD[name]
    with pytest.raises(PartError, match=f"^X, part 5: .*{words}") as caught:
        CheckedSource(5, NAMED, lambda: piece).read()
    assert quotes_nothing(caught.value)


@pytest.mark.parametrize("error", [KeyError, MemoryError, OSError, ValueError, RecursionError])
def test_what_a_reader_raises_is_told_by_its_type(error):
    def reader():
        raise error(f"{SECRET}")

    with pytest.raises(PartError, match=rf"^X, part 0: .*\({error.__name__}\)\.$") as caught:
        CheckedSource(0, ARRAY, reader).read()
    assert quotes_nothing(caught.value)


def test_groups_and_weights_are_named():
    def reader():
        raise KeyError(SECRET)

    source = CheckedSource(1, ARRAY, lambda: ROWS, reader, reader)
    for name, read in (("groups", source.read_groups), ("sample_weight", source.read_weights)):
        with pytest.raises(PartError, match=rf"^{name}, part 1: .*\(KeyError\)") as caught:
            read()
        assert quotes_nothing(caught.value)
    plain = CheckedSource(1, ARRAY, lambda: ROWS)
    assert plain.read_groups() is None and plain.read_weights() is None


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME.astype("Float64"),
        FRAME.astype("Float32"),
        FRAME.astype("float32"),
        FRAME.astype(int).astype("Int64"),
        FRAME.astype(int).astype("category"),
        pl.DataFrame(FRAME),
        ROWS.astype(np.float32),
        ROWS.astype(int),
        ROWS > 0,
        with_entry(1),
    ],
    ids=lambda table: f"{type(table).__name__}{getattr(table, 'dtypes', [''])[:1]}",
)
def test_parts_are_taken_as_tables_in_memory(table):
    expected = check_array(table, dtype=[np.float64, np.float32])
    columns = columns_of(table)
    assert columns.dtype == expected.dtype and columns.n_features == 2
    rows = columns.check(table)
    assert rows.dtype == expected.dtype and np.array_equal(rows, expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_a_part_are_taken_by_name(make):
    part = {"b": [3.0, 4.0], "a": [1.0, 2.0]}
    assert NAMED.check(make(part)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(Reason, match="its columns have names, and those of the first part have no"):
        ARRAY.check(make(part))  # nothing tells which is which


def test_types_of_parts_follow_that_of_the_table():
    single = Columns(2, None, np.dtype(np.float32))
    assert ARRAY.check(ROWS.astype(np.float32)).dtype == np.float64
    with pytest.raises(Reason, match="contains float64 where X contains float32"):
        single.check(ROWS)
    # A part without rows has no numbers that could be changed.
    assert single.check(ROWS[:0]).dtype == np.float32


def test_rows_of_a_part_are_limited(monkeypatch):
    monkeypatch.setattr("sklearn_dp._partitions._sources.MOST_ROWS", 3)
    assert len(ARRAY.check(ROWS[:3])) == 3
    with pytest.raises(Reason, match="more than 3 rows"):
        ARRAY.check(ROWS)
    # 2**27 terms of at most 2**36, the largest that a pass adds up, are below 2**63.
    assert MOST_ROWS * 2**36 <= 2**63


def test_far_entries_are_moved_to_the_largest():
    assert np.abs(ARRAY.check(np.array([[1e300, -1e300]]))).max() == 1e150


def test_a_counted_source_notices_what_changes():
    rows, groups, weights = [ROWS, ROWS[:3]], [[1, 2, 3, 4], [1, 2, 4, 3]], [[1.0] * 4, [1, 2, 3]]
    readers = [partial(values.pop, 0) for values in (rows, groups, weights)]
    source = CheckedSource(2, ARRAY, *readers).counted()
    assert source.n_rows() == 4 and len(rows) == 1
    with pytest.raises(PartError, match="^X, part 2: .* in every pass"):
        source.read()
    with pytest.raises(PartError, match="^groups, part 2: its values have changed"):
        source.read_groups()
    with pytest.raises(PartError, match="^sample_weight, part 2: .* in every pass"):
        source.read_weights()


@pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, 3, 4, 5]], ids=["fewer", "more"])
def test_groups_and_weights_of_another_length_are_refused_when_rows_are_counted(values):
    with pytest.raises(PartError, match="^groups, part 2: it must have one entry for each row"):
        CheckedSource(2, ARRAY, lambda: ROWS, lambda: values).counted()
    with pytest.raises(PartError, match="^y, part 2: it must have one entry for each row"):
        CheckedSource(2, ARRAY, lambda: ROWS, None, lambda: values).counted("y")


def test_a_part_has_to_be_what_it_was_in_the_first_pass():
    """Also if its state has been made again, with digests of other values."""
    read = lambda values: lambda: values  # noqa: E731
    first = CheckedSource(2, ARRAY, read(ROWS), read([1, 2, 3, 4]), read([1.0] * 4)).counted()
    first.check_digests(first.digests)
    for number, name in enumerate(("X", "groups", "sample_weight")):
        given = [ROWS, [1, 2, 3, 4], [1.0] * 4]
        given[number] = [ROWS + 1, [1, 2, 4, 3], [1.0, 1.0, 1.0, 2.0]][number]
        again = CheckedSource(2, ARRAY, *map(read, given)).counted()
        with pytest.raises(PartError, match=f"^{name}, part 2: its .* have changed") as caught:
            again.check_digests(first.digests)
        assert quotes_nothing(caught.value)
        assert not any(str(one) in str(caught.value) for one in (*first.digests, *again.digests))


class Row(list):
    """A row that knows its width, and tells no entry."""

    def __iter__(self):
        raise AssertionError("read")

    __array__ = __iter__


@pytest.mark.parametrize("kind", [list, tuple])
def test_no_value_of_a_list_of_rows_is_asked_for_its_columns(kind):
    """It may hold texts, or rows of several lengths: a fit that is paid for tells."""
    for rows in (kind([[1.0, 2.0]]), kind([[1, 2], [3.0]]), kind([["a", "b"]]), kind([[None] * 2])):
        assert columns_of(rows) == ARRAY
    assert columns_of(kind([Row([1, 2]), "ab"])) == ARRAY
    for rows in (kind([[1, 2]]), kind([np.ones(2, np.float32)] * 3)):
        assert columns_of(rows).dtype == check_array(rows, dtype=[np.float64, np.float32]).dtype
    for rows in (kind([1.0, 2.0]), kind(["ab", "cd"]), kind([{1: 2, 3: 4}])):
        with pytest.raises(Reason, match="X|2D"):
            columns_of(rows)


@pytest.mark.parametrize("change", ["order", "value", "sign of zero"])
def test_a_counted_source_notices_other_rows(change):
    """A shuffle without an order, for example, comes out in another one when it is read again."""
    first = np.array([[0.0, 1.0], [2.0, 3.0], [SECRET, 5.0]])
    other = {
        "order": first[[1, 0, 2]],
        "value": np.nextafter(first, 9e9),
        "sign of zero": first * [[-1.0, 1.0]],
    }[change]
    rows = [first, first.copy(order="F"), other]
    source = CheckedSource(4, ARRAY, lambda: rows.pop(0)).counted()
    assert np.array_equal(source.read(), first)
    with pytest.raises(PartError, match="^X, part 4: its rows .* reordered") as caught:
        source.read()
    assert quotes_nothing(caught.value)


@pytest.mark.parametrize("columns", [ARRAY, NAMED])
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_part_that_is_a_list_of_two_rows_is_no_pair_of_ends(n, kind, columns):
    """By rows that are lists, arrays, or Series that name columns: what ends of bounds may be."""
    rows = np.arange(2.0 * n).reshape(n, 2)
    for row in (list, np.asarray, lambda row: pd.Series(row, index=["b", "a"])):
        assert columns.check(kind(map(row, rows))).tolist() == rows.tolist()
