"""Means and radii of balls: what counts, targets."""

import math

import numpy as np
import pytest
from grid_tools import exact, points_of

from sklearn_dp._aggregate.one_cluster.balls import choice, radius_squares
from sklearn_dp._queries.balls import BallCounts, BallSum, CountsAbout, Crossing, counts_within


def softmax(scores, epsilon, sensitivity):
    weights = epsilon / (2 * sensitivity) * (scores - scores.max())
    return np.exp(weights) / np.exp(weights).sum()


def test_only_active_points_in_the_ball_count():
    points = np.array([[0.0, 0], [3, 4], [3, 5], [1000, 0], [0, 1]])
    everybody, few = points_of(points), points_of(points, active=np.arange(5) < 4)
    counts = few.ask(CountsAbout(np.array([[0.0, 0], [1000, 0]]), 25.0))
    assert exact(counts).tolist() == [2, 1]
    squares, crossing = np.array([0.0, 25.0, 1e6]), Crossing(4, 3)
    scores, counts = exact(few.ask(BallCounts(np.zeros(2), squares, crossing)))
    assert counts.tolist() == [1, 2, 4] and scores.tolist() == [0, 1, 2]
    assert exact(few.ask(BallSum(np.zeros(2), 25))).tolist() == [3, 4, 2]
    assert exact(everybody.ask(BallSum(np.zeros(2), 25))).tolist() == [3, 5, 3]
    assert exact(everybody.ask(BallSum(np.zeros(2), 25, "nobody's name"))).tolist() == [3, 5, 3]
    assert exact(everybody.ask(BallSum(np.array([3.0, 0]), 16))).tolist() == [-6, 5, 3]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_radius_of_a_ball_is_just_large_enough(epsilon):
    """one_cluster:6, exactly: probabilities, and the bounded range between neighbors."""
    rng = np.random.default_rng(11)
    squared = np.floor(2**30 * rng.random(1000))
    squares, target = radius_squares(2.0**9, 2.0**16, 2**0.0625), 500
    crossing, known = choice(target, len(squares), epsilon**2 / 8)
    assert known == pytest.approx(epsilon)
    chances = []
    for data in (squared, squared[1:]):
        chances.append(softmax(crossing.scores(counts_within(data, squares)), epsilon, 1))
    counts = counts_within(squared, squares)
    good = (counts > target - crossing.slack) & (np.append(0, counts[:-1]) < target)
    assert chances[0][good].sum() >= 0.95
    ratio = np.log(chances[0]) - np.log(chances[1])
    assert ratio.max() - ratio.min() <= epsilon + 1e-9
    assert crossing.slack == math.ceil(4 / known * math.log(len(squares) / 0.05))
