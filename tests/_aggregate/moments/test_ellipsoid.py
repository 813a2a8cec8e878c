"""Released components: what they make of a row is exact."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import ellipsoid


class Whitened:
    """A component that takes a row as its own whitened coordinates."""

    def whiten(self, x, steps):
        return x


@pytest.mark.parametrize("d", [1, 2**13 - 1, 2**13, 2**14])
def test_squared_lengths_of_far_rows_are_exact_in_any_number_of_features(d):
    """Odd numbers: squares that do not fit into 53 bits together would be rounded."""
    limit = int(ellipsoid._FARTHEST if d < 2**13 else ellipsoid._FARTHEST / 2)
    x = np.array([np.full(d, limit - 1.0), np.where(np.arange(d) % 2, 1.0, -1e300)])
    energy = ellipsoid._energy(Whitened(), x)
    squares = (energy * (2 * ellipsoid._FINE**2)).tolist()
    ones = d // 2
    assert squares == [d * (limit - 1) ** 2, (d - ones) * limit**2 + ones]
    assert max(squares) < 2**53
