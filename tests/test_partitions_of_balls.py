"""Fits of balls to tables in parts: the bits of one array.

Pairs of points are compared within a sample, which is collected; boxes are counted, in a sample of
the rows where there are very many.
"""

import numpy as np
import pytest
from sklearn.base import clone
from test_partitions import FLAT, WIDE, cuts, fitted, in_memory, released

from sklearn_dp import DPOneCluster, DPOneClusterKMeans, DPOutlierScreen
from sklearn_dp._aggregate.one_cluster import center
from sklearn_dp._published.one_cluster import good_center as published_center
from sklearn_dp._rows.table import LocalEngine

N = len(WIDE)
MANY = np.random.default_rng(2).normal(size=(N, 10)) / 10 + np.eye(10)[np.arange(N) % 3]
COPIES = np.where(np.arange(N)[:, None] % 3 < 2, [0.25, 0.5], FLAT / 50)


def ball(**options):
    return DPOneCluster(**{"n_points": 0.2, "epsilon": 50.0, "random_state": 0, **options})


MODELS = {
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
SETTINGS = {  # choices of a radius, which all are post-processing of the same sample
    "above_threshold": (ball(radius_method="above_threshold"), WIDE),
    "rec_concave": (
        ball(radius_method="rec_concave", radius_grid="linear", epsilon=1e4, bounds=4.0),
        WIDE,
    ),
    "a wide screen": (DPOutlierScreen(epsilon=90.0, center_method="auto", random_state=0), MANY),
}


@pytest.fixture
def few_pairs(monkeypatch):
    """A part of the rows is compared, and a part is counted in boxes; few boxes are published."""
    monkeypatch.setattr(center, "MOST_COUNTED", 150)
    monkeypatch.setattr(center, "_CLEAR", 1)
    monkeypatch.setattr(published_center, "_ROUNDS", 8)


def sampled(name):
    model, X = MODELS[name]
    return clone(model).set_params(sample_size=120), X


@pytest.mark.quick("boxes", "axes", "published", "screen")
@pytest.mark.parametrize("name", MODELS)
def test_samples_of_parts_have_the_bits_of_one_array(name, few_pairs):
    model, X = sampled(name)
    known = released(in_memory(model, X))
    for places in (cuts(2), cuts(50)):
        assert released(fitted(model, X, places, engine=LocalEngine)[0]) == known
