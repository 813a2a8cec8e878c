"""DPGaussianMixture on separated components, beside no privacy and a naive private pipeline.

Run ``python benchmarks/mixture.py``; it prints its tables and writes ``doc/benchmarks/mixture.md``
and ``doc/images/mixture.png``. Takes about half an hour on one core; ``--quick`` leaves out the
larger cells and makes 3 runs.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from sklearn_dp import DPKMeans
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.mixture import DPGaussianMixture

DOC = Path(__file__).parents[1] / "doc"
CELLS = [  # k, d, separation, n, epsilon, radius
    (3, 2, 12, 20000, 1.0, 200.0), (3, 2, 12, 20000, 1.0, 1e6), (3, 2, 12, 20000, 0.2, 200.0),
    (3, 2, 12, 20000, 8.0, 200.0), (2, 2, 10, 1000, 1.0, 200.0), (5, 2, 10, 5000, 1.0, 200.0),
    (4, 10, 12, 50000, 1.0, 200.0), (4, 10, 12, 50000, 1.0, None), (4, 10, 4, 100000, 1.0, 200.0),
    (8, 10, 12, 200000, 1.0, 200.0), (4, 30, 12, 100000, 1.0, 200.0)]


class Truth:
    """Rotated components, eigenvalues in [0.2, 1]; separation is the least distance of means."""

    def __init__(self, k, d, separation, rng):
        means = rng.normal(size=(k, d))
        self.means = means * separation / np.linalg.norm(
            means[:, None] - means, axis=2)[np.triu_indices(k, 1)].min()
        self.covariances = np.empty((k, d, d))
        for j in range(k):
            rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
            values = np.append(1.0, rng.uniform(0.2, 1, d - 1))
            self.covariances[j] = (rotation * values) @ rotation.T

    def draw(self, n, rng):
        labels = rng.integers(len(self.means), size=n)
        X = np.empty((n, self.means.shape[1]))
        for j, covariance in enumerate(self.covariances):
            there = labels == j
            X[there] = rng.multivariate_normal(self.means[j], covariance, size=there.sum())
        return X, labels

    def density(self, X):
        return np.mean([multivariate_normal(m, c).pdf(X) for m, c in
                        zip(self.means, self.covariances, strict=True)], axis=0)

    def errors(self, weights, means, covariances, rng):
        """Share found, largest total variation, that of the mixture, weight error, log-density."""
        cost = np.linalg.norm(self.means[:, None] - means, axis=2)
        pairs = linear_sum_assignment(cost)
        laws = [multivariate_normal(m, c, allow_singular=True)
                for m, c in zip(means, covariances, strict=True)]
        worst = 0.0
        for i, j in zip(*pairs, strict=True):
            true = multivariate_normal(self.means[i], self.covariances[i])
            x = true.rvs(size=10000, random_state=rng)
            ratio = np.exp(laws[j].logpdf(x) - true.logpdf(x))
            worst = max(worst, float(np.maximum(0, 1 - ratio).mean()))
        X, _ = self.draw(10000, rng)
        mixture = sum(w * law.pdf(X) for w, law in zip(weights, laws, strict=True))
        true = self.density(X)
        return np.array([cost[pairs].max() < 3, worst, np.maximum(0, 1 - mixture / true).mean(),
                         np.abs(weights[pairs[1]] - 1 / len(self.means)).max(),
                         np.log(np.maximum(mixture, 1e-300)).mean() - np.log(true).mean()])


def naive(X, k, epsilon, radius, rng):
    """Half of the budget for k-means, half for a Gram matrix of each cluster clipped to bounds.

    For measuring only: its noise is numpy's.
    """
    model = DPKMeans(k, epsilon=epsilon / 2, bounds=radius).fit(X)
    rho = DPKMeans(epsilon=epsilon / 2).privacy_plan(2).rho
    covariances = []
    for j, center in enumerate(model.cluster_centers_):
        Y = X[model.labels_ == j] - center
        noise = np.triu(rng.normal(size=(X.shape[1],) * 2)) * radius**2 / np.sqrt(2 * rho)
        S = (Y.T @ Y + noise + np.triu(noise, 1).T) / max(model.cluster_weights_[j], 1.0)
        values, vectors = np.linalg.eigh(S)
        covariances.append((vectors * np.maximum(values, 1e-3)) @ vectors.T)
    weights = np.maximum(model.cluster_weights_, 1.0)
    return weights / weights.sum(), model.cluster_centers_, np.array(covariances)


def plain(X, labels, k):
    parts = [X[labels == j] for j in range(k)]
    return (np.array([len(part) for part in parts]) / len(X),
            np.array([part.mean(axis=0) for part in parts]),
            np.array([np.cov(part.T) for part in parts]))


def run(cell, seed):
    k, d, separation, n, epsilon, radius = cell
    rng = np.random.default_rng(seed)
    truth = Truth(k, d, separation, rng)
    X, labels = truth.draw(n, rng)
    start = time.process_time()
    model = DPGaussianMixture(k, epsilon=epsilon, bounds=radius).fit(X)
    seconds = time.process_time() - start
    out = [truth.errors(model.weights_, model.means_, model.covariances_, rng),
           truth.errors(*plain(X, labels, k), rng),
           truth.errors(*naive(X, k, epsilon, radius or 200.0, rng), rng)]
    return out, seconds


def table(cells, runs):
    lines = ["| k, d, separation, n | epsilon | radius | found | largest TV (worst run) | labelled "
             "rows, no privacy | mixture TV | weight error | log-density lost | naive: largest TV |"
             " CPU s |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for cell in cells:
        results = [run(cell, seed) for seed in range(runs)]
        ours, base, rival = (np.array([r[0][i] for r in results]) for i in range(3))
        middle = np.median(ours, axis=0)
        lines.append(
            f"| {', '.join(map(str, cell[:4]))} | {cell[4]:g} | {cell[5]} | {ours[:, 0].mean():.0%}"
            f" | {middle[1]:.3f} ({ours[:, 1].max():.3f}) | {np.median(base[:, 1]):.3f} | "
            f"{middle[2]:.3f} | {middle[3]:.4f} | {-middle[4]:.4f} | {np.median(rival[:, 1]):.2f} "
            f"| {np.mean([r[1] for r in results]):.1f} |")
        print(lines[-1], flush=True)
    return lines


def speed():
    """CPU time at n = 1e5, d = 10, k = 5, beside GaussianMixture(n_init=5)."""
    rng = np.random.default_rng(0)
    X, _ = Truth(5, 10, 12, rng).draw(100000, rng)
    times = []
    for model in (DPGaussianMixture(5), GaussianMixture(5, n_init=5)):
        start = time.process_time()
        model.fit(X)
        times.append(time.process_time() - start)
    return "CPU seconds at n = 1e5, d = 10, k = 5: {:.2f}; GaussianMixture(n_init=5): {:.2f}." \
        .format(*times)


def picture():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(4)
    truth = Truth(5, 2, 8, rng)
    X, _ = truth.draw(5000, rng)
    model, other = DPGaussianMixture(5, epsilon=1.0).fit(X), GaussianMixture(5, n_init=5).fit(X)
    figure, axis = plt.subplots(figsize=(6, 5))
    axis.plot(*X.T, ".", ms=1, color="0.75")
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = 2.0 * np.stack([np.cos(turn), np.sin(turn)])
    for mixture, style, label in ((other, "k--", "GaussianMixture"),
                                  (model, "C3-", "DPGaussianMixture, epsilon = 1")):
        for mean, covariance in zip(mixture.means_, mixture.covariances_, strict=True):
            ring = mean[:, None] + np.linalg.cholesky(covariance) @ circle
            axis.plot(*ring, style, label=label)
            label = None
    axis.legend()
    axis.set_aspect("equal")
    figure.tight_layout()
    figure.savefig(DOC / "images" / "mixture.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    picture()
    clock = speed()
    print(clock, flush=True)
    cells = [cell for cell in CELLS if not options.quick or cell[3] * cell[1] <= 500000]
    runs = 3 if options.quick else options.runs
    flag = "--quick" if options.quick else f"--runs {runs}"
    head = ["# Gaussian mixtures", "",
            f"Separated, rotated components by `python benchmarks/mixture.py {flag}`; medians of "
            f"{runs} runs, delta = 1e-6.",
            "Naive: private k-means, then a noisy Gram matrix of each cluster within the bounds.",
            "", clock, "", "![Ellipses of private and other components](../images/mixture.png)", ""]
    (DOC / "benchmarks" / "mixture.md").write_text(
        "\n".join([*head, *table(cells, runs), ""]))


if __name__ == "__main__":
    main()
