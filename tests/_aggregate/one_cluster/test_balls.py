"""Means and radii of balls: what counts, targets."""

import math

import numpy as np
import pytest

from sklearn_dp._aggregate.one_cluster.center import choice, radius_squares
from sklearn_dp._queries.balls import counts_within


def softmax(scores, epsilon, sensitivity):
    weights = epsilon / (2 * sensitivity) * (scores - scores.max())
    return np.exp(weights) / np.exp(weights).sum()


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
