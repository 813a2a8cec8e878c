"""Clusters of embeddings: looked for among all features, and in a public random projection.

    python benchmarks/embeddings.py [--seeds 3]

prints its table and writes ``doc/benchmarks/embeddings.md``, which says what is compared.
"""

import argparse
import time
import tracemalloc
import warnings
from itertools import product
from unittest.mock import patch

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import engine

PAGE = _run.PAGES / "embeddings.md"
CLUSTERS = 50
CELLS = [  # rows, features, how far apart, power of the spectrum
    *product((50_000, 200_000), (256, 768), (0.7,), (0.0, 1.0, 2.0)),
    (80_000, 768, 0.6, 1.0),
]
INTRO = """# Clusters of embeddings

Made by `{made}` with {versions}; epsilon 1, delta 1e-6.

Unit rows about {clusters} random directions. Within a cluster, the variance along the i-th of the
axes that all clusters share falls like i ^ -power: 0 is a round cluster, and embeddings of texts
are near 1. `apart` is the length of the centers of the rows before they are given length 1.

* direct: all steps in all features, as if there were no projection;
* `DPKMeans`: as it is. Releases decide whether its clusters are looked for in a projection onto 32
  features; `projected` says how often they were.

Cost over that of k-means without privacy from the true centers (with a power of 2 it is not the
lowest one: centers along the axes in common are cheaper, and tell no cluster from another), the
adjusted Rand index with the true clusters (that of k-means in brackets), and the seconds of CPU of
a fit; means of {seeds} fits. MB: the peak of what one more fit allocates, beside the rows, which
take 4 bytes for each number (`tracemalloc`).
"""


def embeddings(n, d, apart, power, seed, k=CLUSTERS):
    """Unit rows (n, d) of float32, their clusters, and the true centers."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    centers *= apart / np.linalg.norm(centers, axis=1, keepdims=True)
    widths = np.arange(1, d + 1) ** (-power / 2)
    widths *= np.sqrt(1 - apart**2) / np.linalg.norm(widths)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    labels = rng.integers(k, size=n)
    X = centers[labels] + (rng.normal(size=(n, d)) * widths) @ axes.T
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), labels, centers


def spied(used, direct):
    """`DPKMeans` that notes whether it used a projection, or never does."""
    through = engine.projected

    def search(context):
        found = None if direct else through(context)
        used.append(found is not None)
        return found

    return patch.object(engine, "projected", search)


def fitted(X, labels, seed, reference, direct):
    """Cost, Rand index, seconds, and whether a projection was used."""
    used, start = [], time.process_time()
    with spied(used, direct):
        model = DPKMeans(CLUSTERS, bounds=1.0, random_state=seed).fit(X)
    seconds = time.process_time() - start
    cost = -model.score(X) / reference
    return cost, adjusted_rand_score(labels, model.predict(X)), seconds, any(used)


def megabytes(X, direct):
    """The peak of what a fit allocates."""
    tracemalloc.start()
    with spied([], direct):
        DPKMeans(CLUSTERS, bounds=1.0, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def line(cell, seeds):
    """A row of the table."""
    ways, indices = {"direct": [], "ours": []}, []
    for seed in range(seeds):
        X, labels, centers = embeddings(*cell, seed=500 + seed)
        exact = KMeans(CLUSTERS, init=centers.astype(np.float32), n_init=1).fit(X)
        indices.append(adjusted_rand_score(labels, exact.labels_))
        for name, found in ways.items():
            found.append(fitted(X, labels, seed, exact.inertia_, name == "direct"))
    direct, ours = (np.mean(found, axis=0) for found in ways.values())
    n, d, apart, power = cell
    return (
        f"| {n:,} | {d} | {apart:g} | {power:g} | {direct[0]:.3f} | **{ours[0]:.3f}** "
        f"| {direct[1]:.2f} | **{ours[1]:.2f}** ({np.mean(indices):.2f}) "
        f"| {direct[2]:.1f} | {ours[2]:.1f} | {megabytes(X, True):.0f} | {megabytes(X, False):.0f} "
        f"| {round(ours[3] * seeds)} of {seeds} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| rows | features | apart | power | cost: direct | `DPKMeans` | Rand index: direct "
        "| `DPKMeans` | CPU: direct | `DPKMeans` | MB: direct | `DPKMeans` | projected |",
        "|---" * 13 + "|",
    ]
    for cell in CELLS:
        lines.append(line(cell, options.seeds))
        print(lines[-1], flush=True)
    intro = INTRO.format(
        made=f"python benchmarks/embeddings.py --seeds {options.seeds}",
        versions=_run.versions("numpy"),
        clusters=CLUSTERS,
        seeds=options.seeds,
    )
    PAGE.write_text(intro + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
