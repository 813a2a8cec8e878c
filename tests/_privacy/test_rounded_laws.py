"""The ideal laws in double precision: their error stays within the bound that the samplers use."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from exact_laws import LAWS, magnitude, mp, normal_quantile
from scipy import special

from sklearn_dp._privacy import _noise
from sklearn_dp._privacy._noise import Block

MASK = 2**63 - 1


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(60):
        yield


def tail_probabilities():
    rng = np.random.default_rng(20)
    return np.concatenate(
        [
            rng.random(800) / 2,
            10.0 ** -rng.uniform(0.31, 300, 400),
            # the borders of the approximation's pieces, and both ends
            np.exp(-2) * (1 + rng.uniform(-1, 1, 200) * 1e-3),
            np.exp(-32) * (1 + rng.uniform(-1, 1, 200) * 1e-3),
            0.5 - 2.0 ** -rng.integers(2, 54, 200),
            [1e-307, 1e-290, 0.5 - 2.0**-54],
        ]
    )


def test_ndtri_keeps_its_error_bound():
    """On every platform: the relative error stays below half of what the guard band allows."""
    for p in tail_probabilities():
        approximate = -special.ndtri(p)
        exact = normal_quantile(mp(p))
        assert abs(approximate - exact) <= _noise._REL / 2 * exact, p


def test_log_keeps_its_error_bound():
    probabilities = 2 * tail_probabilities()
    for p, approximate in zip(probabilities, -np.log(probabilities), strict=True):
        exact = -mpmath.log(mp(p))
        assert abs(approximate - exact) <= _noise._REL / 2 * exact, p


@pytest.mark.parametrize("name", LAWS)
def test_the_radius_covers_the_whole_interval_of_a_word(name):
    law = LAWS[name]
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**64, 200, dtype=np.uint64)
    words[:150] >>= rng.integers(0, 31, 150).astype(np.uint64)  # tails down to 2^-32
    words[-4:] = [2**32, 2**63 - 1, 2**63 - 2, 2**33 + 1]
    block = Block(words)
    ideal, radius = block.transform(law)
    for word, z, r in zip(words, ideal, radius, strict=True):
        numerator = int(word) & MASK
        if numerator < 2**32:
            assert r == np.inf
            continue
        for end in (numerator, numerator + 1):
            exact = magnitude(law, mp(Fraction(end, 2**law.tail_bits)))
            assert abs(z - exact) <= r


def test_what_the_bound_does_not_vouch_for_is_told():
    """1.2 +- 0.1 is 1, and 1.45 +- 0.1 may be 2; ten times that, 12 +- 1 may be 11 and 15 is 15."""
    ideal, radius = np.array([1.2, 1.45, 1.5]), np.array([0.1, 0.1, 0.0])
    rounded, unsure = _noise.guarded_round(ideal, radius, 1.0)
    assert rounded[0] == 1 and unsure.tolist() == [1, 2]
    assert _noise.guarded_round(ideal, radius, 10.0)[1].tolist() == [0, 1]
    assert _noise.guarded_round(ideal[:1], np.array([np.inf]), 1.0)[1].tolist() == [0]
