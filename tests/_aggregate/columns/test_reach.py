"""Clips of columns without bounds: where they are, and what they are told to take."""

import numpy as np
import pytest

from sklearn_dp._aggregate.columns.reach import EDGES, reach_of


@pytest.mark.parametrize("n", [2000, 20_000])
def test_clips_are_near_the_rows_and_tell_what_they_take(n):
    """Whatever the tail: losses are as they are told, and noise and loss are small together."""
    rng, sd, noise, size = np.random.default_rng(0), 12.0, 8.0, (50, len(EDGES))
    uniform, normal = rng.uniform(-1.5, 1.5, n), rng.normal(size=n)
    laws = [uniform, normal, rng.exponential(size=n), rng.standard_t(4, n)]
    for x, most in zip(laws, (0.03, 0.06, 0.1, 0.2), strict=True):
        away = np.abs(x - x.mean()) / x.std()
        counts = np.histogram(away, np.append(EDGES, np.inf))[0] + rng.normal(0, sd, size)
        sds, noises, far = (np.full(50, each) for each in (sd, noise, np.inf))
        found = reach_of(counts, sds, noises, far, np.full(50, n), far)
        inside = np.minimum(away[:, None], found.clip)
        lost, taken = 1 - np.sqrt(np.square(inside).mean(axis=0)), away.mean() - inside.mean(axis=0)
        assert np.mean(lost < 2 * found.scale + 0.01) > 0.9
        assert np.mean(taken < 2 * found.offsets + 0.001) > 0.9
        assert np.median(np.hypot(noise * found.clip**2 / n / 2, lost)) < most
        ended = reach_of(counts, sds, noises, np.full(50, 2.5), np.full(50, n), far)
        assert ended.clip.max() < 3
    assert found.clip.min() > 3
