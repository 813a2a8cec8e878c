"""What tests of weights of rows have in common: weights that audits see.

Audits know of rows alone. :class:`LastColumn` makes the weight of a row a part of the row, so that
a neighbor has one row more with its weight, whatever it is.
"""

import pickle

import numpy as np

__all__ = ["LastColumn", "released"]


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
