"""Data and models that several tests of clustering by k-tuples share."""

import numpy as np

from sklearn_dp import DPKTupleKMeans
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy.mechanisms.pure import open_step

CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]])


def blobs(n=6000, seed=0, scale=0.03):
    """Rows around the corners, and which corner each is of."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    return CORNERS[labels] + scale * rng.normal(size=(n, 2)), labels


def model(**parameters):
    defaults = dict(n_clusters=3, rho=3.0, bounds=1.0, n_tuples=100, random_state=0)
    return DPKTupleKMeans(**{**defaults, **parameters})


def rich_session(seed=0):
    """A session that pays for any number of steps."""
    entry = PlanEntry("tuples", "approximate DP", 99.0, 0.4, uses=None)
    plan = PrivacyPlan(PrivacyBudget(rho=100.0, delta=0.5), (entry,))
    return PrivacySession(plan, random_state=seed)


def step_of(seed=0):
    return open_step(rich_session(seed), "tuples", epsilon=1.0, delta=1e-6)
