"""DPDBSCAN beside DBSCAN on the rows: do both find the same clusters?

    python benchmarks/density.py              # 5 fits of each cell; a minute
    python benchmarks/density.py --seeds 20

Prints a table and writes doc/benchmarks/density.md. Each seed is another table and another noise.
Both get the same `eps` and `min_samples`, which grows with the number of rows, so that both look
for the same density. Bounds are a box a tenth wider than the shapes on each side.
"""

import argparse
import time
import warnings

import _run  # first: one thread
import numpy as np
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPDBSCAN

OUTPUT = _run.PAGES / "density.md"
HEAD = """# Density clusters

`DPDBSCAN` beside scikit-learn's `DBSCAN` with the same `eps` and `min_samples` on the same rows:
the adjusted Rand index of the two sets of labels (noise is a label, too), the median and the worst
of {seeds} tables; and the medians of the numbers of clusters, private / not. delta = 1e-6. With
bounds all noise is Laplace; "none" is epsilon = 1 without bounds. Seconds are CPU seconds of one
private fit, and of `DBSCAN`.

`python benchmarks/density.py --seeds {seeds}` with {versions}.

"""
BUDGETS = ((0.5, True), (1.0, True), (1.0, False))


def moons(n, rng):
    return make_moons(n, noise=0.07, random_state=int(rng.integers(2**31)))[0]


def circles(n, rng):
    return make_circles(n, noise=0.04, factor=0.5, random_state=int(rng.integers(2**31)))[0]


def blobs(n, rng):
    """Five round clusters of different widths."""
    centers, widths = [[0, 0], [5, 5], [0, 6], [8, 0], [-5, 2]], [0.5, 0.8, 0.6, 1, 0.5]
    seed = int(rng.integers(2**31))
    return make_blobs(n, centers=centers, cluster_std=widths, random_state=seed)[0]


def chameleon(n, rng):
    """An arc about a ring, a wave, an ellipse and a band, in a tenth of noise."""
    k = round(0.18 * n)
    angle = rng.random(k) * np.pi
    arc = np.column_stack([10 + 8 * np.cos(angle), 5 + 8 * np.sin(angle)])
    ring = np.column_stack([10 + 2.5 * np.cos(2 * angle), 5 + 2.5 * np.sin(2 * angle)])
    along = rng.uniform(0, 12, k)
    wave = np.column_stack([along, 0.8 * np.sin(along) - 3])
    parts = [
        arc + rng.normal(0, 0.5, (k, 2)),
        ring + rng.normal(0, 0.3, (k, 2)),
        wave + rng.normal(0, 0.25, (k, 2)),
        rng.normal([25, 8], [1.2, 2.5], (k, 2)),
        rng.uniform([18, -5], [30, -2], (k, 2)),
        rng.uniform([-2, -8], [34, 18], (n - 5 * k, 2)),
    ]
    return np.concatenate(parts)


def shells(n, rng):
    """A ball inside a shell, and a ball beside it, in three dimensions."""
    k = n // 3
    way = rng.normal(size=(k, 3))
    shell = 1.5 * way / np.linalg.norm(way, axis=1)[:, None] + rng.normal(0, 0.1, (k, 3))
    core = rng.normal(0, 0.25, (k, 3))
    return np.concatenate([shell, core, rng.normal([3.5, 3.5, 0], 0.4, (n - 2 * k, 3))])


def space(n, rng):
    """Three round clusters in four dimensions."""
    return np.concatenate([rng.normal(m, 0.5, (n // 3, 4)) for m in 4 * np.eye(4)[:3]])


# Rows at 8,000, and how many of them within eps are dense there.
CELLS = (
    (moons, 0.08, 10), (moons, 0.1, 30), (circles, 0.08, 10), (circles, 0.1, 40),
    (blobs, 0.4, 10), (blobs, 0.6, 20), (chameleon, 0.8, 15), (chameleon, 0.9, 50),
    (shells, 0.4, 20), (space, 0.7, 15),
)  # fmt: skip


def cell(make, n, eps, least, seed):
    """(ARI, private clusters, clusters, seconds) of each budget, and the seconds of DBSCAN."""
    rng = np.random.default_rng(seed)
    X, least = make(n, rng), least * n // 8000
    began = time.process_time()
    labels = DBSCAN(eps=eps, min_samples=least).fit_predict(X)
    seconds, found = time.process_time() - began, []
    margin = 0.1 * np.ptp(X, axis=0)
    for epsilon, bounded in BUDGETS:
        box = (X.min(axis=0) - margin, X.max(axis=0) + margin) if bounded else None
        began = time.process_time()
        model = DPDBSCAN(eps, epsilon=epsilon, bounds=box, min_samples=least).fit(X)
        own = time.process_time() - began
        score = adjusted_rand_score(labels, model.labels_)
        found.append((score, model.n_clusters_, labels.max() + 1, own))
    return found, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    names = ["eps 0.5", "eps 1", "none"]
    lines = [
        f"| shapes | rows | eps | min_samples | {' | '.join(names)} | seconds |",
        "|---" * (5 + len(names)) + "|",
    ]
    for n in (8_000, 30_000):
        for make, eps, least in CELLS:
            made = [cell(make, n, eps, least, seed) for seed in range(seeds)]
            texts = []
            for number in range(len(BUDGETS)):
                scores, private, exact, own = zip(*(fits[number] for fits, _ in made), strict=True)
                clusters = f"{np.median(private):.0f} / {np.median(exact):.0f}"
                texts.append(f"{np.median(scores):.3f} ({min(scores):.2f}), {clusters}")
            times = f"{np.median(own):.2f} / {np.median([each for _, each in made]):.2f}"
            cells = [make.__name__, f"{n:,}", eps, least * n // 8000, *texts, times]
            lines.append(f"| {' | '.join(map(str, cells))} |")
            print(lines[-1], flush=True)
    versions = _run.versions("numpy", "scikit-learn")
    OUTPUT.write_text(HEAD.format(seeds=seeds, versions=versions) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
