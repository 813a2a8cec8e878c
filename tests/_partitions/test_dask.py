"""Tables on Dask: on its threads, and (slow) on a cluster of two processes; one is killed."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from partition_tools import (
    EXPECTED,
    LABELS,
    ROWS,
    SECRET,
    THIRD_SIGNS,
    exchanges,
    joined,
    passes,
    pieces,
    quotes_nothing,
    run_example,
    shuffles,
    signs,
    sums,
    table_of,
    thirds,
)

from sklearn_dp import DPKMeans
from sklearn_dp._partitions import engine_of
from sklearn_dp._partitions._dask import OwnTasks
from sklearn_dp._partitions._steps import Step
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array", reason="needs the extra dask")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-5)
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])


def load(number):
    return pieces()[number]


def block(number):
    return ROWS[50 * number[0] : 50 * number[0] + 50]


def bad(number):
    raise KeyError(SECRET)


def nan(number):
    return ROWS * np.nan


def delayed(*functions):
    return [dask.delayed(function)(i) for i, function in enumerate(functions)]


COLLECTIONS = {
    "array": lambda: da.from_array(ROWS, chunks=(60, 2)),
    "unknown rows": lambda: (lambda x: x[x[:, 0] > -1e9])(da.from_array(ROWS, chunks=(60, 3))),
    "own tasks": lambda: da.map_blocks(
        lambda block_info=None: block(block_info[None]["chunk-location"]),
        chunks=((50,) * 4, (3,)),
        dtype=float,
    ),
    "frame": lambda: dd.from_pandas(FRAME, npartitions=3),
    "nullable": lambda: dd.from_pandas(FRAME.astype("Float64"), npartitions=3),
    "delayed": lambda: delayed(*[load] * 5),
    "delayed frames": lambda: [dask.delayed(FRAME[:150]), dask.delayed(FRAME[150:])],
    "one": lambda: [dask.delayed(ROWS)],
}
UNKNOWN = {"unknown rows", "frame", "nullable", "delayed", "delayed frames", "one"}


def positive(rows):
    return (rows[:, 0] > 0).astype(np.int32)


def check(name):
    found = engine_of(COLLECTIONS[name]())
    totals, labels = passes(found)
    assert totals == EXPECTED
    for lazy in (labels, found.rowwise(positive, np.empty(0, np.int32))):
        assert isinstance(lazy, da.Array) and lazy.dtype == np.int32
        assert np.isnan(lazy.shape[0]) == (name in UNKNOWN)
        assert np.array_equal(lazy.compute(), LABELS)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_collection_without_a_cluster(name):
    check(name)


@pytest.mark.parametrize("name", ["array", "delayed"])
def test_rows_come_together_without_a_cluster(name):
    engine = engine_of(COLLECTIONS[name]())
    if name == "delayed":
        assert exchanges(engine)
        new = shuffles(engine_of(COLLECTIONS[name]()))
        assert np.array_equal(new.compute(), THIRD_SIGNS)
    else:
        found = table_of(engine).exchange(thirds, joined, 3, 2)
        assert sorted(np.concatenate([rows for _, rows in found])[:, 0]) == sorted(2 * ROWS[:, 0])


def test_rows_are_not_kept_in_the_state():
    engine = engine_of(COLLECTIONS["delayed"]()).engine
    engine.reduce(opened_and_counted)
    for step in dask.compute(*engine._steps):
        assert isinstance(step, Step) and isinstance(step.state._rows, OwnTasks)


def opened_and_counted(source):
    return source, (source.n_rows(),)


BAD = {
    "unreadable": ((load, bad), r"^X, part 1: .*\(KeyError\)"),
    "the first": ((bad, load), r"^X, part 0: .*\(KeyError\)"),
    "NaN": ((load, nan), "^X, part 1: Input X contains NaN"),
    "texts": ((load, lambda i: np.full((2, 3), f"{SECRET}m")), "^X, part 1: X must be numeric"),
    "another width": ((load, lambda i: ROWS[:, :2]), "^X, part 1: its number of columns differs"),
    "column names": (
        (lambda i: FRAME, lambda i: FRAME.rename(columns={"a": "d"})),
        "^X, part 1: .*names",
    ),
}


def check_bad(name):
    functions, words = BAD[name]
    with pytest.raises(PartError, match=words) as caught:
        passes(engine_of(delayed(*functions)))
    assert quotes_nothing(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_bad_parts(name):
    check_bad(name)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (lambda: da.ones(5, chunks=2), "2D"),
        (lambda: da.ones((5, 2, 2), chunks=2), "2D"),
        (lambda: da.ones((5, 2), chunks=2).astype(complex), "Complex"),
        (lambda: (lambda x: x[:, x[0] > 0])(da.ones((5, 2), chunks=2)), "known number of columns"),
    ],
)
def test_bad_collections(X, words):
    with pytest.raises(ValueError, match=words):
        engine_of(X())


@pytest.mark.parametrize("name", ["array", "frame", "delayed"])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (3.0, "must be a one-dimensional Dask collection.* not float"),
        (np.arange(200), "not ndarray"),
        (da.ones((200, 1), chunks=60), "must be one-dimensional"),
        ([np.ones(3)] * 5, "a list with a delayed object for each part of X: it contains ndarray"),
    ],
)
def test_groups_and_weights_of_other_types_are_refused_before_the_charge(name, values, words):
    X, ledger = COLLECTIONS[name](), PrivacyLedger(BUDGET)
    for given in ("groups", "sample_weight"):
        before = ledger.remaining
        with pytest.raises(TypeError, match=words) as told:
            DPKMeans(2, ledger=ledger).fit(X, **{given: values})
        assert str(told.value).startswith(given) and ledger.remaining == before


def test_a_fit_and_its_answers():
    """Labels are made of the collection when they are asked for, not of what a fit has held."""
    X = COLLECTIONS["delayed"]()
    fitted = DPKMeans(2, random_state=0).fit(X)
    expected = DPKMeans(2, random_state=0).fit(ROWS)
    assert np.array_equal(fitted.cluster_centers_, expected.cluster_centers_)
    for lazy in (fitted.labels_, fitted.predict(X)):
        assert isinstance(lazy, da.Array) and np.array_equal(lazy.compute(), expected.labels_)
        assert not any("cluster-sums" in str(key) for key in dict(lazy.dask))
    assert np.array_equal(fitted.transform(X).compute(), expected.transform(ROWS))
    assert fitted.score(X) == pytest.approx(expected.score(ROWS), rel=1e-12)
    groups = [dask.delayed(np.arange(len(piece)) // 2) for piece in pieces()]
    in_memory = np.concatenate([np.arange(len(piece)) // 2 for piece in pieces()])
    fitted = DPKMeans(2, random_state=0).fit(X, groups=groups)
    expected = DPKMeans(2, random_state=0).fit(ROWS, groups=in_memory)
    assert np.array_equal(fitted.cluster_centers_, expected.cluster_centers_)


# -- a cluster -------------------------------------------------------------------------------------


def slow(part):
    time.sleep(0.2)
    return sums(part, 3)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.Client(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_collection_on_a_cluster(name, client):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_bad_parts_on_a_cluster(name, client):
    check_bad(name)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bit(client):
    table = table_of(engine_of(COLLECTIONS["delayed"]()))
    expected = table.sums(slow)
    victim = min(client.run(os.getpid).values())
    timer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    timer.start()
    for _ in range(3):
        assert np.array_equal(table.sums(slow)[0], expected[0])
    assert np.array_equal(table.rows(signs).compute(), LABELS)
    assert victim not in client.run(os.getpid).values()


@pytest.mark.slow
def test_no_row_comes_to_the_client(client, monkeypatch):
    """Of 200,000 rows in 4 parts, less than a kB a pass; for all that a client gathers."""
    gathered = []
    gather = client.gather

    def seen(*arguments, **options):
        gathered.append(gather(*arguments, **options))
        return gathered[-1]

    monkeypatch.setattr(client, "gather", seen)
    table = table_of(engine_of([dask.delayed(np.ones)((50_000, 3)) for _ in range(4)]))
    assert int(table.sums(sums, 3)[1]) == 200_000
    table.sums(signs_and_sums)
    assert len(gathered) >= 2 and max(map(len, map(pickle.dumps, gathered))) < 1000


def signs_and_sums(part):
    return part, (int(signs(part).sum()),)


@pytest.mark.slow
def test_the_example(tmp_path):
    told = run_example("on_dask.py", "--output", tmp_path / "new" / "picture.png")
    assert "80,000 rows in 4 parts on two workers" in told and "noise: system" in told
    assert (tmp_path / "new" / "picture.png").stat().st_size > 10_000
