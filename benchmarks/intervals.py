"""Do 95% intervals of DPKMeans hold 95%? On generated and on real tables, in their own units.

    python benchmarks/intervals.py --data FOLDER     # with the .npz files of real tables there
    python benchmarks/intervals.py                   # those that are generated or bundled

Epsilon 1, public bounds, 20 fits of each table. The truths are those of the rows of the fit:
the sum of squared distances to the nearest released center (inertia), the share of the sum about
the mean that the centers explain, the number of rows nearest to each center (weights), and the mean
of these rows (centers). "ok": trustworthy fits. "cost": the median over that of k-means.
Without "--data" only tables that need no file are measured, and the page is not written.
"""

import argparse
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs, make_moons

from sklearn_dp import DPKMeans

PAGE = _run.PAGES / "intervals.md"
FILES = {
    "s1": 15, "s2": 15, "s3": 15, "s4": 15, "unbalance": 8, "letter16": 26, "dim064": 16,
    "wisdm_har": 6, "credit_default": 5, "acs_20states": 5, "cabs_sf": 10,
}  # fmt: skip
MOST_ROWS = 100_000
WHAT = ("inertia_", "explained_", "cluster_weights_", "cluster_centers_")


def generated():
    """(name, rows, k, bounds) of tables that need no file."""
    rng = np.random.default_rng(0)
    yield "digits", load_digits().data, 10, (0.0, 16.0)
    yield "moons", make_moons(5000, noise=0.1, random_state=0)[0], 5, (-3.0, 3.0)
    blobs = make_blobs(20_000, 10, centers=10, cluster_std=2.0, random_state=0)[0]
    yield "blobs", blobs, 10, (-20.0, 20.0)
    yield "normal", rng.normal(size=(10_000, 5)), 6, (-6.0, 6.0)
    yield "exponential", rng.exponential(size=(10_000, 4)), 6, (0.0, 15.0)
    low, high = np.array([15.0, 0.0, 0.0]), np.array([95.0, 500_000.0, 80.0])
    table = np.column_stack(
        [
            rng.normal(45, 15, 20_000),
            rng.lognormal(10.3, 0.8, 20_000),
            rng.choice([20.0, 38.0, 40.0, 45.0], 20_000),
        ]
    )
    yield "age, salary, hours", np.clip(table, low, high), 5, (low, high)
    for d in (2, 6):  # zeros, and ones in 5% of the rows, beside other columns
        flag = np.column_stack([rng.normal(0, 0.15, (4000, d - 1)), rng.random(4000) < 0.05])
        yield f"rare flag, {d} columns", flag, 2, (-1.2, 1.2)


def stored(folder):
    """The same of the files, clipped to their public bounds."""
    for name, k in FILES.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            X, low, high = file["X"].astype(float), file["bounds_lo"], file["bounds_hi"]
        if len(X) > MOST_ROWS:
            X = X[np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]]
        yield name, np.clip(X, low, high), k, (low, high)


def truths(X, model):
    """What the numbers of `WHAT` are of; nan where a center has no row."""
    centers, labels = model.cluster_centers_, model.predict(X)
    inertia = np.square(X - centers[labels]).sum()
    counts = np.bincount(labels, minlength=len(centers))
    means = np.full(centers.shape, np.nan)
    for label in np.flatnonzero(counts):
        means[label] = X[labels == label].mean(axis=0)
    total = np.square(X - X.mean(axis=0)).sum()
    return inertia, 1 - inertia / total, counts, means


def measure(X, k, bounds, n_fits):
    """Shares of the truths that lie in their intervals, fits that say "ok", and the cost."""
    held, costs, ok = [], [], 0
    for seed in range(n_fits):
        model = DPKMeans(k, epsilon=1.0, bounds=bounds, random_state=seed).fit(X)
        found = truths(X, model)
        inside = []
        for name, truth in zip(WHAT, found, strict=True):
            interval = model.confidence_interval(0.95, name)
            there = (interval.low <= truth) & (truth <= interval.high)
            inside.append(np.mean(there[~np.isnan(truth)]))
        held.append(inside)
        costs.append(found[0])
        ok += model.trustworthy_
    exact = KMeans(k, n_init=5, random_state=0).fit(X).inertia_
    return np.mean(held, axis=0), ok, np.median(costs) / exact


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of .npz files")
    parser.add_argument("--fits", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| table | rows x columns | k | inertia | explained | weights | centers | ok | cost |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(lines))
    every = []
    for name, X, k, bounds in [*generated(), *(stored(options.data) if options.data else ())]:
        held, ok, cost = measure(X, k, bounds, options.fits)
        every.append(held)
        shares = " | ".join(f"{share:.2f}" for share in held)
        size = f"{len(X):,} x {X.shape[1]}"
        lines.append(f"| {name} | {size} | {k} | {shares} | {ok} of {options.fits} | {cost:.3f} |")
        print(lines[-1], flush=True)
    shares = " | ".join(f"{share:.2f}" for share in np.mean(every, axis=0))
    lines.append(f"| mean | | | {shares} | | |")
    print(lines[-1])
    if options.data:
        page = [f"# Intervals of clusters\n\n```text\n{__doc__.strip()}\n```\n", *lines]
        PAGE.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
