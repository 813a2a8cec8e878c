"""DPOneClusterKMeans: round after round, each with its own part of the plan."""

import numpy as np

from sklearn_dp import DPOneClusterKMeans


def test_a_message_says_how_many_balls_were_not_found():
    X = np.random.default_rng(0).normal(size=(20, 2))
    (lost,) = DPOneClusterKMeans(2, n_points=10, bounds=9.0, random_state=0).fit(X).messages_
    assert lost.code == "no_ball" and lost.text.startswith("2 of 2 balls: ")
