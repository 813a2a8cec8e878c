"""Released components: what they make of a row is exact."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import whitened
from sklearn_dp._queries.whitened import (
    WEIGHT_STEPS,
    WEIGHTS,
    WhitenedDistances,
    WhitenedMoments,
    Whitening,
    component_weights,
)
from sklearn_dp._rows.rows import ROWS, Rows
from sklearn_dp._rows.table import ArraySource, Part


class Whitened:
    """A component that takes a row as its own whitened coordinates."""

    def whitened(self, products, steps):
        return products


@pytest.mark.parametrize("d", [1, 2**13 - 1, 2**13, 2**14])
def test_squared_lengths_of_far_rows_are_exact_in_any_number_of_features(d):
    """Odd numbers: squares that do not fit into 53 bits together would be rounded."""
    limit = int(whitened._FARTHEST if d < 2**13 else whitened._FARTHEST / 2)
    x = np.array([np.full(d, limit - 1.0), np.where(np.arange(d) % 2, 1.0, -1e300)])
    squares = (Whitening.squares(Whitened(), x.T) * whitened._FINE**2).tolist()
    ones = d // 2
    assert squares == [d * (limit - 1) ** 2, (d - ones) * limit**2 + ones]
    assert max(squares) < 2**53


def random_components(rng, d, k):
    parts = []
    for _ in range(k):
        axes, scales, _ = np.linalg.svd(rng.normal(size=(d, d)) * 10.0 ** rng.uniform(4, 6))
        center = np.rint(rng.normal(size=d) * 1e6)
        parts.append(Whitening(center, axes, scales, rng.uniform(1, 50)))
    return tuple(parts)


def rows_of(X):
    return Rows.quantize(X, domain_of(3.0, X.shape[1]))


def test_weights_are_responsibilities_and_sum_to_at_most_one():
    rng = np.random.default_rng(0)
    parts = random_components(rng, 3, 4)
    X = np.vstack([rng.normal(size=(2000, 3)), 1e9 * rng.normal(size=(50, 3)), np.zeros((1, 3))])
    ((_, x),) = rows_of(X).chunks(4)
    squares = [p.squares(p.products(x)) for p in parts]
    weights = component_weights(len(x), squares, parts)
    total = weights.astype(np.int64).sum(axis=1)
    assert total.max() <= WEIGHT_STEPS and total.min() > 0.99 * WEIGHT_STEPS
    factors = [p.axes * p.scales for p in parts]
    density = np.stack(
        [
            p.weight * multivariate_normal(p.center, factor @ factor.T).pdf(x)
            for p, factor in zip(parts, factors, strict=True)
        ],
        axis=1,
    )[:2000]
    seen = density.sum(axis=1) > 0
    expected = density[seen] / density[seen].sum(axis=1, keepdims=True)
    assert np.abs(weights[:2000][seen] / WEIGHT_STEPS - expected).max() < 0.01
    assert (weights[:2000][seen].argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.999
    assert (component_weights(len(x), [], parts[:1]) == WEIGHT_STEPS).all()


def test_weights_that_are_held_are_those_that_would_be_found():
    """Sums of moments with and without them; after these, none are held."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    parts = tuple(
        Whitening(np.rint(4e6 * center), np.eye(3), np.full(3, 3e6), 2.0) for center in np.eye(3)
    )
    before = Part(ArraySource(X), Units(500), {ROWS: rows_of(X)})
    held = WhitenedDistances(parts, np.array([0.0, 1.0, 2.0])).on(before)[0]
    assert len(np.unique(held[WEIGHTS])) > 100
    asked = WhitenedMoments(parts, (2.0, 2.0))
    after, found = asked.on(held)
    assert WEIGHTS not in after.state
    for one, other in zip(found, asked.on(before)[1], strict=True):
        assert np.array_equal(one, other)


def test_weights_of_rows_multiply_those_of_components():
    """By hand: a row of weight 1/4 adds a quarter of what a whole one does."""
    rows = Rows.of(np.array([[2.0, 0.0], [2.0, 0.0]]), 8.0)
    asked = WhitenedMoments((Whitening(np.zeros(2), np.eye(2), np.full(2, 2.0)),), (2.0, 2.0))
    found = []
    for part in (0.25, 1.0):
        units, _ = Units.weighted(np.array([part, part]), 1.0)
        found.append(asked.on(Part(None, units, {ROWS: rows}))[1])
    quarter, whole = found
    assert whole[0].tolist() == [2 * WEIGHT_STEPS] and quarter[0].tolist() == [WEIGHT_STEPS // 2]
    for i in (1, 2):
        assert whole[i].any() and (4 * quarter[i] == whole[i]).all()
