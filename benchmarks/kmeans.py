"""Private k-means beside k-means and its private rivals: cost, agreement with the truth, time.

    python benchmarks/kmeans.py                   # all cells, 15 seeds; about half an hour
    python benchmarks/kmeans.py --quick           # a cell of each kind, 3 seeds
    python benchmarks/kmeans.py --cells "n=1e4 d=(50|100)" --seeds 5

Prints a table and writes doc/benchmarks/kmeans.md, .csv and .png (`--output` for another place).
Every method sees the same rows, one process, one thread; each seed is a new data set (the bundled
real ones: the same rows, new noise). "ratio" is the cost over the lowest non-private cost that was
found (10 starts and the true centres; 60 starts for real data).

Settings, all with the public radius 1:
  paper      8 Gaussians of standard deviation sqrt(0.0221), centres uniform in the unit ball
  separated  Gaussians whose standard deviation is a tenth of the smallest distance of two centres
             (d > 10: over 2 sqrt(d) + 6)
  real       iris, wine, breast_cancer, digits; each column scaled by its public range

diffprivlib's KMeans is known to spend more than its epsilon; it is listed all the same.
"""

import argparse
import csv
import os
import platform
import re
import shlex
import sys
import time
import types
import warnings
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from sklearn_dp.cluster import DPKMeans  # noqa: E402
from sklearn_dp.exceptions import UtilityWarning  # noqa: E402

DELTA = {"paper": 1e-8, "separated": 1e-8, "real": 1e-6}
REAL = {"iris": 3, "wine": 3, "breast_cancer": 2, "digits": 10}
OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "kmeans"


# --- data ----------------------------------------------------------------------------------------


def into_ball(X):
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def in_ball(rng, size, d):
    """Points uniform in the unit ball."""
    points = rng.normal(size=(size, d))
    radius = rng.random(size) ** (1 / d)
    return points * (radius / np.linalg.norm(points, axis=1))[:, None]


def smallest_gap(centers):
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)
    np.fill_diagonal(gaps, np.inf)
    return gaps.min()


def gaussians(rng, centers, sigma, n):
    labels = rng.integers(len(centers), size=n)
    return into_ball(centers[labels] + sigma * rng.normal(size=(n, centers.shape[1]))), labels


def paper_mixture(cell, seed):
    rng = np.random.default_rng([seed, cell.n, cell.d])
    centers = in_ball(rng, cell.k, cell.d)
    return (*gaussians(rng, centers, np.sqrt(0.0221), cell.n), centers)


def separated_mixture(cell, seed):
    rng = np.random.default_rng([seed, cell.n, cell.d, cell.k])
    centers = max((0.8 * in_ball(rng, cell.k, cell.d) for _ in range(200)), key=smallest_gap)
    wide = 10 if cell.d <= 10 else 2 * np.sqrt(cell.d) + 6
    return (*gaussians(rng, centers, smallest_gap(centers) / wide, cell.n), centers)


def real_data(cell, seed):
    X, labels = getattr(datasets, f"load_{cell.name}")(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    if cell.name == "digits":
        low, high = np.zeros(64), np.full(64, 16.0)
    X = (2 * (X - low) / np.where(high > low, high - low, 1.0) - 1) / np.sqrt(X.shape[1])
    return X, labels, None


MAKE = {"paper": paper_mixture, "separated": separated_mixture, "real": real_data}


@dataclass(frozen=True)
class Cell:
    """One line of the table for each method."""

    setting: str
    n: int
    d: int
    k: int
    epsilon: float = 1.0
    name: str = ""

    def __str__(self):
        where = f"{self.name} eps={self.epsilon:g}" if self.name else ""
        return f"{self.setting} {where or f'n={self.n:.0e} d={self.d} k={self.k}'}".replace(
            "e+0", "e")


def all_cells():
    cells = [Cell("separated", n, d, k)
             for n in (10**4, 10**5) for d in (2, 10, 50, 100) for k in (5, 10, 20)]
    cells += [Cell("paper", 20_000, 2, 8)]
    cells += [Cell("paper", 10**5, d, 8) for d in (2, 3, 4, 5, 8)]
    for name, k in REAL.items():
        X = getattr(datasets, f"load_{name}")().data
        cells += [Cell("real", *X.shape, k, epsilon, name) for epsilon in (0.5, 1, 2, 4)]
    return cells


QUICK = ("separated n=1e4 d=2 k=5", "separated n=1e4 d=10 k=5", "separated n=1e4 d=50 k=10",
         "separated n=1e5 d=10 k=10", "paper n=2e4 d=2 k=8", "real digits eps=1")


# --- methods: (X, cell, seed) -> centres ----------------------------------------------------------


def ours(X, cell, seed):
    model = DPKMeans(cell.k, epsilon=cell.epsilon, delta=DELTA[cell.setting], bounds=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)  # few rows and a small budget, on purpose
        return model.fit(X).cluster_centers_


def plain(X, cell, seed):
    return KMeans(cell.k, n_init=10, random_state=seed).fit(X).cluster_centers_


def one_center(X, cell, seed):
    return X.mean(axis=0, keepdims=True)


def uniform_grid(X, cell, seed):
    """Noisy counts of a uniform grid (EUGkM's size), then weighted k-means.

    All the budget goes into one histogram, where Laplace noise of scale 1 / epsilon serves best.
    """
    d = X.shape[1]
    side = max(2, round((len(X) * cell.epsilon / 10) ** (2 / (2 + d))))
    index = np.clip(((X + 1) / 2 * side).astype(int), 0, side - 1)
    counts = np.bincount(np.ravel_multi_index(index.T, (side,) * d), minlength=side**d)
    noise = np.random.default_rng(seed).laplace(scale=1 / cell.epsilon, size=len(counts))
    weights = np.maximum(counts + noise, 0.0)
    centers = np.stack(np.unravel_index(np.arange(side**d), (side,) * d), axis=1)
    points = (centers + 0.5) / side * 2 - 1
    keep = weights > 0
    return KMeans(cell.k, n_init=10, random_state=seed).fit(
        points[keep], sample_weight=weights[keep]).cluster_centers_


def diffprivlib_kmeans():
    """diffprivlib's KMeans as a method, or None."""
    # Its forests do not import beside a new scikit-learn; its k-means does.
    forest = types.ModuleType("diffprivlib.models.forest")
    forest.RandomForestClassifier = forest.DecisionTreeClassifier = None
    sys.modules.setdefault(forest.__name__, forest)
    try:
        from diffprivlib.models import KMeans as Rival
    except ImportError:
        return None

    def method(X, cell, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Rival(cell.k, epsilon=cell.epsilon, bounds=(-1, 1),
                         random_state=seed).fit(X).cluster_centers_

    return method


def methods():
    found = {"DPKMeans": ours, "KMeans(n_init=10)": plain, "one centre": one_center,
             "noisy grid": uniform_grid, "diffprivlib": diffprivlib_kmeans()}
    return {name: method for name, method in found.items() if method is not None}


# --- measuring -----------------------------------------------------------------------------------


def cost(X, centers):
    total = 0.0
    for start in range(0, len(X), 2**14):
        part = X[start:start + 2**14]
        scores = np.square(centers).sum(axis=1) - 2 * part @ centers.T
        total += np.maximum(np.square(part).sum(axis=1) + scores.min(axis=1), 0.0).sum()
    return total


def nearest(X, centers):
    return (np.square(centers).sum(axis=1) - 2 * X @ centers.T).argmin(axis=1)


def best_known(X, cell, truth):
    """Lowest non-private cost, of many starts or of the true centres."""
    if truth is None:
        return KMeans(cell.k, n_init=60, random_state=1).fit(X).inertia_
    return KMeans(cell.k, init=truth, n_init=1).fit(X).inertia_


def measure(cell, n_seeds, chosen):
    """Rows of the CSV: one for each seed and method."""
    reference = None
    for seed in range(n_seeds):
        X, labels, truth = MAKE[cell.setting](cell, seed)
        if reference is None or cell.setting != "real":
            reference = best_known(X, cell, truth)
        rows = [run(cell, name, method, X, labels, seed) for name, method in chosen.items()
                if name != "noisy grid" or cell.d <= 4]
        best = min([reference] + [row["cost"] for row in rows if row["method"].startswith("KMe")])
        yield from ({**row, "ratio": row["cost"] / best} for row in rows)


def run(cell, name, method, X, labels, seed):
    start = time.process_time()
    centers = method(X, cell, seed)
    seconds = time.process_time() - start
    return {"cell": str(cell), "method": name, "seed": seed, "cost": cost(X, centers),
            "ari": adjusted_rand_score(labels, nearest(X, centers)), "cpu": seconds}


def summary(rows):
    """Lines of the table, by cell and method."""
    groups = {}
    for row in rows:
        groups.setdefault((row["cell"], row["method"]), []).append(row)
    for (cell, method), group in groups.items():
        ratio = np.array([row["ratio"] for row in group])
        low, median, high = np.quantile(ratio, [0.25, 0.5, 0.75])
        yield {"cell": cell, "method": method, "fits": len(group), "ratio": median,
               "quartiles": f"[{low:.4f} {high:.4f}]", "worst": ratio.max(),
               "ari": float(np.median([row["ari"] for row in group])),
               "cpu": float(np.median([row["cpu"] for row in group]))}


def line(entry):
    return (f"| {entry['cell']} | {entry['method']} | {entry['ratio']:.4f} "
            f"{entry['quartiles']} | {entry['worst']:.4f} | {entry['ari']:.2f} "
            f"| {entry['cpu']:.3f} |")


HEADER = ("| cell | method | cost ratio, median [quartiles] | worst | ARI | CPU s |\n"
          "|---|---|---|---|---|---|")


def write_markdown(path, entries, command, n_seeds):
    text = [
        "# Private k-means", "",
        "Cost over the lowest non-private cost found; agreement with the true classes (adjusted "
        "Rand index); CPU time", f"of one thread. Median over {n_seeds} seeds. Add or remove one "
        "row; epsilon = 1 unless said, delta = 1e-8 (real data: 1e-6); public radius 1.",
        "diffprivlib's KMeans is known to spend more than its epsilon; \"one centre\" and KMeans "
        "are not private.", "",
        f"`{command}` with Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}.", "",
        f"![cost ratios](images/{path.name}.png)", "", HEADER, *map(line, entries), ""]
    path.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")


def write_plot(path, entries):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = list(dict.fromkeys(entry["cell"] for entry in entries))
    names = [name for name in dict.fromkeys(e["method"] for e in entries) if "init" not in name]
    figure, axis = plt.subplots(figsize=(9, 0.24 * len(cells) + 1.6), layout="constrained")
    for name, marker in zip(names, "osx^", strict=False):
        found = [(e["ratio"] - 1, cells.index(e["cell"])) for e in entries if e["method"] == name]
        loss, at = np.array(found).T
        axis.plot(np.maximum(loss, 1e-5), at, marker, label=name, linestyle="none", markersize=5)
    axis.set(xscale="log", xlabel="cost above the non-private cost (relative, median)",
             yticks=range(len(cells)), yticklabels=cells)
    axis.tick_params(axis="y", labelsize=7)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend(loc="upper center", ncols=len(names), bbox_to_anchor=(0.5, 1.06 + 1 / len(cells)))
    images = path.parent / "images"
    images.mkdir(exist_ok=True)
    figure.savefig(images / f"{path.name}.png", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a cell of each kind, 3 seeds")
    parser.add_argument("--seeds", type=int, help="data sets for each cell")
    parser.add_argument("--cells", default="", help="only cells whose name has this pattern")
    parser.add_argument("--ours", action="store_true", help="leave the rivals out")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="path without a suffix")
    options = parser.parse_args()
    n_seeds = options.seeds or (3 if options.quick else 15)
    cells = [cell for cell in all_cells() if re.search(options.cells, str(cell))
             and (not options.quick or str(cell) in QUICK)]
    chosen = {"DPKMeans": ours, "KMeans(n_init=10)": plain} if options.ours else methods()
    rows = []
    print(HEADER)
    for cell in cells:
        new = list(measure(cell, n_seeds, chosen))
        rows += new
        print("\n".join(map(line, summary(new))), flush=True)
    with open(options.output.with_suffix(".csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    command = shlex.join(["python", "benchmarks/kmeans.py", *sys.argv[1:]])
    entries = list(summary(rows))
    write_markdown(options.output, entries, command, n_seeds)
    write_plot(options.output, entries)


if __name__ == "__main__":
    main()
