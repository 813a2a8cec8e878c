"""Data, searches and spies that several tests of searches share."""

import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp.model_selection import DPGridSearch, _runs

GRID = {"n_clusters": [2, 3, 4]}


def corners(n, sd=0.1, d=2):
    """Three clusters at corners of a triangle in the first two of d features."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, d))
    X[:, :2] = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[np.arange(n) % 3]
    return X + sd * rng.standard_normal((n, d))


def search(**options):
    """A grid search for the number of those clusters."""
    given = {"estimator": DPKMeans(bounds=2.0), "epsilon": 2.0, "random_state": 0, **options}
    return DPGridSearch(param_grid=GRID, **given)


def pipeline():
    return make_pipeline(DPPCA(bounds=3.0), DPKMeans(3, bounds=3.0))


def spending(monkeypatch):
    """Plans of all fits that a search makes, with what they are for."""
    fits = []
    original = _runs.Runner._inner

    def recorded(self, entry, plan, tag):
        fits.append((tag, plan))
        return original(self, entry, plan, tag)

    monkeypatch.setattr(_runs.Runner, "_inner", recorded)
    return fits
