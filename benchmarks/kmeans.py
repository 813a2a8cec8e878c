"""Private k-means compared with k-means and other private libraries: cost, agreement, time.

    python benchmarks/kmeans.py                   # all cells, 15 seeds; about two hours
    python benchmarks/kmeans.py --quick           # a cell of each kind, 3 seeds
    python benchmarks/kmeans.py --cells "n=1e4 d=(50|100)" --seeds 5
    python benchmarks/kmeans.py --cells "files" --data FOLDER --add    # into the same table
    python benchmarks/kmeans.py --basins 100      # only ours: how often a fit misses a cluster

Prints a table and writes doc/benchmarks/kmeans.md, .csv and .png, or kmeans_basins.md (or what
`--output` names).
Every method sees the same rows, one process, one thread; each seed is a new data set (the real
ones: the same rows, new noise). "ratio" is the cost over the lowest non-private cost that was
found (10 starts and the true centers; 60 starts for the small real data, 20 for files).

Settings, all with the public radius 1:
  paper      8 Gaussians of standard deviation sqrt(0.0221), centers uniform in the unit ball
  separated  Gaussians whose standard deviation is a tenth of the smallest distance of two centers
             (d > 10: over 2 sqrt(d) + 6)
  real       iris, wine, breast_cancer, digits; each column scaled by its public range
  files      data sets of a folder (`--data`, or the variable SKLEARN_DP_DATA), each column scaled
             by the bounds that the file states; left out without a folder

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

import _run  # first: one thread
import numpy as np
import sklearn
from _style import COLORS, MUTED, new, plain_ticks, save
from scipy import sparse
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp._costs.accounting import gaussian_sigma
from sklearn_dp.cluster import DPKMeans
from sklearn_dp.exceptions import UtilityWarning

DELTA = {"paper": 1e-8, "separated": 1e-8, "real": 1e-6, "files": 1e-6}
REAL = {"iris": 3, "wine": 3, "breast_cancer": 2, "digits": 10}
FILES = {
    "s1": 15,
    "s2": 15,
    "s3": 15,
    "s4": 15,
    "unbalance": 8,
    "dim064": 16,
    "letter16": 26,
    "wisdm_har": 6,
    "credit_default": 5,
    "acs_20states": 10,
    "cabs_sf": 10,
}
SAME_ROWS = ("real", "files")
FIRST_FRESH = 1000  # seeds of the data that only count wrong basins
OUTPUT = _run.PAGES / "kmeans"


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
    return into_box(X, low, high), labels, None


def into_box(X, low, high):
    """Rows scaled by public bounds, so that the box lies in the unit ball."""
    X = 2 * (X - low) / np.where(high > low, high - low, 1.0) - 1
    return np.clip(X, -1.0, 1.0) / np.sqrt(X.shape[1])


def file_data(cell, seed):
    with np.load(data_folder() / f"{cell.name}.npz", allow_pickle=False) as file:
        low, high = file["bounds_lo"], file["bounds_hi"]
        X = file["X"].astype(np.float64)
        labels = file.get("y")
    return into_box(X, low, high), labels, None


def data_folder():
    folder = os.environ.get("SKLEARN_DP_DATA")
    return Path(folder) if folder else None


MAKE = {
    "paper": paper_mixture,
    "separated": separated_mixture,
    "real": real_data,
    "files": file_data,
}


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
        if self.setting == "files":
            where = f"{self.name} n={self.n} d={self.d} k={self.k}"
        return f"{self.setting} {where or f'n={self.n:.0e} d={self.d} k={self.k}'}".replace(
            "e+0", "e"
        )


def all_cells():
    cells = [
        Cell("separated", n, d, k)
        for n in (10**4, 10**5)
        for d in (2, 10, 50, 100)
        for k in (5, 10, 20)
    ]
    cells += [Cell("separated", 10**5, d, 50) for d in (2, 10, 50, 100)]
    cells += [Cell("paper", 20_000, 2, 8)]
    cells += [Cell("paper", 10**5, d, 8) for d in (2, 3, 4, 5, 8)]
    for name, k in REAL.items():
        X = getattr(datasets, f"load_{name}")().data
        cells += [Cell("real", *X.shape, k, epsilon, name) for epsilon in (0.5, 1, 2, 4)]
    return cells + file_cells()


def file_cells():
    found = []
    for name, k in FILES.items() if data_folder() else ():
        path = data_folder() / f"{name}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                found.append(Cell("files", *file["X"].shape, k, 1.0, name))
    return found


QUICK = (
    "separated n=1e4 d=2 k=5",
    "separated n=1e4 d=10 k=5",
    "separated n=1e4 d=50 k=10",
    "separated n=1e5 d=10 k=10",
    "paper n=2e4 d=2 k=8",
    "real digits eps=1",
)


# --- methods: (X, cell, seed) -> centers ----------------------------------------------------------


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
    while side**d < 2 * cell.k:  # few rows: not fewer cells than there are centers to find
        side += 1
    index = np.clip(((X + 1) / 2 * side).astype(int), 0, side - 1)
    counts = np.bincount(np.ravel_multi_index(index.T, (side,) * d), minlength=side**d)
    noise = np.random.default_rng(seed).laplace(scale=1 / cell.epsilon, size=len(counts))
    weights = np.maximum(counts + noise, 0.0)
    centers = np.stack(np.unravel_index(np.arange(side**d), (side,) * d), axis=1)
    points = (centers + 0.5) / side * 2 - 1
    keep = weights > 0
    return (
        KMeans(min(cell.k, keep.sum()), n_init=10, random_state=seed)
        .fit(points[keep], sample_weight=weights[keep])
        .cluster_centers_
    )


def sphere_packing(rng, k, d, n_tries=100):
    """k points of the unit ball, as far apart and from its border as random placing gets them."""
    low, high, best = 0.0, 1.0, in_ball(rng, k, d)
    for _ in range(12):
        gap = (low + high) / 2
        placed = place(rng, k, d, gap, n_tries)
        low, high, best = (gap, high, placed) if placed is not None else (low, gap, best)
    return best


def place(rng, k, d, gap, n_tries):
    placed = np.empty((0, d))
    for _ in range(k):
        tries = (1 - gap) * in_ball(rng, n_tries, d)
        far = (np.linalg.norm(tries[:, None] - placed, axis=2) >= 2 * gap).all(axis=1)
        if not far.any():
            return None
        placed = np.vstack([placed, tries[far.argmax()]])
    return placed


def packed_lloyd(X, cell, seed, n_steps=5):
    """Sphere packing, then noisy Lloyd steps: sums and counts, each step the same part of mu."""
    rng = np.random.default_rng(seed)
    centers = sphere_packing(rng, cell.k, cell.d)
    # A row moves (sum, count) by at most sqrt(|x|^2 + 1) <= sqrt(2); exact mu-GDP over the steps.
    sigma = gaussian_sigma(cell.epsilon, DELTA[cell.setting]) * np.sqrt(2 * n_steps)
    for _ in range(n_steps):
        labels = nearest(X, centers)
        pick = sparse.csr_array(
            (np.ones(len(X)), (labels, np.arange(len(X)))), shape=(cell.k, len(X))
        )
        counts = pick.sum(axis=1) + sigma * rng.normal(size=cell.k)
        sums = pick @ X + sigma * rng.normal(size=centers.shape)
        seen = counts > sigma
        centers[seen] = into_ball(sums[seen] / counts[seen, None])
    return centers


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
            return (
                Rival(cell.k, epsilon=cell.epsilon, bounds=(-1, 1), random_state=seed)
                .fit(X)
                .cluster_centers_
            )

    return method


def methods():
    found = {
        "DPKMeans": ours,
        "KMeans(n_init=10)": plain,
        "one center": one_center,
        "noisy grid": uniform_grid,
        "sphere packing + Lloyd": packed_lloyd,
        "diffprivlib": diffprivlib_kmeans(),
    }
    return {name: method for name, method in found.items() if method is not None}


# --- measuring -----------------------------------------------------------------------------------


def cost(X, centers):
    total = 0.0
    for start in range(0, len(X), 2**14):
        part = X[start : start + 2**14]
        scores = np.square(centers).sum(axis=1) - 2 * part @ centers.T
        total += np.maximum(np.square(part).sum(axis=1) + scores.min(axis=1), 0.0).sum()
    return total


def nearest(X, centers):
    return (np.square(centers).sum(axis=1) - 2 * X @ centers.T).argmin(axis=1)


def best_known(X, cell, truth):
    """Lowest non-private cost, of many starts or of the true centers."""
    if truth is None:
        n_init = 60 if cell.setting == "real" else 20
        return KMeans(cell.k, n_init=n_init, random_state=1).fit(X).inertia_
    return KMeans(cell.k, init=truth, n_init=1).fit(X).inertia_


def measure(cell, n_seeds, chosen):
    """Results: one for each seed and method."""
    reference = None
    for seed in range(n_seeds):
        X, labels, truth = MAKE[cell.setting](cell, seed)
        if reference is None or cell.setting not in SAME_ROWS:
            reference = best_known(X, cell, truth)
        rows = [
            run(cell, name, method, X, labels, seed)
            for name, method in chosen.items()
            if name != "noisy grid" or cell.d <= 4
        ]
        best = min([reference] + [row["cost"] for row in rows if row["method"].startswith("KMe")])
        yield from ({**row, "ratio": row["cost"] / best} for row in rows)


def run(cell, name, method, X, labels, seed):
    start = time.process_time()
    centers = method(X, cell, seed)
    seconds = time.process_time() - start
    return {
        "cell": str(cell),
        "method": name,
        "seed": seed,
        "cost": cost(X, centers),
        "ari": agreement(labels, nearest(X, centers)),
        "cpu": seconds,
    }


def agreement(labels, found):
    return np.nan if labels is None else adjusted_rand_score(labels, found)


def summary(rows):
    """Lines of the table, by cell and method."""
    groups = {}
    for row in rows:
        groups.setdefault((row["cell"], row["method"]), []).append(row)
    for (cell, method), group in groups.items():
        ratio = np.array([row["ratio"] for row in group])
        low, median, high = np.quantile(ratio, [0.25, 0.5, 0.75])
        yield {
            "cell": cell,
            "method": method,
            "fits": len(group),
            "ratio": median,
            "quartiles": f"[{low:.4f} {high:.4f}]",
            "worst": ratio.max(),
            "ari": float(np.median([row["ari"] for row in group])),
            "cpu": float(np.median([row["cpu"] for row in group])),
        }


def line(entry):
    return (
        f"| {entry['cell']} | {entry['method']} | {entry['fits']} | {entry['ratio']:.4f} "
        f"{entry['quartiles']} | {entry['worst']:.4f} | {entry['ari']:.2f} "
        f"| {entry['cpu']:.3f} |"
    )


HEADER = (
    "| cell | method | fits | cost ratio, median [quartiles] | worst | ARI | CPU s |\n"
    "|---|---|---|---|---|---|---|"
)


def stamp(command):
    return (
        f"`{command}` with Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}."
    )


def write_markdown(path, entries, command):
    text = [
        "# Private k-means",
        "",
        "Cost over the lowest non-private cost found; agreement with the true classes (adjusted "
        "Rand index); CPU time",
        "of one thread; medians. Add or remove one row; epsilon = 1 "
        "unless said, delta = 1e-8 (real data and files: 1e-6); public radius 1.",
        'diffprivlib\'s KMeans is known to spend more than its epsilon; "one center" and KMeans '
        "are not private. The rivals draw floating-point noise.",
        "",
        stamp(command),
        "",
        f"![cost ratios](images/{path.name}.png)",
        "",
        HEADER,
        *map(line, entries),
        "",
    ]
    path.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")


FACETS = {  # left: rows of a facet; right: facets of a column of the picture
    "Separated clusters, 10,000 rows": r"separated n=1e4 (.*)",
    "Separated clusters, 100,000 rows": r"separated n=1e5 (.*)",
    "Mixtures of the papers": r"paper (.*)",
    "Real tables": r"real (.*)",
    "Benchmark files": r"files (.*)",
}
COLUMNS = (("Separated clusters, 10,000 rows", "Separated clusters, 100,000 rows"),
           ("Mixtures of the papers", "Real tables", "Benchmark files"))  # fmt: skip
SMALLEST = 1e-5  # what is below it is drawn here


def write_plot(path, entries):
    """What privacy adds to the cost, cell by cell, in a facet for each kind of data."""
    names = [name for name in dict.fromkeys(e["method"] for e in entries) if "init" not in name]
    cells = {
        title: [cell for cell in dict.fromkeys(e["cell"] for e in entries) if re.match(form, cell)]
        for title, form in FACETS.items()
    }
    most = max(sum(len(cells[title]) + 3 for title in column) for column in COLUMNS)
    figure, _ = new((12.5, 0.2 * most + 1.0), 1, 1)
    figure.clear()
    for part, column in zip(figure.subfigures(1, len(COLUMNS)), COLUMNS, strict=True):
        heights = [len(cells[title]) + 1.0 for title in column]
        axes = part.subplots(len(column), 1, sharex=True, height_ratios=heights)
        for axis, title in zip(axes, column, strict=True):
            draw_facet(axis, entries, cells[title], names, title)
        axes[-1].set_xlabel("cost above that without privacy, in relation to it")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(names))
    save(figure, path.parent / "images" / f"{path.name}.png", dpi=100)


def draw_facet(axis, entries, cells, names, title):
    """One line for each cell, one mark for each method."""
    for name, color, marker in zip(names, (COLORS[0], MUTED, *COLORS[2:]), "os^DvX", strict=False):
        found = [
            (e["ratio"] - 1, cells.index(e["cell"]))
            for e in entries
            if e["method"] == name and e["cell"] in cells
        ]
        loss, at = np.array(found).T if found else ([], [])
        axis.plot(np.maximum(loss, SMALLEST), at, marker, color=color, label=name)
    labels = [re.match(FACETS[title], cell)[1] for cell in cells]
    axis.set(xscale="log", title=title, xlim=(SMALLEST / 2, 1e5))
    plain_ticks(axis.yaxis, range(len(cells)), labels)
    plain_ticks(
        axis.xaxis,
        [1e-5, 1e-3, 0.1, 10, 1000],
        ["\u2264 0.001%", "0.1%", "10%", "10 times", "1,000 times"],
    )
    axis.tick_params(axis="x", labelbottom=True, labelsize=8)
    axis.tick_params(axis="y", length=0, labelsize=8)
    axis.set_ylim(len(cells) - 0.4, -0.6)
    axis.grid()


def write_csv(path, entries):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(entries[0]))
        writer.writeheader()
        writer.writerows(entries)


def kept(path, new):
    """Entries of earlier runs whose cell and method are not among the new ones."""
    done = {(entry["cell"], entry["method"]) for entry in new}
    with open(path, newline="", encoding="utf-8") as file:
        entries = list(csv.DictReader(file))
    for entry in entries:
        entry["fits"] = int(entry["fits"])
        entry.update({name: float(entry[name]) for name in ("ratio", "worst", "ari", "cpu")})
    return [entry for entry in entries if (entry["cell"], entry["method"]) not in done]


def in_order(entries):
    cells = {str(cell): place for place, cell in enumerate(all_cells())}
    names = {name: place for place, name in enumerate(methods())}
    return sorted(
        entries,
        key=lambda entry: (
            cells.get(entry["cell"], len(cells)),
            names.get(entry["method"], len(names)),
        ),
    )


def table(options, command):
    n_seeds = options.seeds or (3 if options.quick else 15)
    cells = [
        cell
        for cell in all_cells()
        if re.search(options.cells, str(cell)) and (not options.quick or str(cell) in QUICK)
    ]
    chosen = {
        name: method for name, method in methods().items() if re.search(options.methods, name)
    }
    entries, path = [], options.output
    print(HEADER)
    for cell in cells:
        new = list(summary(measure(cell, n_seeds, chosen)))
        entries += new
        print("\n".join(map(line, new)), flush=True)
    if options.add:
        entries = in_order(entries + kept(path.with_suffix(".csv"), entries))
    write_csv(path.with_suffix(".csv"), entries)
    write_markdown(path, entries, command)
    write_plot(path, entries)


def basins(options, command):
    """How often a fit is far from the best: other data and other noise in every fit."""
    lines = ["| cell | fits | above 1.05 | above 1.1 | worst |", "|---|---|---|---|---|"]
    print("\n".join(lines))
    for cell in all_cells():
        if cell.setting != "separated" or not re.search(options.cells, str(cell)):
            continue
        ratio = np.empty(options.basins)
        for i in range(options.basins):
            X, _, truth = separated_mixture(cell, FIRST_FRESH + i)
            ratio[i] = cost(X, ours(X, cell, i)) / best_known(X, cell, truth)
        lines.append(
            f"| {cell} | {len(ratio)} | {np.mean(ratio > 1.05):.1%} "
            f"| {np.mean(ratio > 1.1):.1%} | {ratio.max():.4f} |"
        )
        print(lines[-1], flush=True)
    text = [
        "# Wrong basins of private k-means",
        "",
        "Share of fits of DPKMeans whose cost is above the non-private one by a factor: data "
        "and noise are fresh in every fit. epsilon = 1, delta = 1e-8, public radius 1.",
        "",
        stamp(command),
        "",
        *lines,
        "",
    ]
    options.output.with_name(f"{options.output.stem}_basins.md").write_text(
        "\n".join(text), encoding="utf-8"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a cell of each kind, 3 seeds")
    parser.add_argument("--seeds", type=int, help="data sets for each cell")
    parser.add_argument("--cells", default="", help="only cells whose name has this pattern")
    parser.add_argument("--methods", default="", help="only methods whose name has this pattern")
    parser.add_argument("--add", action="store_true", help="keep the other rows of the table")
    parser.add_argument("--basins", type=int, help="fits for each cell, instead of the table")
    parser.add_argument("--data", help="folder of .npz files")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="path without a suffix")
    options = parser.parse_args()
    if options.plot:
        stored = in_order(kept(options.output.with_suffix(".csv"), []))
        return write_plot(options.output, stored)
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    arguments = [word for word in sys.argv[1:] if word != options.data]
    command = shlex.join(["python", "benchmarks/kmeans.py", *arguments]).replace(
        "--data", "--data FOLDER"
    )
    (basins if options.basins else table)(options, command)


if __name__ == "__main__":
    main()
