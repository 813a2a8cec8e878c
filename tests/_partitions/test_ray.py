"""Tables on Ray, in an instance of two processes."""

import os
import pickle
import signal
import sys
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
    THIRDS,
    exchanges,
    joined,
    passes,
    pieces,
    quotes_nothing,
    quoting,
    shuffles,
    sums,
    table_of,
    thirds,
)

from sklearn_dp._partitions import engine_of
from sklearn_dp.exceptions import PartError

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c"]
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture(scope="module")
def instance():
    # Workers import the functions of this test.
    paths = os.pathsep.join([TESTS, *sys.path])
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )  # fmt: skip
    yield ray
    ray.shutdown()


def positive(rows):
    return (rows[:, 0] > 0).astype(np.int32)


def check(found):
    totals, labels = passes(found)
    assert totals == EXPECTED
    for references in (labels, found.rowwise(positive, np.empty(0, np.int32))):
        assert all(isinstance(reference, ray.ObjectRef) for reference in references)
        assert np.array_equal(np.concatenate(ray.get(references)), LABELS)


def references(*values):
    return [ray.put(value) for value in values]


def test_references(instance):
    found = engine_of(references(*pieces()))
    assert (found.kind, found.n_features, found.engine.n_parts) == ("ray", 3, 5)
    check(found)
    frames = [pd.DataFrame(rows, columns=NAMES) for rows in pieces()]
    found = engine_of(references(*frames))
    assert found.feature_names.tolist() == NAMES
    check(found)


def test_rows_come_together(instance):
    assert exchanges(engine_of(references(*pieces())))
    found = table_of(engine_of(references(*pieces()))).exchange(thirds, joined, 1, 2)
    assert len(found) == 1 and np.array_equal(found[0][1], THIRDS[0])
    new = ray.get(shuffles(engine_of(references(*pieces()))))
    assert np.array_equal(np.concatenate(new), THIRD_SIGNS)


def test_data_sets(instance, tmp_path):
    data = pytest.importorskip("ray.data", reason="needs the extra ray")
    data.DataContext.get_current().enable_progress_bars = False
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.to_parquet(tmp_path / "rows.parquet")
    for X, names in (
        (data.from_numpy([rows for rows in pieces() if len(rows)]), None),
        (data.from_pandas([frame[:50], frame[50:]]), NAMES),
        (data.read_parquet(str(tmp_path)), NAMES),
    ):
        found = engine_of(X)
        assert found.n_features == 3
        assert (
            (found.feature_names is None) if names is None else list(found.feature_names) == names
        )
        check(found)


@ray.remote(max_retries=0)
def failing():
    raise KeyError(SECRET)


def test_bad_parts(instance):
    for bad, words in (
        (ray.put(ROWS * np.nan), "NaN"),
        (ray.put(ROWS[:, :2]), "number of columns"),
        (ray.put(np.full((2, 3), f"{SECRET}m")), "numeric"),
        (failing.remote(), "KeyError"),
    ):
        with pytest.raises(PartError, match=f"^X, part 1: .*({words}|RayTaskError)") as caught:
            passes(engine_of([ray.put(ROWS), bad]))
        assert quotes_nothing(caught.value)


def test_an_error_of_a_pass_quotes_nothing(instance):
    with pytest.raises(PartError, match=r"^X, part 0: .*\(KeyError\)") as caught:
        table_of(engine_of(references(ROWS))).sums(quoting)
    assert quotes_nothing(caught.value)


def test_groups(instance):
    X, ids = references(*pieces()), references(*(np.arange(len(rows)) for rows in pieces()))
    expected = sum(sum(range(len(rows))) for rows in pieces())
    for given in ((ids, ids), (ids, None), (None, ids)):
        engine = engine_of(X, *given).engine
        assert engine.reduce(group_sums) == tuple(0 if one is None else expected for one in given)
    with pytest.raises(ValueError, match="groups must be a list with a reference"):
        engine_of(X, ids[1:])
    for values, words in (
        (3.0, "not float"),
        ([1] * 5, "it contains int"),
        (ids[0], "not ObjectRef"),
    ):
        with pytest.raises(TypeError, match=f"^sample_weight must be a list .*{words}"):
            engine_of(X, None, values)


def group_sums(source):
    values = (source.read_groups(), source.read_weights())
    return source, tuple(0 if one is None else int(sum(one)) for one in values)


def slow(part):
    time.sleep(0.2)
    return sums(part, 3)


def pid(part):
    return np.array([os.getpid()])


def test_a_worker_that_is_killed_changes_no_bit(instance):
    table = table_of(engine_of(references(*pieces())))
    expected = table.sums(slow)
    victim = int(ray.get(table.rows(pid)[1])[0])
    os.kill(victim, signal.SIGKILL)
    assert np.array_equal(table.sums(slow)[0], expected[0])


def test_only_sums_come_to_the_driver(instance, monkeypatch):
    got = []
    get = ray.get

    def seen(reference, **options):
        got.append(get(reference, **options))
        return got[-1]

    monkeypatch.setattr(ray, "get", seen)
    table = table_of(engine_of(references(*[ROWS] * 4)))
    table.sums(sums, 3)
    assert got and max(len(pickle.dumps(one)) for one in got) < 1000 < ROWS.nbytes
