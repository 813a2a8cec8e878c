"""Randomness that is no noise: the same for neighbors, and independent of the data and of the
noise, which has other streams."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._costs.numbers import is_integer
from ._noise import NoiseSource


class AlgorithmicRandomness:
    """Random draws of a session other than noise; the same for neighbors, unit by unit."""

    # What the session has: it derives from this class.
    _algorithm_seed: Any
    _noise: NoiseSource
    _trace: Any
    _record: Callable[..., Any]

    def _draw_apart(self, tag: str) -> None:
        """Draw from streams of its own from now on: another tag for each session."""
        name = f"{self._algorithm_seed}/{tag}"
        self._algorithm_seed = int.from_bytes(hashlib.shake_256(name.encode()).digest(32), "big")

    def rng(self, tag: str) -> np.random.Generator:
        """A generator for restarts and inner fits; the same for neighbors by construction.
        Generators of different tags are independent. Never for noise: its draws have no exact
        law."""
        digest = hashlib.shake_256(f"{self._algorithm_seed}/{tag}".encode()).digest(16)
        return np.random.default_rng(int.from_bytes(digest, "big"))


def seed_of(random_state: Any) -> int | None:
    """None for real noise, otherwise a non-negative integer seed.

    Of a RandomState or Generator 128 bits are drawn: two fits that share one differ, as in
    scikit-learn.

    >>> seed_of(None) is None, seed_of(7), seed_of(np.random.RandomState(0)) > 2**32
    (True, 7, True)
    """
    if random_state is None:
        return None
    if is_integer(random_state):
        if random_state < 0:
            raise ValueError("random_state must be non-negative.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint64)
    elif isinstance(random_state, np.random.Generator):
        words = random_state.integers(0, 2**32, size=4, dtype=np.uint64)
    else:
        raise TypeError("random_state must be None, an int, a RandomState or a Generator.")
    return int(sum(int(word) << (32 * i) for i, word in enumerate(words)))


def sampling_rng(random_state: Any) -> np.random.Generator:
    """A generator for synthetic rows that are drawn from releases: post-processing, no noise.

    Any `random_state` is as private as another: what is drawn is a function of releases and of
    numbers that are independent of the data.

    >>> bool(sampling_rng(0).random() == sampling_rng(0).random())
    True
    """
    return np.random.default_rng(seed_of(random_state))


def mixed_words(words: np.ndarray, number: int) -> np.ndarray:
    """Further 64 bits from each word: splitmix64 (Steele, Lea and Flood 2014), not for noise."""
    mixed = words + np.uint64((0x9E3779B97F4A7C15 * (number + 1)) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def uniforms(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [0, 1) of a seed below 2**31: no generator is built for each of many fits."""
    words = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(seed << 32)
    return ((mixed_words(words, 0) >> np.uint64(11)) * 2.0**-53).reshape(shape)
