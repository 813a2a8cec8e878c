"""Mixtures and ways through a fit that several tests of mixtures share."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal

from sklearn_dp.mixture import (
    KTupleOptions,
    PartitionOptions,
)

FORMS = ("full", "tied", "diag", "spherical")
GENEROUS = {"rho": 1e6, "delta": 0.1}

POINTS = PartitionOptions(balls="points", separation=2.0)
LITERAL = PartitionOptions(balls="points", separation=5.0)  # as published

# Every way through a fit, on data of `audit_data`: its options, and where they lead.
WAYS = {
    "coreset": ({"method": "coreset", "epsilon": 20.0}, "coreset"),
    "joint balls": ({"method": "partition", "epsilon": 300.0}, "partition"),
    "no balls": ({"method": "partition", "epsilon": 3.0}, "partition, then coreset"),
    "published balls": ({"method": "partition", "options": POINTS, "epsilon": 3000.0}, "partition"),
    "spherical": (
        {"method": "partition", "covariance_type": "spherical", "bounds": 60.0, "epsilon": 300.0},
        "partition",
    ),
    "tuples": ({"method": "k_tuples", "options": KTupleOptions(4), "epsilon": 800.0}, "k_tuples"),
    "tuples that differ": (
        {"method": "k_tuples", "options": KTupleOptions(3), "epsilon": 30.0},
        "k_tuples, then coreset",
    ),
    "noisy centers": (
        {"method": "k_tuples", "epsilon": 3000.0, "options": KTupleOptions(12, "noisy_centers")},
        None,
    ),
    "too few for tuples": (
        {"method": "k_tuples", "options": KTupleOptions(50), "epsilon": 30.0},
        "coreset",
    ),
}


def audit_data(seed=0):
    return Mixture(3, 4, 30, 300, seed=seed).X


class Mixture:
    """Separated, rotated, anisotropic components."""

    def __init__(self, k, d, separation, n, weights=None, seed=0):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(k, d))
        apart = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(k, 1)]
        self.means = means * (separation / apart.min() if k > 1 else 1.0)
        self.weights = np.full(k, 1 / k) if weights is None else np.array(weights)
        self.covariances = np.empty((k, d, d))
        for j in range(k):
            rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
            self.covariances[j] = (rotation * rng.uniform(0.2, 1, d)) @ rotation.T
        self.X, self.labels = self.draw(n, rng)

    def draw(self, n, rng):
        labels = rng.choice(len(self.means), n, p=self.weights)
        roots = np.linalg.cholesky(self.covariances)
        noise = rng.normal(size=(n, self.means.shape[1]))
        return self.means[labels] + np.einsum("nij,nj->ni", roots[labels], noise), labels

    def match(self, model):
        cost = np.linalg.norm(self.means[:, None] - model.means_, axis=2)
        return linear_sum_assignment(cost)[1]

    def variations(self, model):
        """Total variation of each component, by Monte Carlo."""
        rng, out = np.random.default_rng(1), []
        for j, other in enumerate(self.match(model)):
            true = multivariate_normal(self.means[j], self.covariances[j])
            released = multivariate_normal(model.means_[other], model.covariances_[other])
            x = true.rvs(size=20000, random_state=rng)
            out.append(np.maximum(0, 1 - np.exp(released.logpdf(x) - true.logpdf(x))).mean())
        return np.array(out)
