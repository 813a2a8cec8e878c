"""Models whose fits to parts have the bits of one array: of blocks, balls and mixtures."""

import numpy as np
from mixture_tools import FORMS, WAYS, audit_data
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from test_partitions import FLAT, WIDE

from sklearn_dp import (
    DPKTupleKMeans,
    DPOneCluster,
    DPOneClusterKMeans,
    DPOutlierScreen,
    SampleAndAggregate,
)
from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.mixture import DPGaussianMixture

# -- blocks ----------------------------------------------------------------------------------------

ROWS = WIDE[:240, :2]  # of two features, so that it is quick


def tuples(n_clusters=3, **options):
    defaults = {"epsilon": 1000.0, "n_tuples": 4, "bounds": 5.0, "random_state": 0}
    return DPKTupleKMeans(n_clusters, **{**defaults, **options})


def covariance(**options):
    defaults = {"method": "friendly_core", "n_blocks": 16, "epsilon": 3000.0, "random_state": 0}
    return FriendlyCovariance(**defaults | options)


BLOCKS = {  # and the way that they go
    "tuples": (tuples(), ROWS, "tuples"),
    "paid radius": (tuples(n_tuples=8, bounds=None), WIDE, "tuples"),
    "copies": (tuples(sampling="with_replacement", n_tuples=2), ROWS, "tuples, then coreset"),
    "no core": (tuples(inner=KMeans(3, init="random", n_init=1, max_iter=1)), FLAT, "tuples, then"),
    "public centers": (
        tuples(sampling="with_replacement", n_tuples=2, fallback="public"), ROWS,
        "tuples, then public",
    ),
    "any number": (tuples((2, 4)), ROWS, "tuples"),
    "coreset": (tuples(n_tuples="auto", epsilon=1.0), ROWS, "coreset"),
    "covariance": (covariance(), WIDE[:, :2], "friendly core"),
    "covariance about 0": (covariance(assume_centered=True), FLAT, "friendly core"),
    "too few rows": (tuples(n_tuples=100), ROWS, "coreset"),
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


# -- balls -----------------------------------------------------------------------------------------

N = len(WIDE)
MANY = np.random.default_rng(2).normal(size=(N, 10)) / 10 + np.eye(10)[np.arange(N) % 3]
COPIES = np.where(np.arange(N)[:, None] % 3 < 2, [0.25, 0.5], FLAT / 50)


def ball(**options):
    return DPOneCluster(**{"n_points": 0.2, "epsilon": 50.0, "random_state": 0, **options})


BALLS = {
    "boxes": (ball(), WIDE),
    "boxes in bounds": (ball(n_points=80, bounds=(-1.0, 3.0), n_init=2), FLAT),
    "boxes of a projection": (ball(center_method="grid", bounds=3.0), MANY),
    "axes": (ball(bounds=3.0, radius_method="binary_search"), MANY),
    "means": (ball(center_method="clip", n_init=3), WIDE),
    "copies": (ball(bounds=2.0), COPIES),
    "published": (
        ball(center_method="paper", epsilon=1e5, delta=0.01, min_radius=1e-6, n_points=100),
        1e-6 * WIDE,
    ),
    "balls": (DPOneClusterKMeans(2, n_points=88, epsilon=90.0, random_state=0), WIDE),
    "screen": (DPOutlierScreen(epsilon=9.0, bounds=90.0, random_state=0), FLAT),
}
RADII = {  # choices of a radius, which all are post-processing of the same sample
    "above_threshold": (ball(radius_method="above_threshold"), WIDE),
    "rec_concave": (
        ball(radius_method="rec_concave", radius_grid="linear", epsilon=1e4, bounds=4.0),
        WIDE,
    ),
    "a wide screen": (DPOutlierScreen(epsilon=90.0, center_method="auto", random_state=0), MANY),
}


# -- mixtures --------------------------------------------------------------------------------------

PLACES = audit_data()
TOGETHER = [way for way in WAYS if way != "coreset"]


def mixture(way, **options):
    return DPGaussianMixture(3, random_state=0, **{**WAYS[way][0], **options})


MIXTURES = {
    **{way: mixture(way) for way in TOGETHER},
    **{
        f"{form} balls": mixture("joint balls", covariance_type=form, bounds=60.0) for form in FORMS
    },
    **{f"{form} tuples": mixture("tuples", covariance_type=form, bounds=60.0) for form in FORMS},
    "balls in a box": mixture("joint balls", bounds=(-40.0, 45.0)),
    "tuples in a box": mixture("tuples", bounds=(-20.0, 25.0)),
}
