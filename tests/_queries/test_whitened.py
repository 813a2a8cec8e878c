"""Released components: what they make of a row is exact."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sklearn_dp._parameters import domain_of
from sklearn_dp._queries import whitened
from sklearn_dp._queries.whitened import WEIGHT_STEPS, Whitening, component_weights
from sklearn_dp._rows.rows import Rows


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
