"""Released points instead of rows: k-means and DBSCAN on a coreset, beside the rows.

    python benchmarks/coreset.py              # 5 coresets of each data set; a minute
    python benchmarks/coreset.py --seeds 12
    python benchmarks/coreset.py --data FOLDER    # of .npz files: more lines

Prints two tables and writes doc/benchmarks/coreset.md. k-means: the cost on the rows of the centers
that scikit-learn's KMeans finds on the weighted points, over the cost of those that it finds on the
rows; beside it DPKMeans, which pays for each k anew. DBSCAN: the adjusted Rand index of the labels
that the points carry back to the rows, by the recipes of the user guide. delta = 1e-6, epsilon = 1
(DBSCAN also at 4), public bounds; each seed is another noise, and for DBSCAN also other rows.
"""

import argparse
import os
import time
import warnings

import _run  # first: one thread
import kmeans as setting  # the benchmark beside this file
import numpy as np
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from sklearn_dp import DPCoreset, DPKMeans

OUTPUT = _run.PAGES / "coreset.md"
CLUSTERS = (2, 5, 8, 12, 20)
FILES = ("s1", "s3", "cabs_sf", "letter16", "dim064")
HEAD = """# Released points instead of rows

`DPCoreset` at epsilon = 1, delta = 1e-6, with public bounds and its default `n_clusters=20`;
medians of {seeds} fits.

First table: the cost, on the rows, of the centers that `KMeans` finds on the weighted points, over
the cost of those that it finds on the rows; in parentheses the same of `DPKMeans(k)`, which pays
for each k anew. Seconds are CPU seconds of one coreset. Below 1: a better optimum was found.
Files are those of [k-means](kmeans.md), in boxes that are scaled into a ball of radius 1.
Second table: labels of `DBSCAN` on the points, carried back to the rows, beside the truth: in how
many of {seeds} fits the adjusted Rand index is .97 or more (its median), by both radii of
[the guide](../user_guide.md#private-coresets).

`python benchmarks/coreset.py --seeds {seeds}{data}` with {versions}.

"""
SHAPES = ((make_moons, {}), (make_circles, {"factor": 0.5}))
ROWS = (2000, 5000, 20_000, 100_000)


def mixture(n, d, k, seed=0):
    """Separated round clusters in the unit ball."""
    rng = np.random.default_rng(seed)
    centers = setting.in_ball(rng, k, d) * 0.8
    gap = setting.smallest_gap(centers)
    width = gap / 10 if d <= 10 else gap / (2 * np.sqrt(d) + 6)
    X = centers[rng.integers(0, k, n)] + width * rng.normal(size=(n, d))
    return setting.into_ball(X), 1.0


def lattice(n=100_000, side=10, seed=0):
    """Clusters of a plane whose centers are a square lattice, 6 standard deviations apart."""
    rng = np.random.default_rng(seed)
    centers = np.stack(np.meshgrid(*[np.arange(side)] * 2), axis=-1).reshape(-1, 2) - (side - 1) / 2
    X = centers[rng.integers(0, side**2, n)] + rng.normal(size=(n, 2)) / 6
    return setting.into_ball(X / side * 1.25), 1.0


def data_sets():
    """Name, rows, public bounds."""
    for n, d in ((10_000, 2), (10_000, 20), (100_000, 20)):
        yield f"8 clusters, n = {n:,}, d = {d}", *mixture(n, d, 8)
    yield "100 clusters, n = 100,000, d = 2", *lattice()
    X = load_digits().data
    yield f"digits, n = {len(X):,}, d = 64", X, (0.0, 16.0)
    for cell in setting.file_cells():
        if cell.name in FILES:
            X, _, _ = setting.file_data(cell, 0)
            yield f"{cell.name}, n = {len(X):,}, d = {X.shape[1]}", X, 1.0


def best_of(X, k, weights=None, n_init=5):
    """Centers of scikit-learn's k-means."""
    return KMeans(k, n_init=n_init, random_state=0).fit(X, sample_weight=weights).cluster_centers_


def kmeans_line(X, bounds, n_seeds):
    """Median points, seconds, and for each k the two ratios of costs."""
    coresets, begin = [], time.process_time()
    for seed in range(n_seeds):
        coresets.append(DPCoreset(bounds=bounds, random_state=seed).fit(X))
    seconds, cells = (time.process_time() - begin) / n_seeds, []
    for k in CLUSTERS:
        base = setting.cost(X, best_of(X, k))
        on_points = [
            setting.cost(X, best_of(c.points_, k, c.weights_)) / base
            for c in coresets
            if len(c.points_) >= k
        ]
        direct = [
            setting.cost(X, DPKMeans(k, bounds=bounds, random_state=seed).fit(X).cluster_centers_)
            for seed in range(n_seeds)
        ]
        cells.append((np.median(on_points), np.median(direct) / base))
    return int(np.median([len(c.points_) for c in coresets])), seconds, cells


def reach(points):
    """A radius for DBSCAN that follows the points: the .9 quantile of distances to the fourth."""
    return np.quantile(NearestNeighbors(n_neighbors=4).fit(points).kneighbors()[0][:, 3], 0.9)


def dbscan_line(shape, options, n, epsilon, n_seeds):
    """For both radii: how many seeds reach an index of .97, and the median index."""
    found = []
    for seed in range(n_seeds):
        X, truth = shape(n, noise=0.05, random_state=seed, **options)
        coreset = DPCoreset(epsilon=epsilon, bounds=3.0, random_state=seed).fit(X)
        least, nearest = int(0.0025 * coreset.weights_.sum()) + 1, coreset.predict(X)
        each = []
        for radius in (2 * coreset.resolution_, reach(coreset.points_)):
            model = DBSCAN(eps=radius, min_samples=least)
            model.fit(coreset.points_, sample_weight=coreset.weights_)
            each.append(adjusted_rand_score(truth, model.labels_[nearest]))
        found.append(each)
    return [
        (sum(index >= 0.97 for index in each), np.median(each)) for each in zip(*found, strict=True)
    ]


def tables(n_seeds):
    """The lines of the page, as they are measured."""
    yield f"| rows | points | seconds | {' | '.join(f'k = {k}' for k in CLUSTERS)} |"
    yield "|---" * (3 + len(CLUSTERS)) + "|"
    for name, X, bounds in data_sets():
        points, seconds, cells = kmeans_line(X, bounds, n_seeds)
        ratios = " | ".join(f"{ours:.3f} ({direct:.3f})" for ours, direct in cells)
        yield f"| {name} | {points} | {seconds:.2f} | {ratios} |"
    yield ""
    yield "| rows for DBSCAN | epsilon | twice the resolution | radius by the points |"
    yield "|---" * 4 + "|"
    for shape, options in SHAPES:
        for n in ROWS:
            for epsilon in (1.0, 4.0):
                each = dbscan_line(shape, options, n, epsilon, n_seeds)
                cells = " | ".join(f"{count} ({median:.3f})" for count, median in each)
                yield f"| {shape.__name__[5:]}, n = {n:,} | {epsilon:g} | {cells} |"


def main():
    """Measure, print, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", help="folder of .npz files: more lines")
    options = parser.parse_args()
    n_seeds = options.seeds
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    warnings.simplefilter("ignore")
    versions = _run.versions("numpy", "scikit-learn")
    lines = []
    for line in tables(n_seeds):
        print(line, flush=True)
        lines.append(line)
    data = " --data FOLDER" if options.data else ""
    page = HEAD.format(seeds=n_seeds, data=data, versions=versions)
    OUTPUT.write_text(page + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
