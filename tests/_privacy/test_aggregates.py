"""Each mechanism against a hand-computed statistic, and its sensitivity against neighbors."""

import numpy as np
import pytest

from sklearn_dp._privacy import _grid as aggregates


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_of_norms_are_those_of_safe_norms(side, dtype):
    """On edges, a last bit from one, and where squares overflow or vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 7))
    X *= (2.0 ** (rng.integers(-8, 8, size=4000) / 2) / aggregates.safe_norms(X))[:, None]
    X[:40] *= 10.0 ** np.linspace(-37, 37, 40)[:, None]
    X[40:80] = 0
    X[60:80, 0] = 2.0 ** np.arange(-10, 10)
    X = X.astype(dtype)
    norms = aggregates.safe_norms(X)
    if dtype == np.float64:
        X[:20], X[20:40] = X[:20] * 1e-140, X[20:40] * 1e130
        norms = aggregates.safe_norms(X)
    for edges in (aggregates.NORM_EDGES[1:-1], norms[90:91], np.unique(norms[80:]), norms[:40]):
        found = aggregates.norm_places(X, np.unique(edges), side)
        assert np.array_equal(found, np.searchsorted(np.unique(edges), norms, side))
    # Whatever is guessed, no place is wrong.
    edges = aggregates.NORM_EDGES[1:-1]
    for guess in (aggregates._octave_halves, lambda squares: np.arange(len(squares)) % 401):
        found = aggregates.norm_places(X, edges, side, guess)
        assert np.array_equal(found, np.searchsorted(edges, norms, side))


def test_guessed_bins_of_norms_are_right_off_the_edges():
    norms = 10.0 ** np.random.default_rng(0).uniform(-35, 35, size=10_000)
    expected = np.searchsorted(aggregates.NORM_EDGES[1:-1], norms)
    assert np.array_equal(aggregates._octave_halves(np.square(norms)), expected)
