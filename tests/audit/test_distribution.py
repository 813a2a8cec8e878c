"""The table of the module: each deficit is found with the numbers that it states."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sklearn_dp.audit._noise_law import (
    between_tests,
    law_tests,
    lean_test,
    shape_tests,
    within_release_tests,
)

LEVEL = 1e-9


def normal(n, seed=0):
    return ndtri(np.random.default_rng(seed).random(n))


def all_tests(numbers):
    return [
        *law_tests("a", numbers),
        *shape_tests("a", numbers),
        *within_release_tests([numbers]),
        *lean_test(numbers, normal(len(numbers), 99)),
    ]


@pytest.mark.parametrize("n", [1, 2, 19, 300, 30_000])
def test_normal_numbers_are_not_blamed(n):
    """False alarm: about 50 tests at 1e-9 for each size, at a fixed seed."""
    assert all(chance > LEVEL for _, chance in all_tests(normal(n)))


def test_p_values_are_valid():
    """Of 400 sets of 50 numbers, each test gives p < 0.01 in at most 20 (4 expected; binomial tail
    1e-8 for each of some 40 tests)."""
    counts = {}
    for seed in range(400):
        for text, chance in all_tests(normal(50, seed)):
            counts[text] = counts.get(text, 0) + (chance < 0.01)
    assert max(counts.values()) <= 20


DEFICITS = {
    "noise smaller than claimed": (120, lambda z: z / 2),
    "noise larger than claimed": (120, lambda z: 2 * z),
    "noise has a mean": (80, lambda z: z + 1),
    "noise of another law": (190, lambda z: np.sign(z)),
    "too few beyond 1.75 sigma": (300, lambda z: np.sqrt(3) * (2 * ndtr(z) - 1)),
    "too few beyond 3.05 sigma": (10_000, lambda z: np.clip(z, -3, 3)),
    "too few beyond 4.05 sigma": (420_000, lambda z: np.clip(z, -4, 4)),
    "too many beyond 4.05 sigma": (20_000, lambda z: np.where(np.abs(z) > 3, 1.5 * z, z)),
    "repeats of halves": (80, lambda z: np.tile(z[: len(z) // 2], 2)),
    "taken back of halves": (80, lambda z: np.append(z[: len(z) // 2], -z[: len(z) // 2])),
    "repeats of mirror images": (80, lambda z: np.append(z[: len(z) // 2], z[: len(z) // 2][::-1])),
    "repeats of numbers 1 apart": (80, lambda z: np.repeat(z[::2], 2)),
    "halves have other scales": (300, lambda z: np.append(z[::2] / 2, 1.3 * z[1::2])),
    "even and odd places": (300, lambda z: z * np.resize([0.5, 1.3], len(z))),
}


@pytest.mark.parametrize("what", DEFICITS)
def test_a_deficit_is_found_with_the_stated_numbers(what):
    n, change = DEFICITS[what]
    blamed = [text for text, chance in all_tests(change(normal(n))) if chance < LEVEL]
    assert any(what in text for text in blamed), blamed


def test_noise_that_leans_is_found():
    values = normal(60, 1)
    ((text, chance),) = lean_test(np.abs(normal(60)) * np.sign(values), values)
    assert "leans" in text and chance < LEVEL
    assert list(lean_test(normal(5), np.zeros(5))) == []


def test_places_that_never_get_noise_are_found():
    releases = [np.append(0.0, normal(3, seed)) for seed in range(80)]
    blamed = [text for text, chance in within_release_tests(releases) if chance < LEVEL]
    assert any("first numbers" in text for text in blamed)


@pytest.mark.parametrize("lag", [1, 6, 24])
def test_releases_that_come_back_are_found(lag):
    fresh = [normal(4, seed) for seed in range(lag)]
    tests = list(between_tests([fresh * 12], range(1, 25), "between releases"))
    assert any(f"after {lag} releases" in text and chance < LEVEL for text, chance in tests)
