"""Terrific balls about released centers: scores, counts, the ball that is found."""

import math

import numpy as np
import pytest
from mixture_tools import session_of, two_balls

from sklearn_dp._published.terrific import joint_ball, joint_entries
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._queries.halves import terrific_scores


def test_the_score_is_the_least_of_three():
    inside, around, outside = [5, 2, 9, 9, 0], [0, 0, 1, 8, 0], [9, 9, 3, 9, 9]
    scores = terrific_scores(*map(np.array, (inside, around, outside)), 4)
    assert scores.tolist() == [4, 2, 3, 0, 0]  # full; too few; too few outside; not empty; empty
    every = np.array(np.meshgrid(*[range(7)] * 3)).reshape(3, -1)
    for t in (1, 3, 9):
        score = terrific_scores(*every, t)
        assert score.min() >= 0 and score.max() <= t
        for part in range(3):  # one point more in one of the classes
            more = every.copy()
            more[part] += 1
            assert np.abs(terrific_scores(*more, t) - score).max() == 1


@pytest.mark.parametrize("largest", [False, True])
def test_a_joint_ball_isolates_a_cluster(largest):
    rows = GridRows.of_rows(two_balls())
    centers = np.array([[0.0, 0, 0], [1e5, 0, 0], [5e4, 0, 0]])
    radii = 1.5e5 * 2 ** (0.4 * np.arange(-18.0, 1))
    session = session_of(*joint_entries(8.0, ""), rho=9.0)
    ball = joint_ball(session, "", rows, 150, 1.5, centers, largest=largest, radii=radii)
    assert 250 < ball.inside < 350 and 250 < ball.outside < 350
    length = math.sqrt(ball.square)
    assert 1000 < length < 1e5 and np.linalg.norm(ball.center - [5e4, 0, 0]) == 5e4
    alike = [r for r in radii if r > 1000 and 1.5 * r < 99000]
    middle = math.sqrt(1.5) * np.median(alike)  # cuts are in the middle of the empty region
    assert length >= middle if largest else length <= middle
    assert (
        joint_ball(
            session_of(*joint_entries(8.0, ""), rho=9.0),
            "",
            rows,
            700,
            1.5,
            centers,
            largest=largest,
            radii=radii,
        )
        is None
    )  # 350 on either side
