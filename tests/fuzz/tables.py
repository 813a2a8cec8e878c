"""Rows of every kind, of a seed and a name; all numbers begin with the digits of `PLANT`."""

import numpy as np

PLANT = 7319


def _mantissas(rng, shape):
    """Numbers 7319.xxx of both signs, around a few places."""
    signs = np.where(rng.integers(0, 3, size=shape) > 0, 1.0, -1.0)
    return signs * (PLANT + rng.random(shape) / 2 ** rng.integers(1, 20))


def _scaled(*exponents):
    def make(rng, shape):
        return _mantissas(rng, shape) * 10.0 ** rng.choice(exponents, size=shape)

    return make


def _one_row(value):
    """Ordinary rows and, at a random place, one that is not."""

    def make(rng, shape):
        X = _mantissas(rng, shape)
        if len(X):
            X[rng.integers(len(X))] = value * np.where(rng.integers(0, 2, shape[1]), 1.0, -1.0)
        return X

    return make


def _denormal(rng, shape):
    return 5e-324 * np.rint(rng.integers(-3, 4, size=shape) * PLANT)


VALUES = {
    "clusters": _scaled(0),
    "scales": _scaled(-9, 0, 6),
    "tiny": _scaled(-300, -160, -20),
    "huge": _scaled(80, 150, 303),
    "all scales": _scaled(-325, -180, 0, 180, 303),
    "denormal": _denormal,
    "zero": lambda rng, shape: np.zeros(shape),
    "equal": lambda rng, shape: np.full(shape, PLANT + 0.4825),
    "a row of 1.7e308": _one_row(1.7e308),
    "a row of 1e200": _one_row(1e200),
    "a denormal row": _one_row(5e-324),
    "a row of -0.0": _one_row(-0.0),
}
"""Finite numbers: from a generator and a shape to an array of doubles."""

SPOILED = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def numbers(kind, seed, shape):
    """An array of doubles of a kind of `VALUES`, or with one entry of `SPOILED`."""
    rng = np.random.default_rng(seed)
    if kind in VALUES:
        return VALUES[kind](rng, shape)
    X = _mantissas(rng, shape)
    if X.size:
        X.flat[rng.integers(X.size)] = SPOILED[kind]
    return X
