"""What comes to the place of a fit, byte by byte: no row, and no state of rows.

A part of 6000 rows sends less than a byte for each of them in any pass, of all passes of all
families, but for the ids of groups and their sizes. A value that is kept for each row would be more
than that, of whatever type. (A sample whose pairs are compared, and cells that hold rows, are few.)
"""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from test_partitions import Elsewhere

from sklearn_dp import (
    DPCoreset,
    DPKMeans,
    DPKTupleKMeans,
    DPOneCluster,
    DPOneClusterKMeans,
    DPOutlierScreen,
    FriendlyMean,
)
from sklearn_dp._aggregate.friendly import mean as friendly
from sklearn_dp._aggregate.friendly import mean_facts, refine
from sklearn_dp._aggregate.one_cluster import center
from sklearn_dp._partitions import _pieces
from sklearn_dp._partitions._sources import GroupSizes
from sklearn_dp._queries.clusters import CappedSum
from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.decomposition import DPPCA
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.mixture import DPGaussianMixture, KTupleOptions

N, SAMPLE, N_PLACES = 20_000, 100, 150  # a histogram of each column has 400 bins
RNG = np.random.default_rng(0)
PLACES = 2 * np.eye(3)[np.arange(N_PLACES) % 3] + 0.1 * RNG.normal(size=(N_PLACES, 3))
X = PLACES[RNG.integers(N_PLACES, size=N)]  # so that few cells hold any of them
Y = X @ [1.0, -1.0, 2.0]
GROUPS = RNG.permutation(N) // 2
LINE = SampleAndAggregate(Ridge(), output=("coef_",), n_blocks=12, output_bounds=5.0)
MODELS = {
    "k-means": DPKMeans(3),
    "coreset": DPCoreset(3),
    "components": DPPCA(2),
    "covariance": FriendlyCovariance(),
    "gram": FriendlyCovariance(method="gram", bounds=5.0),
    "friendly core": FriendlyCovariance(method="friendly_core", n_blocks=16, epsilon=3000.0),
    "mixture": DPGaussianMixture(3),
    "mixture of tuples": DPGaussianMixture(
        3, method="k_tuples", options=KTupleOptions(4), epsilon=800.0
    ),
    "tuples": DPKTupleKMeans(3, epsilon=1000.0, n_tuples=4),
    "aggregate": SampleAndAggregate(output=("center_",), n_blocks=12, output_bounds=5.0),
    "aggregate of targets": LINE,
    "mean": FriendlyMean(),
    "mean of cells": FriendlyMean(diameter=4.0, locate="cells"),
    "mean of a core": FriendlyMean(rho=40.0, delta=1e-3, locate="basic"),
    "ball": DPOneCluster(0.2, sample_size=SAMPLE),
    "balls": DPOneClusterKMeans(2, sample_size=SAMPLE),
    "screen": DPOutlierScreen(sample_size=SAMPLE),
}


@pytest.fixture
def sent(monkeypatch):
    """All that the parts of all tables of a test send."""
    for module in (mean_facts, refine, friendly):
        monkeypatch.setattr(module, "most_pairs", lambda d: SAMPLE)
    monkeypatch.setattr(center, "MOST_COUNTED", 2000)
    monkeypatch.setattr(center, "_CLEAR", 1)
    engines = []

    def elsewhere(sources, n_jobs):
        engines.append(Elsewhere(sources))
        return engines[-1]

    monkeypatch.setattr(_pieces, "LocalEngine", elsewhere)

    def values():
        for engine in engines:
            yield from (value for sums in engine.sent for value in sums)
            yield from engine.exchanged

    return values


def halves(values):
    return np.array_split(values, 2)


def fit(name, **beside):
    model = clone(MODELS[name]).set_params(random_state=0)
    if model.rho is None and model.epsilon == 1.0:
        model.set_params(epsilon=20.0)
    if name == "aggregate of targets":
        beside["y"] = halves(Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(halves(X), **beside)


def bytes_of(values):
    """Of the largest one; ids of groups are counted apart."""
    sizes = [(isinstance(value, GroupSizes), len(pickle.dumps(value))) for value in values]
    return max(size for ids, size in sizes if not ids), sum(ids for ids, _ in sizes)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_each_row_comes_to_the_place_of_the_fit(name, sent):
    fitted = fit(name)
    # Twelve blocks tell no output from zero.
    missed = {"no_ball", "mostly_noise"}
    assert fitted.trustworthy_ or {each.code for each in fitted.messages_} & missed
    largest, with_ids = bytes_of(sent())
    assert 80 < largest < N / 2 and with_ids == 0


@pytest.mark.quick("k-means", "mean", "screen")
@pytest.mark.parametrize("name", ["k-means", "mean", "ball", "balls", "screen", "tuples"])
def test_of_groups_their_ids_and_sizes_come_once(name, sent):
    fit(name, groups=halves(GROUPS))
    largest, with_ids = bytes_of(sent())
    assert largest < N / 2 and with_ids == 2


def test_scores_and_answers(sent):
    fitted = fit("k-means")
    known = sum(1 for _ in sent())
    for groups in (None, halves(GROUPS)):
        fitted.private_score(halves(X), groups=groups, random_state=0)
    fitted.score(halves(X))
    largest, with_ids = bytes_of(list(sent())[known:])
    assert largest < N / 2 and with_ids == 2


HONEST = CappedSum.on


def telling(self, part):
    part, (total,) = HONEST(self, part)
    return part, (np.append(total, part.source.read()[:, 0] > 0),)


def test_a_pass_that_sends_a_label_of_each_row_is_caught(sent, monkeypatch):
    fitted = fit("k-means")
    monkeypatch.setattr(CappedSum, "on", telling)
    fitted.private_score(halves(X), random_state=0)
    assert bytes_of(sent())[0] > N / 2
