"""The same table from ten sources gives the same bits, and a stream is read in little memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sklearn_dp import (
    DPBySegment,
    DPKMeans,
    DPStandardScaler,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
)
from sklearn_dp._partitions import _pieces
from sklearn_dp._rows import table as kept_pieces

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).normal(size=(3000, 3)) + (np.arange(3000) % 2)[:, None] * 3
FRAME = pd.DataFrame(X, columns=NAMES)
TABLE = pa.Table.from_pandas(FRAME)


class Stream:
    """What has nothing but an Arrow C stream, as a query of a database."""

    def __init__(self, table, batch=700):
        self._table, self._batch = table, batch

    def __arrow_c_stream__(self, requested_schema=None):
        batches = self._table.to_batches(max_chunksize=self._batch)
        reader = pa.RecordBatchReader.from_batches(self._table.schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def of_dataset(folder):
    from pyarrow import dataset, parquet

    parquet.write_table(TABLE, folder / "table.parquet", row_group_size=1000)
    return dataset.dataset(folder / "table.parquet")


def of_narwhals(native, lazy=False):
    narwhals = pytest.importorskip("narwhals")
    found = narwhals.from_native(native)
    return found.lazy() if lazy else found


def of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("given", TABLE)
    return connection.sql("SELECT a, b, c FROM given")


SOURCES = {
    "NumPy": lambda _: X,
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.DataFrame(TABLE),
    "LazyFrame": lambda _: pl.DataFrame(TABLE).lazy(),
    "pyarrow table": lambda _: TABLE,
    "pyarrow dataset": of_dataset,
    "record batch reader": lambda _: TABLE.to_reader(max_chunksize=512),
    "DuckDB": lambda _: of_duckdb(),
    "narwhals": lambda _: of_narwhals(pl.DataFrame(TABLE)),
    "narwhals, lazy": lambda _: of_narwhals(pl.DataFrame(TABLE), lazy=True),
    "any stream": lambda _: Stream(TABLE),
}


def bits(model):
    return {
        name: value.tobytes()
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }


@pytest.mark.quick("FriendlyMean-*", "*-record batch reader")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "model",
    [
        DPKMeans(2, bounds=9.0, random_state=0),
        FriendlyMean(bounds=9.0, random_state=0),
        DPStandardScaler(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_source_gives_the_same_bits(source, model, tmp_path):
    want = bits(model.fit(X))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-5))
    found = type(model)(**{**model.get_params(), "ledger": ledger}).fit(SOURCES[source](tmp_path))
    assert len(want) > 1 and bits(found) == want and len(ledger.entries) == 1
    if source != "NumPy":
        assert found.feature_names_in_.tolist() == NAMES


def test_what_is_kept_of_each_row_goes_to_a_file(monkeypatch):
    """With the same bits, the labels among them, which are the user's to write into."""
    n_rows, found, peaks = 60_000, [], []
    table = pa.table({name: np.resize(FRAME[name], n_rows) for name in NAMES})
    for most, size in ((2**26, 2**28), (0, 50_000)):
        monkeypatch.setattr(kept_pieces, "_KEPT_BYTES", min(most, 2**18))
        monkeypatch.setattr(kept_pieces, "_BESIDE_BYTES", most)
        monkeypatch.setattr(kept_pieces, "_FILE_BYTES", size)  # of which several are needed
        monkeypatch.setattr(_pieces, "_BATCH_ENTRIES", 6000)
        tracemalloc.start()
        found.append(DPKMeans(2, bounds=9.0, random_state=0).fit(Stream(table)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert bits(found[0]) == bits(found[1]) and np.array_equal(found[0].labels_, found[1].labels_)
    assert peaks[0] - peaks[1] > 5 * 4 * n_rows  # five integers of each row
    found[1].labels_[0] = 7


def test_wrong_streams_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-5))
    wrong = [
        (TABLE.append_column("day", pa.array([0] * 3000, pa.date32())), "column 'day'"),
        (TABLE.append_column("text", pa.array(["x"] * 3000)), "column 'text'"),
        (TABLE.append_column("a", TABLE["a"]), "names of columns must differ"),
    ]
    for table, words in wrong:
        with pytest.raises(ValueError, match=words):
            FriendlyMean(bounds=9.0, ledger=ledger).fit(Stream(table))
    with pytest.raises(TypeError, match="in memory"):
        DPBySegment(values=["x"], ledger=ledger).fit(Stream(TABLE), by=["x"] * 3000)
    with pytest.raises(ValueError, match="feature names should match"):
        model = DPKMeans(2, bounds=9.0).fit(TABLE)
        model.predict(Stream(TABLE.rename_columns(["a", "b", "x"])))
    assert not ledger.entries


def test_a_stream_that_fails_tells_nothing_of_its_rows():
    secret = 7319.4825

    def batches():
        yield from TABLE.to_batches(max_chunksize=1000)
        raise ValueError(f"broken at {secret}")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(Exception) as told:
        FriendlyMean(bounds=9.0).fit(reader)
    error = told.value
    while error is not None:
        assert str(secret) not in str(error)
        error = error.__cause__ or error.__context__
