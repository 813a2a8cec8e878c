"""A planted ball in uniform noise: is it found, how large is the answer, at what price?

    python benchmarks/one_cluster.py                # all cells; about half an hour on two cores
    python benchmarks/one_cluster.py --quick        # d <= 10, n <= 1e4, 3 seeds

Three points in ten are uniform in a small ball (radius 0.02 for d <= 2, 0.01 sqrt(d) beyond), the
rest is uniform in the unit cube, which is the public bound. Each seed is a new data set; the
noise is seeded to make the table reproducible. Prints a table and writes
doc/benchmarks/one_cluster.md and .png. "ratio" is the released radius over that of the planted
ball; "success" means that the centre is within one planted radius of the planted one and the
radius at most twice as large; "points" counts those of the data in the ball, over t.

Rivals: "clip" needs no pairwise distances; "paper" is the published algorithm with its constants;
"all balls" is the exponential mechanism over a grid of centres (d <= 2), with the radius of a
noisy binary search; "mean" is a noisy mean with a noisy radius, as if the cluster were everything.
"""

import argparse
import math
import resource
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sklearn_dp import DPOneCluster
from sklearn_dp._privacy._accounting import zcdp_rho

OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "one_cluster"
DELTA = 1e-6


@dataclass
class Planted:
    """A data set with a ball of t points in it."""

    X: np.ndarray
    center: np.ndarray
    radius: float
    t: int


def planted(n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    t, radius = int(0.3 * n), (0.02 if d <= 2 else 0.01 * math.sqrt(d))
    center, ball = rng.uniform(0.3, 0.7, d), rng.normal(size=(t, d))
    ball *= (radius * rng.random(t) ** (1 / d) / np.linalg.norm(ball, axis=1))[:, None]
    X = np.vstack([rng.random((n - t, d)), center + ball])
    return Planted(X[rng.permutation(n)], center, radius, t)


def ours(**options):
    def find(data, epsilon, seed):
        model = DPOneCluster(data.t, epsilon=epsilon, delta=DELTA, bounds=(0.0, 1.0),
                             random_state=seed, **options).fit(data.X)
        return model.center_, model.radius_

    return find


def inside(X, center, radius):
    return int(np.count_nonzero(np.linalg.norm(X - center, axis=1) <= radius))


def noisy_radius(X, center, t, rho, rng):
    """Noisy binary search for the radius that holds t points."""
    grid, steps = 2.0 ** np.arange(-10, 1.01, 0.125), 7
    low, high = 0, len(grid) - 1
    while low < high:
        middle = (low + high) // 2
        count = inside(X, center, grid[middle]) + rng.normal() * math.sqrt(steps / (2 * rho))
        low, high = (low, middle) if count >= 0.95 * t else (middle + 1, high)
    return grid[high]


def all_balls(data, epsilon, seed):
    """Exponential mechanism over the centres of a grid, for a ladder of radii searched first."""
    rng, d = np.random.default_rng(seed), data.X.shape[1]
    rho, per_axis = zcdp_rho(epsilon, DELTA), {1: 1024, 2: 128}[d]
    axes = [(np.arange(per_axis) + 0.5) / per_axis] * d
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    ladder, steps = 2.0 ** np.arange(-8, 1.0), 4
    low, high = 0, len(ladder) - 1
    from scipy.spatial import cKDTree

    tree = cKDTree(data.X)
    counts = {}

    def best(i):
        if i not in counts:
            counts[i] = tree.query_ball_point(centers, ladder[i], return_length=True)
        return counts[i].max()

    while low < high:
        middle = (low + high) // 2
        noisy = best(middle) + rng.normal() * math.sqrt(steps / (2 * 0.3 * rho))
        low, high = (low, middle) if noisy >= 0.95 * data.t else (middle + 1, high)
    best(high)
    rate = math.sqrt(8 * 0.4 * rho) / 2
    center = centers[np.argmax(rate * counts[high] + rng.gumbel(size=len(centers)))]
    return center, noisy_radius(data.X, center, data.t, 0.3 * rho, rng)


def plain_mean(data, epsilon, seed):
    rng, d = np.random.default_rng(seed), data.X.shape[1]
    rho = zcdp_rho(epsilon, DELTA)
    noise = rng.normal(size=d) * math.sqrt(d) / 2 / math.sqrt(2 * 0.5 * rho)
    center = 0.5 + ((data.X - 0.5).sum(axis=0) + noise) / len(data.X)
    return center, noisy_radius(data.X, center, data.t, 0.5 * rho, rng)


METHODS = {"DPOneCluster": ours(), "clip": ours(center_method="clip"),
           "paper": ours(center_method="paper"), "all balls": all_balls, "mean": plain_mean}


def usable(method, n, d, epsilon):
    """The published algorithm is hopeless and slow; the others where they apply."""
    if method == "paper":
        return n == 10_000 and d in (2, 10) and epsilon == 1.0
    if method == "all balls":
        return d <= 2 and n <= 10_000
    return True


def cell(method, n, d, epsilon, seeds):
    rows = []
    for seed in range(seeds):
        data = planted(n, d, seed)
        start = time.perf_counter()
        center, radius = METHODS[method](data, epsilon, seed)
        seconds = time.perf_counter() - start
        miss = float(np.linalg.norm(center - data.center)) / data.radius
        ratio = radius / data.radius
        rows.append((ratio, miss, inside(data.X, center, radius) / data.t,
                     miss <= 1 and ratio <= 2, seconds))
    ratio, miss, points, good, seconds = map(np.array, zip(*rows, strict=True))
    return {"method": method, "d": d, "n": n, "epsilon": epsilon, "median": np.median(ratio),
            "p95": np.quantile(ratio, 0.95), "miss": np.median(miss), "points": np.median(points),
            "success": good.mean(), "seconds": np.median(seconds)}


def show(row):
    return (f"| {row['method']} | {row['d']} | {row['n']} | {row['epsilon']:g} "
            f"| {row['median']:.2f} | {row['p95']:.2f} | {row['miss']:.2f} "
            f"| {row['points']:.2f} | {100 * row['success']:.0f} % | {row['seconds']:.2f} |")


HEAD = ("| method | d | n | epsilon | ratio, median | ratio, 95 % | centre off by (radii) "
        "| points / t | success | seconds |\n|---|---|---|---|---|---|---|---|---|---|")


def plot(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2))
    for place, n in zip(figure.subplots(1, 3, sharey=True), (2_000, 10_000, 100_000), strict=True):
        for method in METHODS:
            chosen = [row for row in rows if row["method"] == method and row["n"] == n
                      and row["epsilon"] == 1.0]
            if chosen:
                place.plot([row["d"] for row in chosen], [row["median"] for row in chosen],
                           marker="o", label=method)
        place.set(xscale="log", yscale="log", title=f"n = {n}", xlabel="features")
    figure.axes[0].set_ylabel("released / planted radius")
    figure.axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = (2_000, 10_000) if options.quick else (2_000, 10_000, 100_000)
    rows = []
    print(HEAD)
    for n in sizes:
        for d in (1, 2, 10) if options.quick else (1, 2, 10, 50, 200):
            seeds = options.seeds or (3 if options.quick or n > 10_000 else 10)
            for epsilon in (0.5, 1.0, 2.0):
                for method in METHODS:
                    if usable(method, n, d, epsilon):
                        rows.append(cell(method, n, d, epsilon, seeds))
                        print(show(rows[-1]), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["# A planted ball", "", "```", __doc__.strip(), "```", "",
                      f"Peak memory of the whole run: {peak:.2f} GB.", "",
                      "![ratio](one_cluster.png)", "", HEAD, *map(show, rows), ""])
    options.output.with_suffix(".md").write_text(text)
    plot(rows, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
