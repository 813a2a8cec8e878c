"""DPOneClusterKMeans: round after round, each with its own part of the plan."""

import numpy as np
import pytest

from sklearn_dp import DPOneClusterKMeans
from sklearn_dp._costs.plan import PlanError
from sklearn_dp.audit import replay_audit
from sklearn_dp.cluster import _dp_one_cluster

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def nearer_than_most(original):
    """Deactivate what is nearer than the mean: whether a point is, others decide."""

    def squared(rows, center):
        found = original(rows, center)
        return np.where(found <= found.mean(), 0.0, np.inf) if len(found) else found

    return squared


def every_round_at_full_price(original):
    return lambda rho, delta, search, prefix: original(2 * rho, 2 * delta, search, prefix)


@pytest.mark.slow
@pytest.mark.parametrize(
    "attribute, change",
    [("squared_distances", nearer_than_most), ("one_cluster_entries", every_round_at_full_price)],
)
def test_mutants_of_the_rounds_are_killed(monkeypatch, attribute, change):
    X = np.random.default_rng(2).normal(size=(30, 2))
    estimator = DPOneClusterKMeans(2, n_points=9, epsilon=100.0, bounds=4.0)
    assert replay_audit(estimator, X).violations == []
    monkeypatch.setattr(_dp_one_cluster, attribute, change(getattr(_dp_one_cluster, attribute)))
    try:
        found = replay_audit(estimator, X).violations
    except PlanError as error:  # no plan, no fit
        found = [str(error)]
    assert found != []


def test_a_message_says_how_many_balls_were_not_found():
    X = np.random.default_rng(0).normal(size=(20, 2))
    (lost,) = DPOneClusterKMeans(2, n_points=10, bounds=9.0, random_state=0).fit(X).messages_
    assert lost.code == "no_ball" and lost.text.startswith("2 of 2 balls: ")
