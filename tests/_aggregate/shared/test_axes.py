"""Second moments and the axes found in them."""

import math

import numpy as np
from grid_tools import points_of
from kernel_tools import spending

from sklearn_dp._aggregate.shared.bounds import second_moment
from sklearn_dp._costs.plan import PlanEntry


def test_subspaces_are_as_good_as_lemma_3_1_says():
    """separated_gaussians:C3: the distance of cluster means from the released subspace, B = 2 |E|;
    200 trials.
    """
    worst = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d, k = 400, 12, 4
        centers, labels = rng.normal(size=(k, d)) * 1000, rng.integers(k, size=n)
        X = np.rint(centers[labels] + 100 * rng.normal(size=(n, d)))
        limit = float(np.linalg.norm(X, axis=1).max())
        session = spending(PlanEntry("axes", "gaussian", 100.0), seed=seed)
        rho = 10.0 ** rng.uniform(-3, 2)
        moment = second_moment(session, "axes", points_of(X, limit), limit, rho)
        vectors = np.linalg.eigh(moment)[1][:, -k:]
        E = np.linalg.norm(moment - X.T @ X, 2)
        A = centers[labels]
        for i in range(k):
            mean, n_i = X[labels == i].mean(axis=0), (labels == i).sum()
            left = np.linalg.norm(mean - vectors @ (vectors.T @ mean))
            right = np.linalg.norm(X - A, 2) / math.sqrt(n_i) + math.sqrt(2 * E / n_i)
            worst = max(worst, left / right)
    assert 0.01 < worst <= 1.0
