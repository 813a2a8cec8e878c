"""Clusters that are looked for in a public random projection: where, how, and at what cost."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import engine
from sklearn_dp.audit import neighboring_pairs, replay_audit

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
