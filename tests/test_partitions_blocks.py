"""Fits of tables in parts with random blocks of rows: tuples, friendly covariances, aggregates."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from test_partitions import FLAT, WIDE, fitted

from sklearn_dp import DPKTupleKMeans, SampleAndAggregate
from sklearn_dp._queries.samples import ByPart
from sklearn_dp.covariance import FriendlyCovariance

ROWS = WIDE[:240, :2]  # of two features, so that it is quick


def model(n_clusters=3, **options):
    defaults = {"epsilon": 1000.0, "n_tuples": 4, "bounds": 5.0, "random_state": 0}
    return DPKTupleKMeans(n_clusters, **{**defaults, **options})


def covariance(**options):
    defaults = {"method": "friendly_core", "n_blocks": 16, "epsilon": 3000.0, "random_state": 0}
    return FriendlyCovariance(**defaults | options)


MODELS = {  # and the way that they go
    "tuples": (model(), ROWS, "tuples"),
    "paid radius": (model(n_tuples=8, bounds=None), WIDE, "tuples"),
    "copies": (model(sampling="with_replacement", n_tuples=2), ROWS, "tuples, then coreset"),
    "no core": (model(inner=KMeans(3, init="random", n_init=1, max_iter=1)), FLAT, "tuples, then"),
    "public centers": (
        model(sampling="with_replacement", n_tuples=2, fallback="public"), ROWS,
        "tuples, then public",
    ),
    "any number": (model((2, 4)), ROWS, "tuples"),
    "coreset": (model(n_tuples="auto", epsilon=1.0), ROWS, "coreset"),
    "covariance": (covariance(), WIDE[:, :2], "friendly core"),
    "covariance about 0": (covariance(assume_centered=True), FLAT, "friendly core"),
    "too few rows": (model(n_tuples=100), ROWS, "coreset"),
}  # fmt: skip


def aggregate(estimator=None, output=("center_",), **options):
    defaults = {"epsilon": 50.0, "n_blocks": 12, "aggregator": "mean", "output_bounds": 5.0}
    return SampleAndAggregate(estimator, output=output, random_state=0, **{**defaults, **options})


LINE = ("coef_", "intercept_")
AGGREGATES = {  # and their targets
    "medians": (aggregate(), WIDE),
    "a ball": (aggregate(aggregator="one_cluster", output_bounds=None), WIDE),
    "a core": (aggregate(aggregator="friendly_core", epsilon=300.0), ROWS),
    "copies": (aggregate(bounds=2.0, sampling="with_replacement"), WIDE),
    "targets": (aggregate(Ridge(), LINE, bounds=3.0), WIDE, WIDE @ np.arange(-2.0, 3) + 3),
    "labels": (
        aggregate(LogisticRegression(), ("coef_",), classes=["a", "b"]),
        ROWS, np.where(ROWS[:, 0] > 0.5, "a", "b"),
    ),
}  # fmt: skip


def test_rows_of_blocks_come_together_elsewhere():
    """To the place of the fit come k-tuples, numbers of rows, and sums of released shapes."""
    estimator, X, _ = MODELS["tuples"]
    _, engine = fitted(estimator, X, np.split(np.arange(len(X)), [101, 137]))
    assert [result.shape for result in engine.exchanged] == [(1, 3, 2)] * 4
    sizes = {101, 36, 103}
    for value in (value for sums in engine.sent for value in sums):
        if isinstance(value, ByPart):
            assert set(value.values.values()) <= sizes
        else:
            assert not sizes & set(np.shape(value))
    assert engine.passes <= 12
