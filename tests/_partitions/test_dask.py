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
    GROUPS,
    LABELS,
    PAGE,
    PAIRS,
    ROWS,
    SECRET,
    THIRD_SIGNS,
    exchanges,
    joined,
    means_of_groups,
    passes,
    pieces,
    quotes_nothing,
    quoting,
    run_block,
    run_example,
    shuffles,
    signs,
    sums,
    table_of,
    thirds,
    wide,
)
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sklearn_dp import DPKMeans, DPKTupleKMeans, FriendlyMean, SampleAndAggregate
from sklearn_dp._partitions import engine_of
from sklearn_dp._partitions._dask import OwnTasks, _readers
from sklearn_dp._partitions._steps import FAN_IN, Step
from sklearn_dp._privacy._units import UnitFacts
from sklearn_dp._rows.table import Table
from sklearn_dp._rows.table_units import open_units
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


def grouped():
    """An array with groups, and delayed parts."""
    for X, ids in (
        (da.from_array(PAIRS, chunks=(60, 2)), da.from_array(GROUPS, chunks=60)),
        ([dask.delayed(PAIRS[:9]), dask.delayed(PAIRS[9:])],
         [dask.delayed(GROUPS[:9]), dask.delayed(GROUPS[9:])]),
    ):  # fmt: skip
        labels, known = means_of_groups(X, ids)
        assert np.array_equal(labels.compute(), known)


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
def test_points_of_groups_without_a_cluster():
    grouped()


def tuples(X):
    """A fit with k-tuples, whose blocks are brought together."""
    model = DPKTupleKMeans(2, n_tuples=4, epsilon=1000.0, bounds=5.0, random_state=0).fit(X)
    assert model.path_ == "tuples"
    return model


def pair(number):
    return pieces()[number] / 9 + np.where(np.arange(len(pieces()[number])) % 2, 2.0, -2.0)[:, None]


@pytest.mark.slow
def test_k_tuples_without_a_cluster():
    expected = tuples(np.concatenate([pair(i) for i in range(5)]))
    found = tuples(delayed(*[pair] * 5))
    assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert np.array_equal(found.labels_.compute(), expected.labels_)


@pytest.mark.parametrize("name", ["array", "frame", "own tasks"])
def test_persisted_collections(name, monkeypatch):
    kept = COLLECTIONS[name]().persist()
    monkeypatch.setitem(COLLECTIONS, name, lambda: kept)
    check(name)


def test_columns_are_known_before_anything_is_read():
    def fail(number):
        raise AssertionError("read")

    array = da.map_blocks(fail, chunks=((2, 2), (3,)), dtype=np.float32)
    frame = dd.from_map(fail, [0, 1], meta=FRAME.iloc[:0])
    for X, names, dtype in ((array, None, np.float32), (frame, ["a", "b", "c"], np.float64)):
        found = engine_of(X)
        assert (found.n_features, found.dtype) == (3, dtype)
        assert found.feature_names is None or found.feature_names.tolist() == names
        assert found.engine.n_parts == 2  # lazy too
        found.rowwise(positive, np.empty(0, np.int32))


def test_rowwise_answers_have_the_width_of_the_example():
    found = engine_of(COLLECTIONS["array"]())
    doubled = found.rowwise(double, np.empty((0, 3)))
    assert doubled.shape == (200, 3) and np.array_equal(doubled.compute(), 2 * ROWS)


def double(rows):
    return 2 * rows


def test_parts_with_tasks_of_their_own_carry_them():
    own, brought = _readers(delayed(load, load), None, None)
    assert all(isinstance(rows, OwnTasks) and rest == [None, None] for rows, *rest in own)
    assert brought == [(), ()]
    assert np.array_equal(own[1][0](), load(1))


def test_parts_that_share_tasks_are_computed_once():
    calls = []

    def common():
        calls.append(1)
        return 0

    shared = dask.delayed(common, pure=True)()
    X = [dask.delayed(lambda i, zero: load(i + zero))(i, shared) for i in range(5)]
    found = engine_of(X)  # a look at the columns of the first part
    calls.clear()
    assert passes(found)[0] == EXPECTED and len(calls) == 1


def test_rows_are_not_kept_in_the_state():
    engine = engine_of(COLLECTIONS["delayed"]()).engine
    engine.reduce(opened_and_counted)
    for step in dask.compute(*engine._steps):
        assert isinstance(step, Step) and isinstance(step.state._rows, OwnTasks)


def opened_and_counted(source):
    return source, (source.n_rows(),)


def test_sums_are_added_in_a_tree_and_never_wrap():
    n_parts = 3 * FAN_IN + 1
    found = engine_of([dask.delayed(load)(i % 2) for i in range(n_parts)])
    totals = table_of(found).sums(wide)
    assert [int(total) for total in (*totals[0], totals[1])] == [n_parts * 2**62] * 3


def test_updates_wait_and_count_once():
    calls = []

    def once(part):
        calls.append(1)
        return part, ()

    table = table_of(engine_of(COLLECTIONS["delayed"]()))
    table.engine.update(with_sources)
    table.engine.update(once)
    assert not calls
    table.engine.reduce(none)
    table.engine.reduce(none)
    assert len(calls) == 5


def with_sources(source):
    return source, ()


def none(state):
    return state, ()


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


def test_an_error_of_a_pass_quotes_nothing():
    with pytest.raises(PartError, match=r"^X, part 0: .*\(KeyError\)") as caught:
        table_of(engine_of(COLLECTIONS["delayed"]())).sums(quoting)
    assert quotes_nothing(caught.value)


def test_bad_rows_in_a_lazy_answer():
    lazy = engine_of(delayed(load, nan)).rowwise(positive, np.empty(0, np.int32))
    with pytest.raises(PartError, match="^X, part 1: Input X contains NaN"):
        lazy.compute()


def test_shared_tasks_that_fail():
    broken = dask.delayed(bad)(0)
    X = [dask.delayed(ROWS), *(dask.delayed(lambda x: x)(broken) for _ in range(2))]
    with pytest.raises(PartError, match=r"^X.*\(KeyError\)") as caught:
        passes(engine_of(X))
    assert quotes_nothing(caught.value)


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


@pytest.mark.parametrize(
    "X", [lambda: dd.from_pandas(FRAME, npartitions=2)["a"], lambda: dask.delayed(1)]
)
def test_other_collections_of_dask(X):
    with pytest.raises(TypeError, match="X must not be of type .*dask.array.Array"):
        engine_of(X())


def test_groups_come_in_the_parts_of_the_table():
    ids = pd.Series(np.arange(200) // 2)
    X = COLLECTIONS["array"]()
    for groups in (
        da.from_array(ids.to_numpy(), chunks=60),
        [dask.delayed(ids[i : i + 60]) for i in range(0, 200, 60)],
    ):
        engine = engine_of(X, groups, groups).engine
        assert engine.reduce(group_sums) == (int(ids.sum()), int(ids.sum()))
    with pytest.raises(ValueError, match="groups must have the parts of X"):
        engine_of(X, da.from_array(ids.to_numpy(), chunks=70))


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


@pytest.mark.filterwarnings("ignore")
def test_targets_come_in_the_parts_of_the_table():
    y, ids = ROWS @ [1.0, -2.0, 0.0], np.arange(200) // 2
    options = {"n_blocks": 9, "aggregator": "mean", "output_bounds": 5.0, "random_state": 0}
    model, ledger = SampleAndAggregate(Ridge(), output=("coef_",), **options), PrivacyLedger(BUDGET)
    X = da.from_array(ROWS, chunks=(60, 3))
    target, groups = (da.from_array(values, chunks=60) for values in (y, ids))
    for given in ({}, {"groups": groups}):
        known = clone(model).fit(ROWS, y, **{name: ids for name in given})
        assert np.array_equal(clone(model).fit(X, target, **given).output_, known.output_)
    lazy = [dask.delayed(y[i : i + 60]) for i in range(0, 200, 60)]
    known = clone(model).fit(ROWS, y)
    assert np.array_equal(clone(model).fit(X, lazy).output_, known.output_)
    model.set_params(ledger=ledger)
    with pytest.raises(TypeError, match="^y must be a one-dimensional Dask collection"):
        model.fit(X, y)
    assert ledger.remaining["epsilon"] == 3.0
    with pytest.raises(TypeError, match="^y must be plain values"):
        model.fit(X, da.full(200, f"no {SECRET}", chunks=60))
    assert ledger.remaining["epsilon"] == 3.0
    with pytest.raises(PartError, match="^y, part 0: it must be a vector of finite") as caught:
        model.fit(X, da.full(200, f"no {SECRET}", chunks=60, dtype=object))
    assert quotes_nothing(caught.value) and ledger.remaining["epsilon"] < 3.0


def test_values_of_rows_with_weights_have_no_known_lengths():
    """Rows without a weight are not there: blocks are shorter than those of X."""
    weights = da.from_array(np.where(np.arange(200) % 3, 1.0, 0.0), chunks=60)
    found = engine_of(da.from_array(ROWS, chunks=(60, 3)), None, weights)
    table = Table(found.engine, found.n_features, found.dtype, UnitFacts())
    open_units(table, largest=1.0)
    values = table.rows(first_entries)
    assert np.isnan(values.shape[0]) and len(values.compute()) == 133


def first_entries(part):
    return part.source.read()[:, 0]


def group_sums(source):
    assert len(source.read_groups()) == source.n_rows()
    return source, (int(sum(source.read_groups())), int(sum(source.read_weights())))


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
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


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("known", [True, False])
def test_categories_of_integers_are_numbers_as_in_pandas(known):
    """Of unknown categories Dask declares one text."""
    frame = pd.DataFrame({"a": pd.Categorical(np.arange(400) % 5), "b": np.arange(400.0)})
    parts = dd.from_pandas(frame, npartitions=3)
    parts = parts if known else parts.assign(a=lambda table: table.a.cat.as_unknown())
    models = [FriendlyMean(bounds=99.0, random_state=0).fit(table) for table in (frame, parts)]
    assert np.array_equal(models[0].mean_, models[1].mean_)
    with pytest.raises(ValueError, match="column 'a' is not"):
        texts = dd.from_pandas(frame.assign(a=pd.Categorical(["x"] * 400)), npartitions=2)
        FriendlyMean(bounds=99.0).fit(texts)


def test_delayed_parts_of_a_generator():
    fitted = DPKMeans(2, bounds=5.0, random_state=0).fit_partitions(iter(COLLECTIONS["delayed"]()))
    expected = DPKMeans(2, bounds=5.0, random_state=0).fit(ROWS)
    assert np.array_equal(fitted.cluster_centers_, expected.cluster_centers_)
    assert np.array_equal(fitted.labels_.compute(), expected.labels_)
    score = fitted.private_score(COLLECTIONS["array"](), random_state=1)
    assert score == expected.private_score(ROWS, random_state=1)


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
def test_rows_come_together_on_a_cluster(client):
    assert exchanges(engine_of(COLLECTIONS["delayed"]()))
    found = shuffles(engine_of(COLLECTIONS["delayed"]()))
    assert np.array_equal(found.compute(), THIRD_SIGNS)
    expected = tuples(np.concatenate([pair(i) for i in range(5)]))
    assert np.array_equal(tuples(delayed(*[pair] * 5)).cluster_centers_, expected.cluster_centers_)


@pytest.mark.slow
def test_points_of_groups_on_a_cluster(client):
    grouped()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["array", "frame", "own tasks"])
def test_persisted_collections_on_a_cluster(name, client, monkeypatch):
    kept = COLLECTIONS[name]().persist()
    for X in (kept, kept * 1.0):
        monkeypatch.setitem(COLLECTIONS, name, lambda X=X: X)
        check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_bad_parts_on_a_cluster(name, client):
    check_bad(name)


@pytest.mark.slow
def test_shared_tasks_that_fail_on_a_cluster(client):
    X = [dask.delayed(ROWS), dask.delayed(bad)(0)]
    with pytest.raises(PartError, match=r"^X, part 1: .*\(KeyError\)") as caught:
        passes(engine_of(X))
    assert quotes_nothing(caught.value)


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
def test_pages_of_dask_show_the_names_of_passes(client):
    from dask.utils import key_split

    engine = engine_of(COLLECTIONS["delayed"]()).engine
    engine.reduce(opened_and_counted)
    assert {key_split(step.key) for step in engine._steps} == {"dp-opened-and-counted"}


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
def test_the_page(client, tmp_path, monkeypatch):
    """Its first line would start another cluster."""
    monkeypatch.setattr("dask.distributed.Client", lambda **options: client)
    names = run_block(PAGE, "dask", tmp_path)
    assert np.bincount(names["model"].labels_.compute()).sum() == 2 * len(ROWS)


@pytest.mark.slow
def test_the_example(tmp_path):
    told = run_example("on_dask.py", "--output", tmp_path / "new" / "picture.png")
    assert "80,000 rows in 4 parts on two workers" in told and "noise: system" in told
    assert (tmp_path / "new" / "picture.png").stat().st_size > 10_000
