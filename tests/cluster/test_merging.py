"""Ward's method with weights against SciPy's of repeated rows; errors against derivatives."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage

from sklearn_dp.cluster._hierarchy import added_loss, least_size, total, variances, ward


@pytest.mark.parametrize(("k", "d"), [(2, 1), (7, 2), (60, 3), (300, 12)])
def test_equal_weights_give_the_tree_of_scipy(k, d):
    points = np.random.default_rng(k).normal(size=(k, d))
    merges, costs = ward(points, np.ones(k))
    expected = linkage(points, "ward")
    np.testing.assert_array_equal(merges, expected[:, :2])
    np.testing.assert_allclose(np.sqrt(2 * costs), expected[:, 2], rtol=1e-9)


def test_a_weight_is_so_many_rows():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(50, 3)), rng.integers(1, 9, size=50)
    repeated = linkage(np.repeat(points, weights, axis=0), "ward")
    first = weights.sum() - 50  # merges of equal rows
    np.testing.assert_allclose(repeated[:first, 2], 0, atol=1e-12)
    _, costs = ward(points, weights.astype(float))
    np.testing.assert_allclose(np.sqrt(2 * costs), repeated[first:, 2], rtol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_ties_end(spread):
    points = np.array([[i, j] for i in range(8) for j in range(8)]) * spread
    merges, costs = ward(points, np.ones(64))
    assert (np.diff(costs) >= 0).all() and len(np.unique(merges)) == 126
    assert is_valid_linkage(np.column_stack([merges, costs, np.full(63, 2.0)]))
    assert (merges < 64 + np.arange(63)[:, None]).all()


def test_rounding_turns_no_merges_around():
    """In a triangle of equal sides both merges cost the same, but for rounding."""
    for turn in np.arange(600) * 0.001:
        angles = turn + 2 * np.pi * np.arange(3) / 3
        merges, costs = ward(np.column_stack([np.cos(angles), np.sin(angles)]), np.ones(3))
        assert costs[0] <= costs[1] and merges[1, 1] == 3 and merges.max() == 3


def test_next_to_no_mass_joins_the_nearest_point():
    points = np.array([[0.0], [10.0], [2.0], [7.0]])
    merges, _ = ward(points, np.array([1.0, 1.0, 1e-12, 1e-12]))
    assert {tuple(pair) for pair in merges[:2].tolist()} == {(0, 2), (1, 3)}


def _mean(values, labels, directions):
    """Means of weighted points, or their directions, of points and weights in one vector."""
    d = len(values) // len(labels) - 1
    points, weights = values[: d * len(labels)].reshape(-1, d), values[d * len(labels) :]
    means = total(weights[:, None] * points, labels) / total(weights, labels)[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True) if directions else means


@pytest.mark.parametrize("directions", [False, True])
def test_variances_are_those_of_derivatives(directions):
    rng, labels = np.random.default_rng(1), np.array([0, 1, 0, 0, 1, 2])
    points, weights = rng.normal(size=(6, 3)), rng.uniform(1, 5, size=6)
    errors, noise = rng.uniform(0.01, 0.1, size=(6, 3)), rng.uniform(0.1, 0.5, size=6)
    at, sd = np.append(points, weights), np.append(errors, noise)
    steps = np.eye(len(at)) * 1e-6
    slopes = np.array(
        [_mean(at + h, labels, directions) - _mean(at - h, labels, directions) for h in steps]
    )
    expected = np.square(slopes / 2e-6 * sd[:, None, None]).sum(axis=0)
    share = weights / total(weights, labels)[labels]
    means = _mean(at, labels, False)[labels]
    pull = (points - means) * (share / weights * noise)[:, None]
    found = variances(share[:, None] * errors, pull, means, directions=directions)
    np.testing.assert_allclose(total(found, labels), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("error", "sd", "d"), [(0.2, 0.0, 4), (0.02, 25.0, 4), (1.4, 0.0, 60)])
def test_the_loss_is_unbiased_and_its_error_is_right(error, sd, d):
    """Means of 4,000 draws within 5.5 standard errors (false alarms below 1e-7). The noise of
    centers would be a bias of 23 of them or more, and an error that is off by 8% would show."""
    rng, labels = np.random.default_rng(2), np.array([0, 0, 0, 1, 1])
    points, mass = rng.normal(size=(5, d)), np.array([300.0, 200.0, 250.0, 200.0, 400.0])
    errors, noise = np.full((5, d), error), np.full(5, sd)

    def loss(points, mass, errors, noise):
        share = mass / total(mass, labels)[labels]
        means = total(share[:, None] * points, labels)[labels]
        return added_loss(mass, labels, points - means, errors, noise)

    truth, none = loss(points, mass, None, None)
    assert none is None
    n = 4000
    drawn = [
        loss(points + rng.normal(size=(5, d)) * errors, mass + rng.normal(size=5) * noise,
             errors, noise)
        for _ in range(n)
    ]  # fmt: skip
    values, told = np.transpose(drawn)
    spread = values.std()
    assert abs(values.mean() - truth) < 5.5 * spread / np.sqrt(n)
    ratio = np.square(told).mean() / np.square(values - truth).mean()
    assert 0.86 < ratio < 1.16


def test_bounds_of_sizes_hold_for_the_unions_that_noise_makes_look_largest():
    """The worst union of each draw, chosen by its true errors, is not below its bound in more than
    5% of 2,000 draws (136 allowed, false alarms below 1e-6, as the rate is at most 5%). A bound
    that does not count the choice, of normal errors at 95%, fails in more than half of them."""
    rng, k, wrong, naive = np.random.default_rng(3), 12, 0, 0
    for _ in range(2000):
        true, noise = rng.uniform(0, 60, size=k), rng.uniform(1, 20, size=k)
        weights = np.maximum(true + rng.normal(size=k) * noise, 0.0)
        order = np.argsort((true - weights) / noise)  # those that look too large come first
        unions = [order[: m + 1] for m in range(k)]
        wrong += any(least_size(weights[u], noise[u], k, 0.95) > true[u].sum() for u in unions)
        plain = [weights[u].sum() - 1.645 * np.linalg.norm(noise[u]) for u in unions]
        naive += any(bound > true[u].sum() for bound, u in zip(plain, unions, strict=True))
    assert wrong <= 136 and naive > 1200


def test_bounds_of_sizes():
    one = least_size(np.array([100.0]), np.array([10.0]), 1, 0.95)
    assert one == pytest.approx(100 - 10 * 1.959964)  # half of 5% is for the sets
    both = least_size(np.array([100.0, 0.0]), np.array([10.0, 1000.0]), 2, 0.95)
    assert both == least_size(np.array([100.0]), np.array([10.0]), 2, 0.95) < one
    assert least_size(np.array([-5.0]), np.array([1.0]), 1, 0.95) == 0
    many = least_size(np.full(1000, 10.0), np.full(1000, 1.0), 1000, 0.95)
    assert many > 10_000 - 5 * np.sqrt(1000)  # all together, and not a thousand times one
