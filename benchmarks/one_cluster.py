"""A planted ball in uniform noise: is it found, how large is the answer, at what price?

    python benchmarks/one_cluster.py                # the cells that are not in the table yet
    python benchmarks/one_cluster.py --quick        # d <= 10, n <= 1e4, 3 seeds; another table
    python benchmarks/one_cluster.py --only DPOneCluster --n 100000 --d 10
    python benchmarks/one_cluster.py --data minority half
    python benchmarks/one_cluster.py --report       # table and plot from the rows there are

Three points in ten (four at d = 100) are uniform in a small ball (radius 0.02 for d <= 2, 0.01
sqrt(d) beyond), the rest is uniform in the unit cube, which is the public bound: data "uniform".
In "minority" the rest is one wide cluster (normal, with a standard deviation of 0.1 in each
feature) in another place, ten times as large as the ball; in "half", too, but half of the points
are in the ball, and t is asked for as that fraction, 0.5. Each seed is a new data set; the noise is
seeded to make the table reproducible. Each cell runs in a process of
its own and adds a row to doc/benchmarks/one_cluster.csv; the report makes .md and .png of them.
"ratio" is the released radius over that of the planted ball; "success" means that the center is
within one planted radius of the planted one and the radius at most twice as large; "points" counts
those of the data in the ball, over t; memory is the peak of the process, data included.

Rivals, all with the same target (epsilon, delta = 1e-6), accounted in zCDP as ours is. The four of
the paper's comparison: "paper" is its own algorithm with its constants; "all balls" is the
exponential mechanism over a grid of centers (d <= 2), with the radius of a noisy binary search;
"thresholds" releases all prefix counts of a line (d = 1) by a tree and takes the shortest interval
that seems to hold t; "aggregation" is private aggregation after Nissim, Raskhodnikova and Smith:
each coordinate's median with noise of its smooth sensitivity, which is for majorities (here t is
0.3 n: what it does beyond its premise). "clip" is ours without boxes and pairwise distances,
"projection" ours with random projections in place of principal axes, "principal" ours with
principal axes where "auto" means something else, "mean" a noisy mean with a noisy radius, as if the
cluster were everything. "paper" starts from the whole domain where its boxes fail, as they do here.
"rec_concave" is ours with the published choice of the radius.

What the rows say: for one ball in uniform noise "clip" is as accurate as principal axes from d = 10
on, faster, and better where noise is large (d >= 50, n = 2000). But it finds what the mean of all
points leads to: beside a wide cluster, principal axes find a minority of 3,000 rows in 10 and in 50
features, always, and "clip" in 30% and 5% of the runs (in 200 features neither does). So "auto"
is "clip" for a majority only, that is for data "half", where it is ahead of principal axes. (A run
in twenty fails there for another reason: t, half of the noisy number of points, is more than are in
the ball.)
"""

import argparse
import csv
import math
import platform
import resource
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import _run  # first: one thread
import numpy as np
import sklearn
from _style import COLORS, INK, MARKERS, legend_on_top, new, plain_ticks, save

from sklearn_dp import DPOneCluster
from sklearn_dp._costs.accounting import zcdp_rho

OUTPUT = _run.PAGES / "one_cluster"
DELTA = 1e-6
DATA = ("uniform", "minority", "half")
SIZES, FEATURES, EPSILONS = (2_000, 10_000, 100_000), (1, 2, 10, 50, 200), (0.5, 1.0, 2.0)


@dataclass
class Planted:
    """A data set with a ball of t points in it, and how t is asked for."""

    X: np.ndarray
    center: np.ndarray
    radius: float
    t: int
    n_points: int | float


def planted(kind, n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    share = 0.5 if kind == "half" else 0.4 if d == 100 and kind == "uniform" else 0.3
    t, radius = int(share * n), (0.02 if d <= 2 else 0.01 * math.sqrt(d))
    center, ball = rng.uniform(0.3, 0.7, d), rng.normal(size=(t, d))
    ball *= (radius * rng.random(t) ** (1 / d) / np.linalg.norm(ball, axis=1))[:, None]
    others = rng.random((n - t, d)) if kind == "uniform" else wide(rng, n - t, d)
    X = np.vstack([others, center + ball])
    return Planted(X[rng.permutation(n)], center, radius, t, 0.5 if kind == "half" else t)


def wide(rng, n, d):
    """One cluster with ten times the radius of the ball (five times for d <= 2)."""
    return (rng.uniform(0.3, 0.7, d) + 0.1 * rng.normal(size=(n, d))).clip(0, 1)


# -- methods ----------------------------------------------------------------------------------


def ours(**options):
    def find(data, epsilon, seed):
        model = DPOneCluster(
            data.n_points,
            epsilon=epsilon,
            delta=DELTA,
            bounds=(0.0, 1.0),
            random_state=seed,
            **options,
        ).fit(data.X)
        return model.center_, model.radius_

    return find


def inside(X, center, radius):
    return int(np.count_nonzero(np.linalg.norm(X - center, axis=1) <= radius))


def noisy_radius(X, center, t, rho, rng):
    """Noisy binary search for the radius that holds t points."""
    grid, steps = 2.0 ** np.arange(-10, 3.01, 0.125), 7
    distances = np.sort(np.linalg.norm(X - center, axis=1))
    low, high = 0, len(grid) - 1
    while low < high:
        middle = (low + high) // 2
        count = np.searchsorted(distances, grid[middle]) + rng.normal() * math.sqrt(
            steps / (2 * rho)
        )
        low, high = (low, middle) if count >= 0.95 * t else (middle + 1, high)
    return grid[high]


def all_balls(data, epsilon, seed):
    """Exponential mechanism over the centers of a grid, for a ladder of radii searched first."""
    from scipy.spatial import cKDTree

    rng, d = np.random.default_rng(seed), data.X.shape[1]
    rho, per_axis = zcdp_rho(epsilon, DELTA), {1: 1024, 2: 128}[d]
    axes = [(np.arange(per_axis) + 0.5) / per_axis] * d
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    ladder, steps = 2.0 ** np.arange(-8, 1.0), 4
    low, high = 0, len(ladder) - 1
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


def thresholds(data, epsilon, seed):
    """Prefix counts on 2^14 steps by a binary tree, consistent in least squares; d = 1.

    A point is in one node of each level: sigma^2 = levels / (2 rho).
    """
    rng, levels = np.random.default_rng(seed), 15
    sigma = math.sqrt(levels / (2 * zcdp_rho(epsilon, DELTA)))
    leaves = np.bincount(
        (data.X[:, 0] * 2 ** (levels - 1)).astype(int).clip(0), minlength=2 ** (levels - 1)
    )[: 2 ** (levels - 1)]
    exact = [leaves]
    while len(exact[-1]) > 1:
        exact.append(exact[-1].reshape(-1, 2).sum(axis=1))
    noisy = [counts + sigma * rng.normal(size=len(counts)) for counts in exact]
    # Up: each node becomes the best of its own count and of its children's; down: consistency.
    estimate, weight = [noisy[0]], 1.0
    for own in noisy[1:]:
        below = estimate[-1].reshape(-1, 2).sum(axis=1)
        estimate.append((own + below * weight / 2) / (1 + weight / 2))
        weight = 1 + weight / 2
    top = estimate[-1]
    for own in estimate[-2::-1]:
        pairs = own.reshape(-1, 2)
        top = (pairs + ((top - pairs.sum(axis=1)) / 2)[:, None]).ravel()
    prefix = np.maximum.accumulate(np.append(0.0, np.cumsum(top)))
    ends = np.searchsorted(prefix, prefix[:-1] + 0.95 * data.t)
    lengths = np.where(ends < len(prefix), ends - np.arange(len(prefix) - 1), len(prefix))
    start = int(lengths.argmin())
    low, high = (
        start / 2 ** (levels - 1),
        min(start + lengths[start], 2 ** (levels - 1)) / 2 ** (levels - 1),
    )
    return np.array([(low + high) / 2]), (high - low) / 2


def smooth_median(values, epsilon, delta, rng):
    """Median of values in [0, 1] with Laplace noise of twice the smooth sensitivity / epsilon.

    The maximum over k is taken over a geometric grid: a little too small, in its favor.
    """
    values, n = np.sort(values), len(values)
    beta, m = epsilon / (2 * math.log(2 / delta)), n // 2
    padded = np.concatenate([np.zeros(n + 1), values, np.ones(n + 1)])
    worst, middle = 0.0, m + n + 1
    for k in np.unique(np.geomspace(1, n, 120).astype(int)) - 1:
        decay = math.exp(-beta * k)
        if decay < worst:
            break
        spans = padded[middle : middle + k + 2] - padded[middle - k - 1 : middle + 1]
        worst = max(worst, decay * float(spans.max()))
    return values[m] + 2 * worst / epsilon * rng.laplace()


def aggregation(data, epsilon, seed):
    """A noisy median of each coordinate (zCDP: epsilon^2 / 2 a coordinate), then a radius."""
    rng, d = np.random.default_rng(seed), data.X.shape[1]
    rho = zcdp_rho(epsilon, DELTA / 2)
    per_axis = math.sqrt(2 * 0.7 * rho / d)
    center = np.array(
        [smooth_median(column, per_axis, DELTA / 2 / d, rng) for column in data.X.T]
    ).clip(0, 1)
    return center, noisy_radius(data.X, center, data.t, 0.3 * rho, rng)


def plain_mean(data, epsilon, seed):
    rng, d = np.random.default_rng(seed), data.X.shape[1]
    rho = zcdp_rho(epsilon, DELTA)
    noise = rng.normal(size=d) * math.sqrt(d) / 2 / math.sqrt(2 * 0.5 * rho)
    center = 0.5 + ((data.X - 0.5).sum(axis=0) + noise) / len(data.X)
    return center, noisy_radius(data.X, center, data.t, 0.5 * rho, rng)


METHODS = {
    "DPOneCluster": ours(),
    "clip": ours(center_method="clip"),
    "projection": ours(center_method="grid"),
    "principal": ours(center_method="pca"),
    "paper": ours(center_method="paper"),
    "rec_concave": ours(radius_method="rec_concave"),
    "all balls": all_balls,
    "thresholds": thresholds,
    "aggregation": aggregation,
    "mean": plain_mean,
}


def usable(kind, method, n, d, epsilon):
    """The published algorithm is hopeless and slow; the others where they apply."""
    if kind != "uniform" or method == "principal":
        known = ("DPOneCluster", "clip") if kind == "minority" else ("DPOneCluster", "principal")
        return kind != "uniform" and d > 8 and method in known
    if method in ("paper", "rec_concave"):
        return n == 10_000 and d in (2, 10) and epsilon == 1.0
    if method == "projection":
        return d > 8 and epsilon == 1.0
    if method == "all balls":
        return d <= 2 and n <= 10_000
    return method != "thresholds" or d == 1


def repeats(method, n, d):
    """Fewer where a fit is dear."""
    if method == "paper":
        return 2
    return 20 if n <= 2_000 and d <= 10 else 10 if n <= 10_000 and d <= 50 else 5


# -- cells ------------------------------------------------------------------------------------

FIELDS = (
    "data",
    "method",
    "d",
    "n",
    "epsilon",
    "seeds",
    "median",
    "p95",
    "miss",
    "points",
    "success",
    "seconds",
    "gigabytes",
)


def cell(kind, method, n, d, epsilon, seeds):
    rows = []
    for seed in range(seeds):
        data = planted(kind, n, d, seed)
        start = time.perf_counter()
        center, radius = METHODS[method](data, epsilon, seed)
        seconds = time.perf_counter() - start
        miss = float(np.linalg.norm(center - data.center)) / data.radius
        ratio = radius / data.radius
        rows.append(
            (
                ratio,
                miss,
                inside(data.X, center, radius) / data.t,
                miss <= 1 and ratio <= 2,
                seconds,
            )
        )
    ratio, miss, points, good, seconds = map(np.array, zip(*rows, strict=True))
    numbers = (
        np.median(ratio),
        np.quantile(ratio, 0.95),
        np.median(miss),
        np.median(points),
        good.mean(),
        np.median(seconds),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )
    return dict(
        zip(
            FIELDS,
            (kind, method, d, n, epsilon, seeds, *(f"{x:.4g}" for x in numbers)),
            strict=True,
        )
    )


def read(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def wanted(options):
    """Cells that are asked for and not there yet, the cheap ones first."""
    done = {
        (row["data"], row["method"], int(row["d"]), int(row["n"]), float(row["epsilon"]))
        for row in read(options.output.with_suffix(".csv"))
    }
    for n, kind, d, epsilon, method in product(
        options.n or (SIZES[:2] if options.quick else SIZES),
        options.data,
        options.d or (FEATURES[:3] if options.quick else FEATURES),
        options.epsilon or EPSILONS,
        options.only or METHODS,
    ):
        if usable(kind, method, n, d, epsilon) and (kind, method, d, n, epsilon) not in done:
            yield kind, method, n, d, epsilon


# -- report -----------------------------------------------------------------------------------

HEAD = (
    "| data | method | d | n | epsilon | seeds | ratio, median | ratio, 95% "
    "| center off by (radii) | points / t | success | seconds | GB |\n" + 13 * "|---" + "|"
)


def show(row):
    number = {name: float(row[name]) for name in FIELDS[2:]}
    return (
        f"| {row['data']} | {row['method']} | {row['d']} | {row['n']} "
        f"| {number['epsilon']:g} | {row['seeds']} | {number['median']:.2f} "
        f"| {number['p95']:.2f} | {number['miss']:.2f} | {number['points']:.2f} "
        f"| {100 * number['success']:.0f}% | {number['seconds']:.2f} "
        f"| {number['gigabytes']:.2f} |"
    )


def plot(rows, path):
    """The released radius over the planted one, by the number of features."""
    figure, places = new((11, 4.6), 1, 3, sharey=True)
    for place, n in zip(places, SIZES, strict=True):
        for i, method in enumerate(METHODS):
            chosen = sorted(
                (int(row["d"]), float(row["median"]))
                for row in rows
                if row["data"] == "uniform"
                and row["method"] == method
                and int(row["n"]) == n
                and float(row["epsilon"]) == 1.0
            )
            if chosen:
                color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
                # A second round of colors is dashed and filled.
                style = {"mfc": "none"} if i < len(COLORS) else {"ls": "--"}
                style |= {"color": color, "marker": marker, "label": method}
                place.plot(*zip(*chosen, strict=True), **style)
        place.set(
            xscale="log",
            yscale="log",
            title=f"{n:,} rows, epsilon = 1",
            xlabel="features",
            xlim=(0.8, 300),
            ylim=(0.7, 100),
        )
        plain_ticks(place.xaxis, [1, 2, 10, 50, 200])
        plain_ticks(place.yaxis, [1, 3, 10, 30, 100])
        place.grid(axis="y")
        place.axhline(1, color=INK, lw=1, ls="--")
    places[0].set_ylabel("released radius, over the planted one")
    legend_on_top(figure, 5)
    save(figure, path)


def report(output):
    rows = read(output.with_suffix(".csv"))
    order = {name: i for i, name in enumerate(METHODS)}
    rows.sort(
        key=lambda row: (
            DATA.index(row["data"]),
            int(row["n"]),
            int(row["d"]),
            float(row["epsilon"]),
            order[row["method"]],
        )
    )
    made = (
        f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}; one thread, on a machine with other work to do: seconds are "
        "on the wall."
    )
    text = "\n".join(
        [
            "# A planted ball",
            "",
            "```text",
            __doc__.strip(),
            "```",
            "",
            made,
            "",
            f"![ratio]({output.name}.png)",
            "",
            HEAD,
            *map(show, rows),
            "",
        ]
    )
    output.with_suffix(".md").write_text(text)
    plot(rows, output.with_suffix(".png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, kind in (("--n", int), ("--d", int), ("--epsilon", float)):
        parser.add_argument(name, type=kind, nargs="*")
    parser.add_argument("--data", nargs="*", choices=DATA, default=["uniform"])
    parser.add_argument("--only", nargs="*", choices=METHODS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--here", action="store_true", help="run cells in this process")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if options.plot:
        return plot(read(options.output.with_suffix(".csv")), options.output.with_suffix(".png"))
    if options.quick:
        options.output = options.output.with_name("one_cluster_quick")
        options.seeds = options.seeds or 3
    warnings.simplefilter("ignore")
    for kind, method, n, d, epsilon in () if options.report else list(wanted(options)):
        if options.here:
            row = cell(kind, method, n, d, epsilon, options.seeds or repeats(method, n, d))
            append(options.output.with_suffix(".csv"), row)
            print(show(row), flush=True)
        else:
            subprocess.run(
                [
                    sys.executable,
                    __file__,
                    "--here",
                    "--data",
                    kind,
                    "--only",
                    method,
                    "--n",
                    str(n),
                    "--d",
                    str(d),
                    "--epsilon",
                    str(epsilon),
                    "--seeds",
                    str(options.seeds),
                    "--output",
                    str(options.output),
                ],
                check=True,
            )
    if not options.here:
        report(options.output)


if __name__ == "__main__":
    main()
