"""Tables on Spark, in a local session."""

import os
import sys

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
    passes,
    pieces,
    quotes_nothing,
    quoting,
    run_example,
    shuffles,
    table_of,
)

from sklearn_dp._partitions import engine_of
from sklearn_dp.exceptions import PartError

pyspark = pytest.importorskip("pyspark", reason="needs the extra spark")
pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(ROWS, columns=NAMES)
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        # Workers import the functions of this test.
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join([TESTS, *sys.path]))
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def positive(rows):
    return (rows[:, 0] > 0).astype(np.int32)


def check(found, ordered=True):
    totals, labels = passes(found)
    assert totals == EXPECTED
    for lazy in (labels, found.rowwise(positive, np.empty(0, np.int32))):
        blocks = lazy.collect()
        assert len(blocks) == found.engine.n_parts
        values = np.concatenate(blocks)
        assert np.array_equal(*((values, LABELS) if ordered else map(np.sort, (values, LABELS))))


def test_frames(spark):
    frame = spark.createDataFrame(FRAME)
    for n_parts in (1, 3):
        found = engine_of(frame.repartition(n_parts))
        assert (found.kind, found.engine.n_parts) == ("spark", n_parts)
        assert (found.feature_names.tolist(), found.dtype) == (NAMES, np.float64)
        check(found, ordered=False)


def test_rows_come_together(spark):
    assert exchanges(engine_of(spark.sparkContext.parallelize(pieces(), 5)))
    new = shuffles(engine_of(spark.sparkContext.parallelize(pieces(), 5)))
    assert np.array_equal(np.concatenate(new.collect()), THIRD_SIGNS)


def nan_in(part):
    return ROWS * np.nan if part == 2 else ROWS


def failing(part):
    if part == 2:
        raise KeyError(SECRET)
    return ROWS


def narrow_in(part):
    return ROWS[:, :2] if part == 2 else ROWS


@pytest.mark.parametrize(
    ("function", "words"),
    [(nan_in, "NaN"), (failing, "KeyError|Py4J"), (narrow_in, "columns|ValueError")],
)
def test_bad_parts(spark, function, words):
    rdd = spark.sparkContext.parallelize(range(3), 3).map(function)
    with pytest.raises(PartError, match=f"^X.*({words})") as caught:
        passes(engine_of(rdd))
    assert quotes_nothing(caught.value)


def test_an_error_of_a_pass_quotes_nothing(spark):
    with pytest.raises(PartError, match=r"^X, part 0: .*\(KeyError\)") as caught:
        table_of(engine_of(spark.createDataFrame(FRAME))).sums(quoting)
    assert quotes_nothing(caught.value)


def test_missing_values_are_refused(spark):
    frame = spark.createDataFrame(FRAME).selectExpr("if(a > 1, null, a) a", "b", "c")
    with pytest.raises(PartError, match="NaN"):
        passes(engine_of(frame))


def test_bad_frames(spark):
    texts = spark.createDataFrame(FRAME[:3]).selectExpr("a", "string(b) b")
    with pytest.raises(ValueError, match="X must be numeric") as caught:
        engine_of(texts)
    assert quotes_nothing(caught.value)
    twice = spark.createDataFrame(FRAME[:3]).selectExpr("a", "b as a")
    with pytest.raises(ValueError, match="names of columns must differ"):
        engine_of(twice)
    with pytest.raises(TypeError, match="groups cannot be combined"):
        engine_of(spark.createDataFrame(FRAME), [1])
    with pytest.raises(ValueError, match="0 sample"):
        engine_of(spark.sparkContext.emptyRDD())


def test_only_sums_come_to_the_driver(spark, monkeypatch):
    """All that a driver gets from an RDD comes through `collect`."""
    got = []
    collect = pyspark.RDD.collect

    def seen(rdd):
        got.append(collect(rdd))
        return got[-1]

    found = engine_of(spark.sparkContext.parallelize([ROWS] * 50, 4))
    monkeypatch.setattr(pyspark.RDD, "collect", seen)
    passes(found)
    import pickle

    assert got and max(len(pickle.dumps(one)) for one in got) < 2000 < ROWS.nbytes


def test_the_example():
    told = run_example("on_spark.py")
    assert "Released centers" in told and "noise: system" in told
