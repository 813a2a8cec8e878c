"""Tables on this machine in parts: files, streams, lists."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from partition_tools import (
    EXPECTED,
    LABELS,
    ROWS,
    SECRET,
    THIRD_SIGNS,
    exchanges,
    passes,
    pieces,
    quotes_nothing,
    shuffles,
    table_of,
)

from sklearn_dp import DPOneCluster
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._partitions import engine_of, engine_of_parts
from sklearn_dp._rows import table as kept_pieces
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyLedger

NAMES = ["a", "b", "c"]
LISTS = {
    "arrays": pieces,
    "functions": lambda: [lambda x=x: x for x in pieces()],
    "frames": lambda: [pd.DataFrame(x, columns=NAMES) for x in pieces()],
    "polars": lambda: [pl.DataFrame(x, schema=NAMES) for x in pieces()],
}


def check(found):
    totals, labels = passes(found)
    assert totals == EXPECTED and np.array_equal(labels, LABELS)
    signs = found.rowwise(lambda rows: (rows[:, 0] > 0).astype(np.int32), np.empty(0, np.int32))
    assert np.array_equal(signs, LABELS) and signs.dtype == np.int32


@pytest.mark.parametrize("name", LISTS)
def test_rows_of_several_pieces_come_together(name):
    """A task that fails tells its type: not a row, nor how many of them did not fit the memory."""
    assert exchanges(engine_of(LISTS[name]()))


@pytest.mark.parametrize("most", [2**28, 3000])
@pytest.mark.parametrize("name", LISTS)
def test_rows_come_to_new_parts(name, most, monkeypatch):
    """In memory, or in a file where there are many."""
    monkeypatch.setattr(kept_pieces, "_KEPT_BYTES", most)
    assert np.array_equal(shuffles(engine_of(LISTS[name]())), THIRD_SIGNS)


@pytest.mark.parametrize("number", [0, 1])
def test_no_value_of_a_part_is_looked_at_before_the_charge(number):
    """Whether the first part holds a number everywhere is told by a fit that is paid for."""
    parts = [ROWS.astype(object), ROWS.astype(object)]
    parts[number][5, 1] = "none"
    for fit in (DPOneCluster.fit, DPOneCluster.fit_partitions):
        ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5))
        before = ledger.remaining
        with pytest.raises(PartError, match=f"^X, part {number}: X must be numeric"):
            fit(DPOneCluster(epsilon=1.0, ledger=ledger), parts)
        assert ledger.remaining != before


def test_a_list_is_not_read_before_the_first_pass():
    calls = []

    def reader():
        calls.append(1)
        return ROWS

    found = engine_of([lambda: ROWS[:0], reader, reader])
    assert found.engine.n_parts == 3 and not calls
    assert table_of(found).sums(lambda part: (part, (part.units.n_rows,))) == (400,)


@pytest.mark.parametrize("most", [2**28, 3000])
def test_a_stream_is_read_once_into_memory_or_a_file(monkeypatch, most):
    monkeypatch.setattr(kept_pieces, "_KEPT_BYTES", most)
    room = np.empty((200, 3))

    def stream():
        for piece in pieces():
            room[: len(piece)] = piece  # the same array again and again
            yield room[: len(piece)]

    found = engine_of_parts(stream())
    assert found.engine.n_parts == 5
    totals, labels = passes(found)
    assert totals == EXPECTED and np.array_equal(labels, LABELS)


def failing():
    yield ROWS
    raise OSError(SECRET)


def failing_at_once():
    raise OSError(SECRET)
    yield ROWS


@pytest.mark.parametrize("stream", [failing, failing_at_once])
def test_a_stream_that_breaks_never_counts_as_ended(stream):
    with pytest.raises(PartError, match=r"\(OSError\)") as caught:
        engine_of_parts(stream()).engine  # noqa: B018
    assert quotes_nothing(caught.value)


OTHERS = {
    "scalar": (3.0, "not float"),
    "array": (np.arange(200), "not ndarray"),
    "text": ("groups", "not str"),
    "generator": ((x for x in pieces()), "not generator"),
    "numbers": ([1, 2, 3, 4, 5], "it contains int"),
    "texts": (["a"] * 5, "it contains str"),
    "tables": ([np.ones((3, 1))] * 5, "it contains ndarray"),
    "classes": ([np.ndarray] * 5, "it contains type"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("stream", [False, True])
def test_other_groups_and_weights_are_refused_by_name_before_anything_is_read(name, stream):
    """So before the charge: it comes after these."""
    values, words = OTHERS[name]
    for place in (1, 2):
        given = [iter(pieces()) if stream else pieces(), None, None]
        given[place] = values
        parameter = ("groups", "sample_weight")[place - 1]
        with pytest.raises(TypeError, match=f"^{parameter} must be a list .*{words}"):
            (engine_of_parts if stream else engine_of)(*given)


@pytest.fixture
def parquet(tmp_path):
    """A folder with two files of several row groups."""
    arrow = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    import pyarrow.parquet

    for i, rows in enumerate(np.split(ROWS, [120])):
        table = arrow.table(dict(zip(NAMES, rows.T, strict=True)))
        pyarrow.parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=50)
    return tmp_path


def test_parquet(parquet):
    import pyarrow.dataset

    for X in (parquet, str(parquet), pyarrow.dataset.dataset(parquet)):
        found = engine_of(X)
        assert found.feature_names.tolist() == NAMES
        assert (found.dtype, found.engine.n_parts) == (np.float64, 5)
        check(found)
    assert engine_of(parquet / "0.parquet").engine.n_parts == 3


OTHER_FILES = {
    "another name": lambda x: {"a": x, "b": x, "d": x},
    "one less": lambda x: {"a": x, "b": x},
    "one more": lambda x: {"a": x, "b": x, "c": x, "d": x},
    "texts": lambda x: {"a": x, "b": x, "c": x.astype(str)},
    "dates": lambda x: {"a": x, "b": x, "c": x.astype("M8[s]")},
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_what_files_declare_is_looked_at_before_the_charge(parquet, name):
    """Texts and dates were taken for numbers, and all else was an error of a fit that was paid."""
    import pyarrow as arrow
    from pyarrow import dataset, feather

    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5))
    other = arrow.table(OTHER_FILES[name](np.arange(9)))
    arrow.parquet.write_table(other, parquet / "2.parquet")
    (folder := parquet / "arrow").mkdir()
    for i, table in enumerate((arrow.parquet.read_table(parquet / "0.parquet"), other)):
        feather.write_feather(table, folder / f"{i}.feather")
    tables = (parquet, dataset.dataset(parquet), dataset.dataset(folder, format="feather"))
    for X, number in zip(tables, (2, 2, 1), strict=True):
        with pytest.raises(PartError, match=f"^X, file {number}: "):
            DPOneCluster(ledger=ledger).fit(X)
    with pytest.raises(PartError, match="filter"):
        DPOneCluster(ledger=ledger).fit(dataset.dataset(parquet).filter(dataset.field("a") > 0))
    assert not ledger.state().charges


def test_files_keep_their_types(tmp_path):
    """Numbers after whole ones were an error, or not, as their values are."""
    arrow = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    from pyarrow import dataset, parquet

    columns = [np.arange(4), np.arange(4) + 0.5, np.float32([1, 2, 3, 4]), np.ones(4, dtype=bool)]
    for i, x in enumerate(columns):
        parquet.write_table(arrow.table({"a": x, "k": x}), tmp_path / f"{i}.parquet")
    of_a = arrow.schema([("a", "int64")])
    for X, width in ((tmp_path, 2), (dataset.dataset(tmp_path, schema=of_a), 1)):
        found = engine_of(X)
        assert (found.n_features, found.dtype) == (width, np.float64)
        rows = found.rowwise(lambda rows: rows[:, 0], np.empty(0))
        assert rows.tolist() == np.concatenate(columns).tolist()


@pytest.mark.parametrize("name", ["nothing.parquet", "there.csv"])
def test_a_path_of_no_table(tmp_path, name):
    (tmp_path / "there.csv").write_text(f"{SECRET}")
    for path in (tmp_path / name, os.fspath(tmp_path / name)):
        with pytest.raises(ValueError, match="path of a Parquet file") as caught:
            engine_of(path)
        assert quotes_nothing(caught.value)
