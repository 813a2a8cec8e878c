"""The second replay finds nothing in the estimators, and finds what is planted."""

import numpy as np
import pytest
from configurations import ESTIMATORS, configurations
from second_replay import (
    DISTANCES,
    claimed_half,
    data_sets,
    fitting,
    halves,
    less_noise,
    line_of,
    planted,
    quietly,
    replayed,
)
from sklearn.base import clone

from sklearn_dp import DPOneCluster
from sklearn_dp.audit._laws import KINDS

ONE_SETTING = {name: configurations("mutants", name)[0].estimator for name in ESTIMATORS}
KMEANS = ONE_SETTING["DPKMeans"]


@pytest.mark.quick(
    "DPKMeans", "DPGaussianMixture", "FederatedDPKMeans", "FriendlyMean", "SampleAndAggregate"
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_is_farther_from_a_neighbor_than_it_claims(name):
    """One setting and one data set; all of them in `make audit`."""
    result = replayed(ONE_SETTING[name], [next(data_sets())])
    assert result.problems == [] and result.voided < result.pairs
    assert max(result.ratios.values()) > 0.9


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_setting_is_farther_from_a_neighbor_than_it_claims(name):
    line, problems = line_of(name, plant=False)
    assert problems == [], line


# Half of these claims is more than these few pairs realize: a friendly core drops the row that
# would move it most, tuples of clear clusters stay as they are, and the published steps of mixtures
# ask for rows at the border of a released ball. The first replay has thousands of pairs.
ROOM = {
    "FriendlyMean": {"core mean"},
    "FriendlyCovariance": {"core covariance"},
    "DPKTupleKMeans": {"tuples/radius", "tuples/core", "tuples/size", "tuples/average"},
    "SampleAndAggregate": {"tuples/average"},
    "DPGaussianMixture": {
        "tuples/size",
        "partition/principal axes",
        "partition/level #/ball/test",
        "partition/level #/projected ball/radius",
    },
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_half_of_a_claim_is_half_of_what_a_fit_states(name):
    """One entry of each kind. Claims that are not halved any more would look like claims that are
    too large, hours later."""
    estimator = ONE_SETTING[name]
    X = fitting(estimator)[0]

    def stated():
        _, events, _ = quietly(clone(estimator).set_params(random_state=0).fit, X)
        return [e for e in events if e.sensitivity is not None]

    whole = stated()
    for event in {e.kind: e for e in whole}.values():
        first = next(e for e in whole if e.entry == event.entry)
        with claimed_half(event.entry):
            half = next(e for e in stated() if e.entry == event.entry)
        np.testing.assert_array_equal(half.sensitivity, np.asarray(first.sensitivity) / 2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_halved_sensitivity_is_caught(name):
    missed = {entry for entry, label in halves(name).items() if label is None}
    assert missed <= ROOM.get(name, set())


# Not looked at here: attributes that no pickle holds, predictions, groups of several sizes, and
# fits without rows.
UNSEEN = {
    "a sum in memory that pickles leave out",
    "predictions tell the parity of n",
    "the largest group shown",
    "group weight ignored",
    "empty release skipped",
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["DPKMeans", "FriendlyMean"])
def test_seeded_bugs_are_caught(name):
    caught = planted(name)
    assert len(caught) > 10
    assert {bug for bug, found in caught.items() if not found} <= UNSEEN


@pytest.mark.parametrize("estimator", [KMEANS, DPOneCluster(epsilon=20.0, n_points=8)], ids=str)
def test_noise_that_is_too_small_by_a_thousandth_is_caught(estimator):
    with less_noise(1.001):
        problems = replayed(estimator, [next(data_sets())], stop=True).problems
    assert any("less noise than it is charged for" in text for text in problems)


def test_it_knows_the_kinds_of_releases_that_the_first_one_knows():
    assert DISTANCES.keys() == KINDS.keys()
