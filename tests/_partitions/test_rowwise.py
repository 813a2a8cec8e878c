"""Estimators on tables in parts: the bits of a fit in memory, and answers where the rows are."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from estimators import all_estimators

from sklearn_dp import DPKMeans
from sklearn_dp._partitions import _pieces, engine_of
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4, 3))[rng.integers(4, size=3000)] + 0.05 * rng.normal(size=(3000, 3))
CUTS = {1: (), 2: (700,), 7: (0, 3, 3, 900, 901, 2999), 50: tuple(range(0, 2940, 60))}


def model(**options):
    return DPKMeans(4, max_weight=1.0, random_state=0, **options)


def parts_of(rows, n_parts):
    return np.split(rows, CUTS[n_parts])


def released(fitted):
    """All attributes of a fit but those that are no release."""
    return pickle.loads(pickle.dumps(fitted)).__dict__


def same(one, other):
    one, other = released(one), released(other)
    assert one.keys() == other.keys()
    return all(pickle.dumps(one[name]) == pickle.dumps(other[name]) for name in one)


@pytest.mark.parametrize("n_parts", [2, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_and_weights_in_parts(n_parts, weighted):
    """Groups that are spread over parts, and within one."""
    groups = np.random.default_rng(1).integers(800, size=len(X))
    options = {"groups": groups}
    if weighted:
        options["sample_weight"] = np.random.default_rng(2).choice([0.0, 0.3, 2.0], size=len(X))
    cut = {name: parts_of(values, n_parts) for name, values in options.items()}
    assert same(model().fit(parts_of(X, n_parts), **cut), model().fit(X, **options))


@pytest.mark.parametrize("n_reads", [1, 3])
def test_rows_in_another_order_end_the_fit(n_reads):
    """The weight of a row, and the norm that it is clipped by, would be those of another one."""
    reads = []

    def shuffled():
        reads.append(1)
        return X[:500] if len(reads) <= n_reads else X[:500][::-1]

    with pytest.raises(PartError, match="^X, part 1: its rows have changed .*, or been reordered"):
        model().fit([lambda: X[500:], shuffled], groups=[np.arange(2500), np.arange(500)])
    assert len(reads) == n_reads + 1


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_private_scores_of_parts_have_the_bits_of_one_table(grouped, dtype):
    fitted, rows, groups = model().fit(X), X.astype(dtype), np.arange(3000) // 3
    expected = fitted.private_score(rows, groups=groups if grouped else None, random_state=1)
    for n_parts in CUTS:
        beside = {"groups": parts_of(groups, n_parts)} if grouped else {}
        found = fitted.private_score(parts_of(rows, n_parts), random_state=1, **beside)
        assert found == expected
    assert not hasattr(fitted, "feature_names_in_")


IN_PARTS = (
    "DPCoreset",
    "DPGaussianMixture",
    "DPKMeans",
    "DPOneCluster",
    "DPOneClusterKMeans",
    "DPOutlierScreen",
    "DPKTupleKMeans",
    "DPPCA",
    "FriendlyCovariance",
    "FriendlyMean",
    "SampleAndAggregate",
)
KINDS = dict(all_estimators())
ESTIMATORS = [name for name in KINDS if "Federated" not in name]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_parts_or_refuses_them(name):
    """Nothing is gathered in silence: the bits of a fit in memory, or an error before a charge."""
    kind = KINDS[name]
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-4))
    before, rows = ledger.remaining, X[:600]
    options = {"random_state": 0, "ledger": ledger}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = kind(**options).fit([rows[:5], rows[5:5], rows[5:]])
            expected = kind(**options).fit(rows)
    except TypeError as error:
        assert "X must be in memory" in str(error) and ledger.remaining == before
        assert name not in IN_PARTS
    else:
        for model in (found, expected):
            model.set_params(ledger=None)  # which has paid each by a charge of its own
            inner = [model.estimator_] if name == "DPTopics" else []
            for each in (model, *inner):
                each._provenance = replace(each.privacy_report_, paid_by=None)
        assert same(found, expected)


def parquet(frame, folder):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    frame.to_pandas().to_parquet(folder / "rows.parquet", row_group_size=150)
    return folder / "rows.parquet"


def arrow(frame, folder):
    dataset = pytest.importorskip("pyarrow.dataset", reason="needs the extra arrow")
    return dataset.dataset(parquet(frame, folder))


def whole_numbers(frame, folder):
    mapped = np.memmap(folder / "rows", dtype=np.int32, mode="w+", shape=frame.shape)
    mapped[:] = frame.to_numpy()
    return mapped


STORES = {
    "a Parquet file": parquet,
    "a data set": arrow,
    "a lazy frame": lambda frame, folder: frame.lazy(),
    "a map of whole numbers": whole_numbers,
}


@pytest.mark.quick("*-a lazy frame", "DPKTupleKMeans-*", "DPKMeans-*")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", IN_PARTS)
def test_every_estimator_takes_every_store(name, store, tmp_path, monkeypatch):
    """In several parts, with the bits of the frame in memory."""
    monkeypatch.setattr(_pieces, "_PART_ENTRIES", 600)
    frame = pl.DataFrame(np.rint(1000 * X[:400]), schema=["a", "b", "c"])
    table = STORES[store](frame, tmp_path)
    assert engine_of(table).engine.n_parts >= 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (quick(name).fit(rows) for rows in (table, frame))
    if store == "a map of whole numbers":
        for named in (expected, getattr(expected, "estimator_", None)):
            vars(named or expected).pop("feature_names_in_", None)
    assert same(found, expected)
    assert np.array_equal(getattr(found, "labels_", 0), getattr(expected, "labels_", 0))
    if name == "DPKTupleKMeans":
        assert found.path_ == "tuples"


def quick(name):
    """An estimator with a budget that leaves it more to do than to say that rows are too few."""
    options = {"epsilon": 50.0, "delta": 1e-3, "random_state": 0, "bounds": 2000.0}
    if name == "DPOneClusterKMeans":
        options["n_clusters"] = 2
    if name == "DPKTupleKMeans":
        options |= {"n_clusters": 4, "epsilon": 1000.0, "n_tuples": 4}
    return KINDS[name](**options)
