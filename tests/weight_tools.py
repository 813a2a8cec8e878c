"""What tests of weights of rows have in common: weights that audits see, and seeded bugs.

Audits know of rows alone. :class:`LastColumn` makes the weight of a row a part of the row, so that
a neighbor has one row more with its weight, whatever it is.
"""

import pickle

import numpy as np

from sklearn_dp._privacy._units import Units

__all__ = ["LastColumn", "by_sum", "endless", "released", "unclipped", "undivided", "unscaled"]


class LastColumn:
    """The last column of a row is its weight too: up to hundreds, and never 0.

    A row without a weight is not there: audits would look for its block and its coin, and a table
    of such rows is refused.
    """

    least = 2.0**-10

    def fit(self, X, y=None, *, groups=None):
        weights = np.maximum(np.abs(np.asarray(X)[:, -1]), self.least)
        return super().fit(X, sample_weight=weights, groups=groups)


def released(model):
    """All of a fit that leaves memory, but for what names the parameters."""
    return {
        name: pickle.dumps(value)
        for name, value in pickle.loads(pickle.dumps(model)).__dict__.items()
        if name.endswith("_")
    }


# -- bugs: each takes the place of `Units.weighted` ------------------------------------------------

WEIGHTED = Units.weighted


def unclipped(weights, largest, groups=None):
    """A large weight counts as it is."""
    units, there = WEIGHTED(np.minimum(weights, largest), largest, groups)
    parts = np.floor(np.minimum(weights, 100.0) / largest * 2**20).astype(np.int64)
    units.weights = parts[there]
    return units, there


def undivided(weights, largest, groups=None):
    """Each row of a group counts as if it were alone."""
    units, there = WEIGHTED(weights, largest, groups)
    units.weights = WEIGHTED(weights, largest)[0].weights
    return units, there


def by_sum(weights, largest, groups=None):
    """Weights are parts of their sum, which others are in."""
    units, there = WEIGHTED(weights, largest, groups)
    units.weights = (units.weights * (len(weights) / max(weights.sum(), 1.0))).astype(np.int64)
    return units, there


def unscaled(weights, largest, groups=None):
    """Weights up to the bound, and noise for a weight of one."""
    units, there = WEIGHTED(weights, largest, groups)
    units.weights = np.floor(np.minimum(weights, largest) * 2.0**20).astype(np.int64)[there]
    return units, there


def endless(weights, largest, groups=None):
    """What is above the largest weight counts as it is."""
    units, there = WEIGHTED(weights, largest, groups)
    units.excess = np.floor(np.maximum(weights / largest - 1, 0) * 2.0**20).astype(np.int64)[there]
    return units, there
