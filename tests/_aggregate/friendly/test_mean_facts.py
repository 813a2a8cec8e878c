"""Facts, a released center, and which points are compared."""

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly.mean_facts import Facts, Here, most_pairs, sample_of
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def session(seed=0):
    plan = PrivacyPlan(
        PrivacyBudget(rho=1.0, delta=1e-6), (PlanEntry("size", Mechanism.GAUSSIAN, 0.5),)
    )
    return PrivacySession(plan, random_state=seed)


def test_a_ball_about_a_released_center_holds_the_data():
    """All points are within a diameter of their mean, so within diameter + miss of the center."""
    rng = np.random.default_rng(0)
    for d in (1, 3, 50):
        X = rng.normal(size=(100, d))
        diameter = max(np.linalg.norm(X - x, axis=1).max() for x in X)
        facts = Facts(100.0, d, diameter, 1.0, 1e-6, None)
        for miss in (0.1, 1.0, 10.0):
            direction = rng.normal(size=d)
            center = X.mean(axis=0) + miss * direction / np.linalg.norm(direction)
            here = Here.within(center, miss, 1.0, facts)
            assert np.linalg.norm(X - center, axis=1).max() <= here.ball
            assert here.clip < here.ball


def test_samples_of_neighbours_are_neighbours():
    """The coins of a point do not depend on which points come after it."""
    points = np.zeros((20_000, 2))
    whole = sample_of(session(), points, 20_000.0)
    assert np.array_equal(sample_of(session(), points[:-1], 20_000.0), whole[:-1])
    # 4096 on average: seven standard deviations.
    assert abs(np.count_nonzero(whole) - most_pairs(2)) < 7 * np.sqrt(4096)
    assert sample_of(session(), points[:4000], 4000.0).all()
