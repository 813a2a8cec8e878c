"""Means and radii of balls: sensitivity, what counts, targets."""

import math

import numpy as np
import pytest
from grid_tools import parts_in_memory

from sklearn_dp._aggregate.one_cluster import (
    balls as _balls,
)
from sklearn_dp._aggregate.one_cluster.pair_counts import (
    counts_within,
)
from sklearn_dp._rows.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def softmax(scores, epsilon, sensitivity):
    weights = epsilon / (2 * sensitivity) * (scores - scores.max())
    return np.exp(weights) / np.exp(weights).sum()


def ball_statistics(points, center, radius, replace):
    """The claim of `ball_mean` about neighbors, on exact statistics."""
    rows = _balls.points_of(Rows.of(points, 2.0**24))
    recorded = []

    class Recorder:
        def gaussian(self, entry, value, *, sensitivity, rho):
            recorded.append((value, sensitivity))
            return value.astype(float)

    _balls.ball_mean(Recorder(), "e", rows, _balls.Region(center, radius), 1.0, replace=replace)
    return recorded[0]


@pytest.mark.parametrize("replace", [False, True])
def test_sensitivity_of_a_mean_in_a_ball(replace):
    rng = np.random.default_rng(10)
    worst = 0.0
    for _ in range(2000):
        d = int(rng.integers(1, 4))
        center = rng.integers(-20, 20, d).astype(float)
        radius = float(rng.uniform(1, 40))
        points = rng.integers(-60, 60, (int(rng.integers(1, 6)), d)).astype(float)
        direction = rng.normal(size=d)
        on_border = np.trunc(center + radius * direction / np.linalg.norm(direction))
        points[0] = on_border
        other = points[1:]
        if replace:
            other = np.vstack([other, 2 * center - on_border])
        (a, s), (b, _) = (ball_statistics(x, center, radius, replace) for x in (points, other))
        distance = math.sqrt(float(np.sum(((a - b) / s) ** 2)))
        assert distance <= 1.0
        worst = max(worst, distance)
    assert worst > 0.97  # a constant smaller by 3 % would have been caught


def test_points_outside_the_ball_do_not_count():
    points = np.array([[0.0, 0], [3, 4], [3, 5], [1000, 0]])
    (value, _) = ball_statistics(points, np.zeros(2), 5.0, False)
    assert value.tolist() == [3, 4, 2]


def test_only_active_points_count():
    points = np.array([[0.0, 0], [3, 4], [3, 5], [1000, 0], [0, 1]])
    active = np.array([True, True, True, True, False])
    rows = _balls.points_of(Rows.of(points, 2.0**24), active)
    counts = _balls.counts_about(rows, np.array([[0, 0], [1000, 0]]), np.array([0.0, 25.0, 1e6]))
    assert counts.tolist() == [[1, 2, 4], [1, 1, 4]]
    assert (value := _balls._sum_in_ball(*parts_in_memory(rows.table), np.zeros(2), 25, "active"))
    assert value[1][0].tolist() == [3, 4] and value[1][1] == 2
    assert _balls._sum_in_ball(*parts_in_memory(rows.table), np.zeros(2), 25, "none")[1][1] == 3


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_radius_of_a_ball_is_just_large_enough(epsilon):
    """one_cluster:6, exactly: probabilities, and the bounded range between neighbors."""
    rng = np.random.default_rng(11)
    squared = np.floor(2**30 * rng.random(1000))
    squares = _balls.radius_squares(2.0**9, 2.0**16, 2**0.0625)
    target, slack = 500, math.ceil(4 / epsilon * math.log(len(squares) / 0.05))
    before = np.arange(len(squares)) - 1
    chances = []
    for data in (squared, squared[1:]):
        counts = counts_within(data, squares)
        chances.append(softmax(_balls.window_scores(counts, target, slack, before), epsilon, 1))
    counts = counts_within(squared, squares)
    good = (counts > target - slack) & (np.append(0, counts[:-1]) < target)
    assert chances[0][good].sum() >= 0.95
    ratio = np.log(chances[0]) - np.log(chances[1])
    assert ratio.max() - ratio.min() <= epsilon + 1e-9
