"""Fits of balls to tables in parts: the bits of one array, what travels, and audits.

Pairs of points are compared within a sample, which is collected; boxes are counted, in a sample of
the rows where there are very many.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from test_partitions import (
    FLAT,
    WIDE,
    Elsewhere,
    LeftOut,
    Twice,
    audit,
    cuts,
    fitted,
    in_memory,
    neighbors,
    released,
    violations,
)

from sklearn_dp import DPOneCluster, DPOneClusterKMeans, DPOutlierScreen
from sklearn_dp._aggregate.one_cluster import center
from sklearn_dp._published.one_cluster import good_center as published_center
from sklearn_dp._queries import pairs as _pairs
from sklearn_dp._queries.boxes import FullestBoxes
from sklearn_dp._queries.samples import ByPart, Coins
from sklearn_dp._rows.rows import ROWS
from sklearn_dp._rows.table import CellCounts, LocalEngine

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
def test_parts_have_the_bits_of_one_array(name):
    """In any order of the rows, as all of them are compared."""
    model, X = MODELS[name]
    found = in_memory(model, X)
    assert found.status_ == "ok"
    known, shuffled = released(found), np.random.default_rng(1).permutation(N)
    assert released(fitted(model, X, cuts(7))[0]) == known
    for places in (cuts(1), np.split(shuffled, [0, 5, 200])):
        assert released(fitted(model, X, places, engine=LocalEngine)[0]) == known


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_in_parts_have_the_bits_of_one_array(name):
    model, X = SETTINGS[name]
    known = released(in_memory(model, X))
    assert released(fitted(model, X, cuts(7), engine=LocalEngine)[0]) == known


@pytest.mark.quick("boxes", "axes", "published", "screen")
@pytest.mark.parametrize("name", MODELS)
def test_samples_of_parts_have_the_bits_of_one_array(name, few_pairs):
    model, X = sampled(name)
    known = released(in_memory(model, X))
    for places in (cuts(2), cuts(50)):
        assert released(fitted(model, X, places, engine=LocalEngine)[0]) == known


@pytest.mark.quick("boxes", "axes", "published", "screen")
@pytest.mark.parametrize("name", MODELS)
def test_narrow_rows_in_parts_have_the_bits_of_one_array(name, few_pairs):
    model, X = sampled(name)
    X = X.astype(np.float32)
    known = released(in_memory(model, X))
    assert released(fitted(model, X, cuts(7), engine=LocalEngine)[0]) == known


@pytest.mark.parametrize("name", ["boxes", "axes", "balls"])
def test_threads_change_no_bits(name, few_pairs):
    """Each thread has a part of its own; a group is a point, wherever its rows are."""
    model, X = sampled(name)
    groups = np.arange(N) % 200
    for options in ({}, {"groups": groups}):
        known = in_memory(model, X, **options)
        found = in_memory(clone(model).set_params(n_jobs=3), X, **options)
        assert released(found) == released(known)
        labels = (getattr(each, "labels_", np.zeros(N)) for each in (found, known))
        assert np.array_equal(*labels)


def test_labels_are_those_of_the_rows():
    model, X = MODELS["balls"]
    known = in_memory(model, X)
    assert np.array_equal(fitted(model, X, cuts(7))[0].labels_, known.labels_)
    assert np.array_equal(known.labels_, known.predict(X))
    grouped = in_memory(model, X, groups=np.arange(N) // 2)
    assert np.array_equal(grouped.labels_, grouped.predict(X))


def test_answers_for_parts_are_those_in_memory():
    model, X = MODELS["screen"]
    found, parts = in_memory(model, X), [X[place] for place in cuts(7)]
    for name in ("predict", "transform", "decision_function"):
        assert np.array_equal(getattr(found, name)(parts), getattr(found, name)(X))
    assert found.score(parts) == pytest.approx(found.score(X), rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_of_rows_only_samples_travel(name, few_pairs):
    """Beside numbers of rows, counts of boxes of a sample, and sums of released shapes."""
    model, X = sampled(name)
    found, engine = fitted(model, X, np.split(np.arange(N), [101, 204]))
    sizes, rounds = {101, 103, 127}, getattr(found, "n_clusters", 1)
    collected, counted = 0, []
    for value in (value for sums in engine.sent for value in sums):
        if isinstance(value, ByPart):
            (held,) = value.values.values()
            collected += 0 if isinstance(held, int) else len(held)
        elif isinstance(value, CellCounts):
            counted.append(int(value.counts.sum()))
        else:
            assert isinstance(value, int) or not sizes & set(np.shape(value))
    assert collected < rounds * 170
    if name not in ("means", "screen"):  # which need no radius before there is a center
        assert collected > 60 and counted
        assert max(counted) <= 127 if name == "published" else max(counted) < 100
    assert 4 <= engine.passes <= 17 * rounds * getattr(found, "n_init", 1)


# --- audits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_replay_audit_of_parts(name, few_pairs):
    model, X = sampled(name)
    for pair in neighbors(X[:260], 0):
        assert violations(model, *pair, engine=LocalEngine) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_replay_audit_of_many_parts(name, few_pairs):
    """500 pairs of each that prove something, half of which compare all points."""
    pairs = [neighbors(MODELS[name][1][: 100 + seed], seed) for seed in range(230)]
    audit(sampled(name)[0], pairs[::2], proven=250)
    audit(MODELS[name][0], pairs[1::2], proven=250)


def caught(name, **options):
    """Whether an audit of some neighbors finds anything."""
    model, X = sampled(name)
    pairs = (pair for seed in range(4) for pair in neighbors(X[:260], seed))
    return any(violations(model, *pair, **options) for pair in pairs)


@pytest.mark.parametrize("name", ["boxes", "copies"])
def test_draws_by_position_within_a_part_are_caught(name, few_pairs, monkeypatch):
    model, X = sampled(name)
    known, tossed = released(in_memory(model, X)), Coins.mask

    def by_part(self, part):
        return tossed(replace(self, _firsts=dict.fromkeys(self._firsts, 0)), part)

    monkeypatch.setattr(Coins, "mask", by_part)
    assert released(fitted(model, X, cuts(7), engine=LocalEngine)[0]) != known
    assert caught(name, engine=LocalEngine)


def test_a_sample_that_its_part_decides_is_caught(few_pairs, monkeypatch):
    """Every third row, counted from the end of the part, and not each by its own coin."""

    def every_third(part, among, coins):
        rows = part[ROWS]
        x = np.concatenate([np.empty((0, rows.n_features)), *(x for _, x in rows.chunks())])
        return ByPart({part.source.number: x[::-3]})

    monkeypatch.setattr(_pairs, "collected", every_third)
    assert caught("boxes", engine=LocalEngine)


def test_boxes_that_are_named_by_part_are_caught(few_pairs, monkeypatch):
    """A name has to be a function of the box alone: counts of parts would not add up."""
    model, X = MODELS["boxes"]
    known = released(in_memory(model, X))

    def in_their_order(self, part, run=FullestBoxes.on):
        part, found = run(self, part)
        return part, tuple(CellCounts(np.arange(len(each.cells)), each.counts) for each in found)

    monkeypatch.setattr(FullestBoxes, "on", in_their_order)
    assert released(fitted(model, X, cuts(1), engine=LocalEngine)[0]) == known
    assert caught("boxes", engine=LocalEngine)


class BoxesLeftOut(Elsewhere):
    """A part that is lost counts as empty, where boxes are counted."""

    def added(self, number, total, sums):
        boxes = any(isinstance(value, CellCounts) for value in sums)
        return total if boxes and number == 1 else super().added(number, total, sums)


@pytest.mark.parametrize("name", ["boxes", "balls", "screen"])
def test_a_part_that_counts_twice_is_caught(name):
    model, X = MODELS[name]
    alone = [np.arange(N - 1), np.array([N - 1])]

    class CountedTwice(Twice):
        def added(self, number, total, sums):
            once = any(isinstance(value, ByPart) for value in sums)  # which refuses a part twice
            return (Elsewhere if once else Twice).added(self, number, total, sums)

    assert violations(model, X, X, alone, [alone[0], alone[1][:0]], engine=CountedTwice)
    with pytest.raises(ValueError, match="a part counts once"):
        fitted(model, X, cuts(2), engine=Twice)


@pytest.mark.parametrize("name", ["boxes", "balls", "screen"])
def test_a_part_that_is_left_out_is_caught(name):
    model, X = MODELS[name]
    known = released(in_memory(model, X))
    assert released(fitted(model, X, cuts(7), engine=LeftOut)[0]) != known


def test_a_part_whose_boxes_are_left_out_is_caught():
    """The cluster that the ball is about is in one of three parts."""
    model, X = MODELS["boxes"]
    known, clusters = released(in_memory(model, X)), [np.arange(N)[k::3] for k in range(3)]
    orders = [clusters[k:] + clusters[:k] for k in range(3)]
    found = [released(fitted(model, X, places, engine=BoxesLeftOut)[0]) for places in orders]
    assert any(each != known for each in found)
    assert released(fitted(model, X, orders[0])[0]) == known
