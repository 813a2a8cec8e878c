"""Facts, and a released center."""

import numpy as np

from sklearn_dp._aggregate.friendly.mean_facts import Candidate, PublicFacts


def test_a_ball_about_a_released_center_holds_the_data():
    """All points are within a diameter of their mean, so within diameter + miss of the center."""
    rng = np.random.default_rng(0)
    for d in (1, 3, 50):
        X = rng.normal(size=(100, d))
        diameter = max(np.linalg.norm(X - x, axis=1).max() for x in X)
        facts = PublicFacts(100.0, d, diameter, 1.0, 1e-6, None)
        for miss in (0.1, 1.0, 10.0):
            direction = rng.normal(size=d)
            center = X.mean(axis=0) + miss * direction / np.linalg.norm(direction)
            candidate = Candidate.within(center, miss, 1.0, facts)
            assert np.linalg.norm(X - center, axis=1).max() <= candidate.ball
            assert candidate.clip < candidate.ball
