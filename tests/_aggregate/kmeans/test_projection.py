"""Clusters that are looked for in a public random projection: where, how, and at what cost."""

import math

import numpy as np
import pytest
from grid_tools import parts_in_memory, rows_in_memory

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import engine
from sklearn_dp._aggregate.kmeans.engine import _in_common, engine_entries, may_project
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp.audit import neighboring_pairs, replay_audit

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
D, K = 128, 12


def unit_rows(n, power, seed=0, d=D, k=K):
    """Clusters on the sphere that all have the spectrum i ** -power; labels."""
    rng = np.random.default_rng(seed)
    centers, noise = rng.normal(size=(k, d)), rng.normal(size=(n, d))
    centers *= 0.6 / np.linalg.norm(centers, axis=1, keepdims=True)
    widths = np.arange(1, d + 1) ** (-power / 2)
    labels = rng.integers(k, size=n)
    X = centers[labels] + 0.8 * noise * widths / np.linalg.norm(widths)
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


@pytest.fixture
def taken(monkeypatch):
    """Grows by one for each fit that goes through a projection."""
    found, through = [], engine._from_projection

    def spy(*arguments):
        found.append(through(*arguments))
        return found[-1]

    monkeypatch.setattr(engine, "_from_projection", spy)
    return found


def model(**options):
    chosen = {"n_clusters": K, "epsilon": 8.0, "bounds": 1.0, "random_state": 0, **options}
    return DPKMeans(**chosen)


@pytest.mark.parametrize(
    ("power", "options", "n", "projected"),
    [
        (2.0, {}, 4000, True),
        (2.0, {"bounds": None}, 4000, True),
        (0.0, {}, 4000, False),  # round clusters
        (2.0, {"epsilon": 0.5}, 4000, False),  # small data
        (2.0, {"n_clusters": 9}, 4000, False),  # as many as the axes of a tree tell apart
        (2.0, {"n_clusters": (10, 14)}, 4000, False),  # the number is to be chosen
    ],
)
def test_it_is_for_clusters_that_are_long_in_the_same_directions(
    power, options, n, projected, taken
):
    fitted = model(**options).fit(unit_rows(n, power)[0])
    assert len(taken) == projected
    moments = [x for x in fitted.privacy_report_.releases if x["release"] == "second moment"]
    looked = isinstance(fitted.n_clusters, int) and fitted.n_clusters > 9 and fitted.epsilon > 1
    assert len(moments) == (1 if projected else 1 + looked)
    assert fitted.privacy_report_.rho <= fitted.privacy_plan(D).rho


def test_it_finds_clusters_that_are_missed_otherwise(monkeypatch):
    """The mean over two fits: the excess over the cost of the true means is a third at most."""
    X, labels = unit_rows(20_000, 1.5, d=256, k=30)
    means = np.array([X[labels == j].mean(axis=0) for j in range(30)])
    best = np.square(X - means[labels]).sum()

    def excess():
        fits = [model(n_clusters=30, epsilon=2.0, random_state=seed).fit(X) for seed in range(2)]
        return np.mean([-fitted.score(X) / best - 1 for fitted in fits])

    found = excess()
    monkeypatch.setattr(engine, "_in_common", lambda *_: False)
    assert found < 0.1 and 3 * found < excess()


@pytest.mark.parametrize("grouped", [False, True])
def test_fits_and_their_neighbors_release_the_same_within_the_claims(grouped, taken):
    X = unit_rows(2000, 2.0)[0]
    groups = np.arange(len(X)) // 2 if grouped else None
    kinds = ("far", "duplicate", "random", "remove")
    pairs = [*neighboring_pairs(X, 0, kinds=kinds, groups=groups)]
    result = replay_audit(model(epsilon=30.0), X, pairs, groups=groups, strangers=False)
    assert result.violations == [] and len(taken) == 1 + len(pairs)
    for entry in ("second moment", "lloyd sums", "lloyd counts", "cells"):
        assert (0.2 if grouped else 0.5) < result.ratios[entry] <= 1, entry


def test_a_projection_that_depends_on_the_rows_is_seen(monkeypatch):
    """That of another number of rows is another one."""
    projected = engine._projected

    def mutant(rows, basis):
        return projected(rows, np.roll(basis, rows_in_memory(rows).n_rows, axis=0))

    monkeypatch.setattr(engine, "_projected", mutant)
    X = unit_rows(2000, 2.0)[0]
    pairs = [*neighboring_pairs(X, 0, kinds=("random",))]
    assert replay_audit(model(epsilon=30.0), X, pairs, strangers=False).violations


def test_axes_in_common_are_more_uneven_than_centers_make_them():
    rng = np.random.default_rng(2)
    for k in (12, 50, 100):
        centers = rng.normal(size=(k, 32))
        of_centers = np.linalg.eigvalsh(np.cov(centers.T))
        round_part = np.linalg.eigvalsh(np.cov(rng.normal(size=(10_000, 32)).T))
        # Half of the variance lies between round clusters, or between long ones.
        of_centers /= of_centers.mean()
        assert not _in_common(of_centers + round_part, 0.0, k, TUNING)
        long = np.arange(1, 33) ** -2.0
        assert _in_common(of_centers + long[::-1] / long.mean(), 0.0, k, TUNING)
    noisy = rng.normal(size=(32, 32)) * 0.05 / math.sqrt(2)
    one_axis = np.diag([1.6] + [1.0] * 31)
    values = np.linalg.eigvalsh(one_axis + (noisy + noisy.T) / math.sqrt(2))
    assert not _in_common(values, 0.05, 800, TUNING) and _in_common(values, 0.0, 800, TUNING)


def test_axes_of_distinct_clusters_are_uneven_and_not_in_common():
    rng, taken = np.random.default_rng(3), 0
    for _ in range(40):
        values = np.linalg.eigvalsh(np.cov(rng.normal(size=(64, 32)).T)) + 0.05
        uneven = np.log(values.mean()) - np.log(values).mean()
        assert uneven > TUNING.projection_uneven * 32 / 63
        taken += _in_common(values, 0.0, 64, TUNING)
    assert taken < 20  # with their unevenness alone, all of them


@pytest.mark.parametrize("bounds_known", [False, True])
def test_the_plan_pays_for_both_moments(bounds_known):
    entries = engine_entries(1.0, D, bounds_known=bounds_known, quality=True, n_clusters=K)
    assert sum(entry.rho for entry in entries) <= 1.0
    (moment,) = (entry for entry in entries if entry.name == "second moment")
    assert moment.uses is None
    assert moment.cap >= (1 + TUNING.second_moment) * moment.rho
    (few,) = (
        entry
        for entry in engine_entries(1.0, D - 1, bounds_known=bounds_known)
        if entry.name == "second moment"
    )
    assert few.uses == 1 and few.rho == moment.rho


def test_both_moments_fit_into_the_plan_whatever_is_rounded():
    """At one budget in eight the second one would exceed what is left by the last bit."""

    def exceeds(epsilon):
        entry = model(n_clusters=K, epsilon=epsilon).privacy_plan(D)["second moment"]
        return math.fsum([entry.rho, TUNING.second_moment * entry.rho, -entry.cap]) > 0

    epsilon = next(each for each in np.linspace(20.0, 24.0, 200) if exceeds(each))
    fitted = model(epsilon=epsilon).fit(unit_rows(4000, 0.0)[0])
    moments = [x for x in fitted.privacy_report_.releases if x["release"] == "second moment"]
    assert len(moments) == 2


def test_where_it_may_pay_is_public():
    assert may_project(128, 10, TUNING)
    assert not may_project(127, 10, TUNING) and not may_project(128, 9, TUNING)


def test_rows_keep_their_labels_for_one_iteration(taken, monkeypatch):
    """What the parts hold afterward is what they held before: rows of all features."""
    held, passes = [], engine.build_result

    def spy(context, *others, **options):
        (part,) = parts_in_memory(context.rows)
        held.append((set(part.state), part["rows"].n_features))
        return passes(context, *others, **options)

    monkeypatch.setattr(engine, "build_result", spy)
    model().fit(unit_rows(4000, 2.0)[0])
    assert taken and held == [({"rows"}, D)]


def test_parts_and_threads_change_no_bit(taken):
    X = unit_rows(4000, 2.0)[0]
    centers = [
        model(n_jobs=jobs).fit(rows).cluster_centers_
        for jobs, rows in ((1, X), (2, X), (1, np.array_split(X, 3)))
    ]
    assert len(taken) == 3
    assert np.array_equal(centers[0], centers[1]) and np.array_equal(centers[0], centers[2])
