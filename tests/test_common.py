"""What every public estimator has to pass; the estimators are found, not listed."""

from itertools import count

import numpy as np
import pytest
from mutants import MUTANTS
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import sklearn_dp
from sklearn_dp.audit import all_estimators, check_dp_estimator, killer, replay_audit
from sklearn_dp.audit._replay import ReplayResult

ESTIMATORS = dict(all_estimators())
GENEROUS = {"epsilon": 1000.0}

# Settings that lead an audit down every path of a fit. Estimators that are not here are audited
# with their defaults and with a generous budget.
TUPLES = {"n_clusters": 3, "n_tuples": 4, "epsilon": 1000.0}
AUDITED = {
    "DPKMeans": [{"n_clusters": 3}, {"n_clusters": 4, "epsilon": 100.0, "bounds": 8.0},
                 {"n_clusters": 2, "rho": 3.0, "bounds": (-4.0, 5.0)}],
    "DPKTupleKMeans": [{"n_clusters": 3}, TUPLES, {**TUPLES, "bounds": 6.0, "delta": 1e-2},
                       {**TUPLES, "n_tuples": 2, "fallback": "public"}],
    "DPOneCluster": [{}, {"epsilon": 100.0, "n_points": 3, "bounds": 9.0},
                     {"epsilon": 1000.0, "n_points": 5, "sample_size": 8},
                     {"epsilon": 1.0, "n_points": 5, "sample_size": 8},
                     {"epsilon": 100.0, "center_method": "pca", "n_points": 3},
                     {"epsilon": 100.0, "n_points": 0.6},
                     {"epsilon": 300.0, "n_init": 2, "n_points": 3}],
    "DPOneClusterKMeans": [{"n_clusters": 2}, {"n_clusters": 2, "epsilon": 300.0, "bounds": 9.0}],
    "DPOutlierScreen": [{}, {"epsilon": 100.0, "bounds": 9.0}],
    "SampleAndAggregate": [{"n_blocks": 6, "epsilon": 50.0, "aggregator": name, **bounds}
                           for name in ("one_cluster", "friendly_core", "mean")
                           for bounds in ({}, {"output_bounds": 3.0})],
    "DPGaussianMixture": [
        {}, {"n_components": 3, "epsilon": 100.0},
        {"n_components": 3, "method": "partition", "epsilon": 300.0},
        {"n_components": 2, "method": "partition", "terrific_ball": "points", "epsilon": 1000.0},
        {"n_components": 2, "method": "partition", "covariance_type": "spherical",
         "epsilon": 300.0, "bounds": 9.0},
        {"n_components": 2, "method": "k_tuples", "n_tuples": 3, "epsilon": 1000.0}],
    "FriendlyCovariance": [
        {}, {"epsilon": 100.0}, {"epsilon": 20.0, "method": "gram", "bounds": 9.0},
        {"epsilon": 300.0, "method": "friendly_core", "n_blocks": 30, "assume_centered": True}],
    "FriendlyMean": [{}, {"rho": 8.0, "locate": "zcdp"}, {"rho": 8.0, "locate": "basic"},
                     {"rho": 8.0, "refine": False}, {"epsilon": 20.0, "bounds": 20.0},
                     {"epsilon": 30.0, "locate": "cells", "diameter": 10.0}],
}
MUTATED = {
    "DPKMeans": [{"n_clusters": 3, "epsilon": 100.0}],
    "DPKTupleKMeans": [{"n_clusters": 2, "n_tuples": 20, "epsilon": 1000.0, "bounds": 30.0}],
    "DPOneCluster": [{"epsilon": 20.0, "n_points": 8}],
    "DPOneClusterKMeans": [{"n_clusters": 2, "epsilon": 20.0, "n_points": 8}],
    "DPOutlierScreen": [{"epsilon": 5.0, "n_points": 8}],
    "SampleAndAggregate": [{"n_blocks": 12, "epsilon": 20.0}],
    "FriendlyMean": [{"rho": 8.0, "locate": "zcdp"}],
    "FederatedDPKMeans": [{"n_clusters": 3, "epsilon": 100.0}],
    "DPPCA": [{"epsilon": 5.0}], "FriendlyCovariance": [{"epsilon": 100.0}],
    "DPGaussianMixture": [{"n_components": 2, "epsilon": 100.0}],
}
_NO_LABELS = {"labels in the pickle", "labels in the HTML display"}
# Bugs that are none: these have no labels, and a group is one point of theirs, without a weight; a
# ball takes what is inside, wherever else points are.
POINTS = {"group weight ignored", "labels in the pickle", "labels in the HTML display"}
HARMLESS = {
    # Rows are moved into the bounds, and into the ball of the second moment, before these clips.
    "DPPCA": _NO_LABELS | {"rows out of bounds refused", "second moment without a clip"},
    "FriendlyCovariance": _NO_LABELS | {"rows out of bounds refused"},
    "DPGaussianMixture": _NO_LABELS,
    "FriendlyMean": POINTS,
    # The ball of their second moment is the domain, which holds all points.
    "DPOneCluster": {*POINTS, "clip skipped", "second moment without a clip"},
    "DPOneClusterKMeans": {"group weight ignored", "clip skipped", "second moment without a clip"},
    "DPOutlierScreen": {*POINTS, "clip skipped", "second moment without a clip"},
    # Rows are clipped before the inner fits; outputs out of bounds, and blocks that are dropped
    # (by 15 rows, which no neighbours here are across), are mutants of its own tests.
    "SampleAndAggregate": {*POINTS, "clip skipped", "rows out of bounds refused",
                           "failed blocks dropped"},
    # A client is one vector, clipped as a whole: its rows need no weights.
    "FederatedDPKMeans": {"group weight ignored"},
}

# Minutes each: the others have audits of their own in the normal suite, and these in `make audit`.
QUICK = {"DPKMeans", "DPKTupleKMeans", "FriendlyMean"}
LONG = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in ESTIMATORS]


def instances():
    return [cls(**options) for cls in ESTIMATORS.values() for options in ({}, GENEROUS)]


@pytest.fixture(autouse=True)
def one_thread():
    """Small arrays: more threads only get into each other's way."""
    with threadpool_limits(1):
        yield


# -- scikit-learn's contract, and ours -------------------------------------------------------------


@parametrize_with_checks(instances())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Two rounds make the same releases as eight, in the same way: the checks that fit hundreds of
# times do with them here, and take the defaults in `make audit`.
FEW_ROUNDS = {"DPOneClusterKMeans": {"n_clusters": 2}}
DEAR = {"check_replay", "check_noise_law", "check_no_leaks", "check_small_data", "check_pickle"}


def our_checks():
    for estimator in instances():
        few = FEW_ROUNDS.get(type(estimator).__name__, {})
        for instance, check in check_dp_estimator(estimator, generate_only=True):
            dear = few and check.__name__ in DEAR
            yield pytest.param(instance, check, id=f"{instance}-{check.__name__}",
                               marks=pytest.mark.slow if dear else ())
            if dear:
                small = clone(instance).set_params(**few)
                yield pytest.param(small, check, id=f"{small}-{check.__name__}")


@pytest.mark.parametrize(("estimator", "check"), our_checks())
def test_privacy_checks(estimator, check):
    check(estimator)


def test_public_estimators_are_exported():
    for name, cls in ESTIMATORS.items():
        assert getattr(sklearn_dp, name) is cls
        assert name in sklearn_dp.__all__


# -- replay ----------------------------------------------------------------------------------------


def data_sets():
    """Clusters in 2 to 12 dimensions, ties, equal rows, far away; and next to nothing."""
    rng = np.random.default_rng(7)
    places = 3 * rng.uniform(-1, 1, size=(3, 12))

    def clusters(n, d):
        return places[np.arange(n) % 3, :d] + 0.2 * rng.uniform(-1, 1, size=(n, d))

    yield clusters(200, 3)
    yield clusters(40, 12)
    yield 1e5 + 1e3 * clusters(30, 2)
    yield rng.integers(0, 3, size=(40, 4)).astype(float)
    yield np.tile(clusters(1, 5), (20, 1))
    for n in (0, 1, 2):
        yield clusters(n, 3)


def audits(estimator, seed):
    """Replay audits of one estimator on all the data sets, with rows and with groups as units."""
    for X in data_sets():
        yield replay_audit(estimator, X, random_state=seed)
        if len(X) > 2:
            groups = np.random.default_rng(seed).integers(0, len(X) // 2, size=len(X))
            yield replay_audit(estimator, X, groups=groups, random_state=seed + 1)


@pytest.mark.parametrize("name", LONG)
def test_a_thousand_neighbours(name):
    settings = AUDITED.get(name, [{}, GENEROUS])
    total = ReplayResult(name)
    for number in count():
        for result in audits(ESTIMATORS[name](**settings[number % len(settings)]), 2 * number):
            total += result
        assert total.violations == [] and total.n_voided <= 0.1 * total.n_pairs
        if number >= len(settings) - 1 and total.n_pairs - total.n_voided >= 1000:
            break
    assert all(ratio <= 1 + 1e-12 for ratio in total.ratios.values())
    # Claims that are far too large would be safe, and waste the budget.
    assert max(total.ratios.values()) > 0.999


# -- mutants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LONG)
def test_mutants_are_killed(name):
    (options,) = MUTATED.get(name, [GENEROUS])
    estimator = ESTIMATORS[name](**options)
    bugs = [bug for bug in MUTANTS if bug.name not in HARMLESS.get(name, ())]
    killed = {bug.name: killer(bug, estimator) for bug in bugs}
    assert [bug for bug, check in killed.items() if check is None] == []
    assert len([check for check in killed.values() if check != "not reached"]) >= 20
