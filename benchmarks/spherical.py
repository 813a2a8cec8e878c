"""Spherical k-means: DPKMeans(metric="cosine") beside spherical k-means without privacy.

    python benchmarks/spherical.py [--seeds 5]

prints its table and writes ``doc/benchmarks/spherical.md``, which says what is compared.
"""

import argparse
import warnings

import _run  # first: one thread
import numpy as np
from sklearn.cluster import kmeans_plusplus

from sklearn_dp import DPKMeans

PAGE = _run.PAGES / "spherical.md"
CLUSTERS = 20
ALIKE, MIXED = "alike", "mixed"
CELLS = [  # rows, features, mean cosine of a cluster, widths of clusters
    (50_000, 16, 0.9, ALIKE),
    (50_000, 16, 0.7, ALIKE),
    (50_000, 16, 0.7, MIXED),
    (50_000, 64, 0.9, ALIKE),
    (50_000, 64, 0.7, ALIKE),
    (50_000, 64, 0.7, MIXED),
    (50_000, 64, 0.5, ALIKE),
    (10_000, 16, 0.9, ALIKE),
    (10_000, 64, 0.9, ALIKE),
    (2_000, 16, 0.9, ALIKE),
    (2_000, 64, 0.9, ALIKE),
]
EPSILONS = (1.0, 0.3)
INTRO = """# Spherical k-means

Made by `{made}` with {versions}; delta 1e-6, {clusters} clusters.

Rows about {clusters} random directions, like those of a von Mises-Fisher law: normal offsets from a
direction, scaled to length 1. `cosine` is the mean cosine of a row and the direction of its
cluster. Widths of clusters are alike, or mixed: offsets of half the length in one half of the
clusters, and of one and a half times the length in the other. Then rows are multiplied by lengths
between 1/50 and 50.

The objective is the mean cosine of rows and their centers. That of `DPKMeans(metric="cosine")` is
given over that of spherical k-means without privacy: the best of 5 runs of Lloyd's algorithm from
k-means++, and one from the true directions. The median of {seeds} fits, the lowest one in brackets,
and how many of the fits have the status "ok". Last, the same of
`DPKMeans` at epsilon 1 with its default metric, on the rows as they are.

With 50,000 rows and epsilon 1 the median is within 1% of what is possible without privacy in every
line, and the lowest of all fits within 2%: beside narrow clusters, two wide ones may share a
center. With 10,000 rows that is so for narrow clusters. At epsilon 0.3 the loss depends on the
width of the clusters and on the rows; the status is not "ok" where most is lost, but it does not
know of wide clusters in 64 features that lose 5%. 2,000 rows are too few for 20 clusters, and the
status says so.
"""


def offsets_for(cosine, d):
    """The length of normal offsets with this mean cosine; by a public draw."""
    rng, low, high = np.random.default_rng(0), 0.0, 20.0
    draws = rng.normal(size=(4000, d)) / np.sqrt(d)
    for _ in range(40):
        middle = (low + high) / 2
        first = 1 + middle * draws[:, 0]
        others = np.square(middle * draws[:, 1:]).sum(axis=1)
        found = (first / np.sqrt(np.square(first) + others)).mean()
        low, high = (middle, high) if found > cosine else (low, middle)
    return middle


def clusters_of_directions(n, d, cosine, widths, seed):
    """Rows of all lengths (n, d), and the true directions (k, d)."""
    rng = np.random.default_rng(seed)
    true = unit(rng.normal(size=(CLUSTERS, d)))
    width = np.full(CLUSTERS, offsets_for(cosine, d))
    if widths == MIXED:
        width *= np.where(np.arange(CLUSTERS) % 2, 0.5, 1.5)
    labels = rng.integers(CLUSTERS, size=n)
    rows = true[labels] + width[labels, None] * rng.normal(size=(n, d)) / np.sqrt(d)
    return rows * np.exp(rng.uniform(-4, 4, size=(n, 1))), true


def unit(rows):
    """Rows scaled to length 1; zeros stay zeros."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


def objective(rows, centers):
    """The mean cosine of unit rows and their centers."""
    return float((rows @ unit(centers).T).max(axis=1).mean())


def spherical(rows, centers, most=100):
    """Lloyd's algorithm on the sphere, without privacy: the objective it comes to."""
    found = -1.0
    for _ in range(most):
        cosines = rows @ centers.T
        labels, before = cosines.argmax(axis=1), found
        found = float(cosines.max(axis=1).mean())
        if found - before < 1e-7:
            break
        sums = np.eye(len(centers))[labels].T @ rows
        centers = np.where(sums.any(axis=1, keepdims=True), unit(sums), centers)
    return found


def best_of(rows, true, seed, runs=5):
    """Without privacy: the best of some runs."""
    starts = [kmeans_plusplus(rows, CLUSTERS, random_state=100 * seed + i)[0] for i in range(runs)]
    return max(spherical(rows, unit(each)) for each in (true, *starts))


def line(cell, seeds):
    """A row of the table."""
    n, d, cosine, widths = cell
    ratios, fine = {each: [] for each in (*EPSILONS, "plain")}, dict.fromkeys(EPSILONS, 0)
    best = []
    for seed in range(seeds):
        X, true = clusters_of_directions(n, d, cosine, widths, seed)
        rows = unit(X)
        best.append(best_of(rows, true, seed))
        for epsilon in EPSILONS:
            model = DPKMeans(CLUSTERS, epsilon=epsilon, metric="cosine", random_state=seed).fit(X)
            ratios[epsilon].append(objective(rows, model.cluster_centers_) / best[-1])
            fine[epsilon] += model.trustworthy_
        plain = DPKMeans(CLUSTERS, random_state=seed).fit(X)
        ratios["plain"].append(objective(rows, plain.cluster_centers_) / best[-1])
    told = [
        f"{np.median(ratios[each]):.4f} ({np.min(ratios[each]):.4f}) | {fine[each]} of {seeds}"
        for each in EPSILONS
    ]
    return (
        f"| {n:,} | {d} | {cosine:g} | {widths} | {np.mean(best):.3f} | {' | '.join(told)} "
        f"| {np.median(ratios['plain']):.3f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| rows | features | cosine | widths | without privacy | epsilon 1 | ok | epsilon 0.3 | ok "
        "| euclidean |",
        "|---" * 10 + "|",
    ]
    for cell in CELLS:
        lines.append(line(cell, options.seeds))
        print(lines[-1], flush=True)
    intro = INTRO.format(
        made=f"python benchmarks/spherical.py --seeds {options.seeds}",
        versions=_run.versions("numpy"),
        clusters=CLUSTERS,
        seeds=options.seeds,
    )
    PAGE.write_text(intro + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
