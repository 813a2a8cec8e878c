"""K-tuples: the figures of the two papers, beside what they claim.

    python benchmarks/tuples.py                  # all; some ten minutes on an idle core
    python benchmarks/tuples.py --runs 3 --only figure8

Prints tables and writes doc/benchmarks/tuples.md, .json and .png (`--output` for another place);
other tables are kept.

figure8   FriendlyCore, figure 8: 8 Gaussians of standard deviation 0.0221 in the disk of radius
          31/32, clipped to norm 1; rho = 1, delta = 1e-8; loss 1 - (cost of k-means++) / (private)
figure9   FriendlyCore, figure 9 left: 5 Gaussians N(c, I), c uniform in {1, 2}^d, n = 250 000,
          inner clusterer PCA and k-means; rho = 1, delta = 1e-8; share of wrong labels
easy      Easy instances, Test1 to Test3: 2 k' standard Gaussians at +-R e_i, tuples of means of s
          samples; epsilon = 1, delta = exp(-28); share of runs whose centers separate the clusters
rivals    The three aggregators on the same rows: 3 centers at a distance of 0.8 from the origin, in
          the plane; rows cut into 5000 tuples whose points are off by `spread` in each coordinate,
          or, for k_averages, into 300 000 tuples that are off by sqrt(60) times as much
"""

import argparse
import json
import statistics
import warnings
from functools import partial
from pathlib import Path

import _run  # first: one thread
import numpy as np
from _style import COLORS, INK, MARKERS, new, plain_ticks, save
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

from sklearn_dp.cluster import DPKTupleKMeans, FriendlyCoreOptions, aggregate_k_tuples
from sklearn_dp.exceptions import UtilityWarning

OUTPUT = _run.PAGES / "tuples"
CLAIMS = {
    "figure8": "Paper: fails often for small n, very accurate for larger n.",
    "figure9": "Paper: improves with d up to perfect labeling. Without a core the coreset "
    "answers, and labels as well as the true centers do.",
    "easy": "Paper: success with 3781 tuples, of samples that grow with k; figures only. "
    "PrivatekAverages needs about 500 000 k d tuples. Here 2550 tuples, the least at this "
    "budget with the corrected test, and a fraction of the samples that the printed "
    "constants need.",
    "rivals": "Same rows, same budget, delta = 1e-6. Error: of the worst center, median of the "
    "runs with an answer; the centers are 1.39 apart.",
}


# --- figure 8 ------------------------------------------------------------------------------------


def disk_mixture(rng, n, k=8):
    radius, angle = 31 / 32 * np.sqrt(rng.random(k)), 2 * np.pi * rng.random(k)
    centers = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = centers[np.arange(n) % k] + 0.0221 * rng.normal(size=(n, 2))
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 9 * np.eye(k)
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), gaps.min()


def figure8(runs):
    for n in (20_000, 50_000, 100_000, 200_000, 400_000):
        for t in (200, 400):
            losses, paths, gaps = [], [], []
            for seed in range(runs):
                X, gap = disk_mixture(np.random.default_rng([n, seed]), n)
                known = -KMeans(8, n_init=1, random_state=seed).fit(X).score(X)
                model = DPKTupleKMeans(
                    8, rho=1.0, delta=1e-8, bounds=1.0, n_tuples=t, aggregator="friendly_core"
                ).fit(X)
                losses.append(1 - known / -model.score(X))
                paths.append(model.path_ == "tuples")
                gaps.append(gap)
            yield {
                "n": n,
                "tuples": t,
                "runs": runs,
                "core found": f"{sum(paths)}/{runs}",
                "median loss": statistics.median(losses),
                "worst loss": max(losses),
                "median loss on success": _median(np.array(losses)[paths]),
                "smallest gap of a failure": min(
                    [g for g, p in zip(gaps, paths, strict=True) if not p], default=np.nan
                ),
            }


def _median(values):
    return float(np.median(values)) if len(values) else float("nan")


# --- figure 9, left ------------------------------------------------------------------------------


def cube_mixture(rng, n, d, k=5):
    centers = rng.integers(1, 3, size=(k, d)).astype(float)
    labels = rng.integers(k, size=n)
    return centers[labels] + rng.normal(size=(n, d)), labels, centers


def wrong_labels(labels, found, k=5):
    table = confusion_matrix(labels, found, labels=range(k))
    return 1 - table[linear_sum_assignment(-table)].sum() / len(labels)


def figure9(runs, n=250_000):
    for d in (16, 32, 64, 128, 256):
        for gamma in (1 / 5, 1 / 7):
            failures, paths, bayes = [], [], []
            for seed in range(runs):
                X, labels, centers = cube_mixture(np.random.default_rng([d, seed]), n, d)
                inner = make_pipeline(PCA(5, svd_solver="covariance_eigh"), KMeans(5, n_init=3))
                model = DPKTupleKMeans(
                    5,
                    rho=1.0,
                    delta=1e-8,
                    bounds=10 * np.sqrt(d),
                    n_tuples=200,
                    options=FriendlyCoreOptions(gamma),
                    inner=inner,
                    aggregator="friendly_core",
                ).fit(X)
                failures.append(wrong_labels(labels, model.labels_))
                square = -2 * X @ centers.T + np.square(centers).sum(axis=1)
                bayes.append(wrong_labels(labels, square.argmin(axis=1)))
                paths.append(model.path_ == "tuples")
            yield {
                "n": n,
                "d": d,
                "gamma": f"1/{round(1 / gamma)}",
                "runs": runs,
                "core found": f"{sum(paths)}/{runs}",
                "wrong labels": _median(failures),
                "of the true centers": _median(bayes),
            }


# --- easy instances ------------------------------------------------------------------------------


def separates(rng, centers, found):
    samples = np.repeat(centers, 2000, axis=0)
    samples = samples + rng.normal(size=samples.shape)
    nearest = np.linalg.norm(samples[:, None] - found, axis=2).argmin(axis=1).reshape(-1, 2000)
    return bool((nearest == nearest[:, :1]).all()) and len(set(nearest[:, 0])) == len(centers)


def easy_run(seed, d, k, R, s, t):
    rng = np.random.default_rng([seed, d, k, s])
    centers = R * np.concatenate([np.eye(d)[: k // 2], -np.eye(d)[: k // 2]])
    tuples = centers + rng.normal(size=(t, k, d)) / np.sqrt(s)
    found = aggregate_k_tuples(
        tuples, bounds=2.0 * R, epsilon=1.0, delta=np.exp(-28.0), aggregator="noisy_centers"
    ).centers
    return found is not None and separates(rng, centers, found)


# Samples per tuple at which the printed constants succeed; at k = 6 and d = 12 interpolated.
PAPER = [  # test, d, k, R, samples
    *[("Test1", 1, 2, 2.0**p, 141 * 4.0 ** (9 - p)) for p in (5, 6, 7, 8, 9)],
    *[("Test2", 4, k, 512.0 * k, s) for k, s in ((2, 49), (4, 244), (6, 400), (8, 593))],
    *[("Test3", d, 2, 256.0 * np.sqrt(d), s) for d, s in ((4, 196), (8, 126), (12, 100), (16, 84))],
]
SHARES = (1 / 10, 1 / 7, 1 / 5, 1)


def easy(runs, t=2550):
    for name, d, k, R, most in PAPER:
        for share in SHARES:
            s = round(most * share)
            good = sum(easy_run(seed, d, k, R, s, t) for seed in range(4 * runs))
            yield {
                "test": name,
                "d": d,
                "k": k,
                "R": R,
                "tuples": t,
                "samples per tuple": s,
                "of the paper's": round(share, 2),
                "success": good / (4 * runs),
                "runs": 4 * runs,
            }


# --- the three aggregators -----------------------------------------------------------------------


def rivals(runs, k=3):
    angle = 2 * np.pi * np.arange(k) / k
    centers = 0.8 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for epsilon, spread in ((e, s) for e in (1.0, 4.0) for s in (1e-2, 1e-3, 1e-5)):
        for name, t in (("friendly_core", 5000), ("noisy_centers", 5000), ("k_averages", 300_000)):
            errors = []
            for seed in range(runs):
                rng = np.random.default_rng([seed, round(1e6 * spread)])
                # A tuple of 60 times fewer rows is off by sqrt(60) times as much.
                noise = spread * np.sqrt(t / 5000) * rng.normal(size=(t, k, 2))
                found = aggregate_k_tuples(
                    centers + noise, bounds=1.0, epsilon=epsilon, aggregator=name
                ).centers
                if found is not None:
                    errors.append(max(np.linalg.norm(found - c, axis=1).min() for c in centers))
            yield {
                "epsilon": epsilon,
                "spread": spread,
                "aggregator": name,
                "tuples": t,
                "answers": f"{len(errors)}/{runs}",
                "error": float(np.median(errors)) if errors else np.nan,
            }


# --- output --------------------------------------------------------------------------------------


def markdown(rows):
    names = list(rows[0])
    lines = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in rows
    ]
    table = [names, ["---"] * len(names), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in table)


def plot_figure8(axis, rows):
    sizes = sorted({row["n"] for row in rows})
    for tuples, color, marker in zip((200, 400), COLORS, MARKERS, strict=False):
        part = [row for row in rows if row["tuples"] == tuples]
        axis.plot(
            [row["n"] for row in part],
            [row["median loss"] for row in part],
            color=color,
            marker=marker,
            label=f"{tuples} tuples",
        )
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="median loss")
    axis.set_title("FriendlyCore, figure 8", pad=28)
    plain_ticks(axis.xaxis, sizes)
    plain_ticks(axis.yaxis, [1e-7, 1e-6], ["1e-7", "1e-6"])
    key(axis, 2)


def plot_figure9(axis, rows):
    """Two numbers of features are no curve: a column of marks for each."""
    features = sorted({row["d"] for row in rows})
    kinds = list(dict.fromkeys((row["gamma"], row["n"]) for row in rows))
    for i, ((gamma, n), color, marker) in enumerate(zip(kinds, COLORS, MARKERS, strict=False)):
        part = [row for row in rows if (row["gamma"], row["n"]) == (gamma, n)]
        axis.plot(
            [features.index(row["d"]) + 0.14 * (i - 1) for row in part],
            [100 * row["wrong labels"] for row in part],
            linestyle="none",
            color=color,
            marker=marker,
            label=f"gamma {gamma}, {n:,} rows",
        )
    for row in rows:
        place, level = features.index(row["d"]), 100 * row["of the true centers"]
        axis.hlines(level, place - 0.3, place + 0.3, color=INK, lw=1, ls="--")
    axis.text(0.34, 100 * rows[0]["of the true centers"], "by the true centers", va="center")
    axis.set(xlabel="features", ylabel="wrong labels, %", xlim=(-0.5, 1.5), ylim=(0, 25))
    axis.set_title("FriendlyCore, figure 9 left", pad=44)
    plain_ticks(axis.xaxis, range(len(features)), [str(each) for each in features])
    key(axis, 2)


def plot_easy(axis, rows, test, against, name):
    for share, color, marker in zip(
        dict.fromkeys(row["of the paper's"] for row in rows), COLORS, MARKERS, strict=False
    ):
        part = [row for row in rows if row["test"] == test and row["of the paper's"] == share]
        axis.plot(
            [row[against] for row in part],
            [100 * row["success"] for row in part],
            color=color,
            marker=marker,
            label=f"{share:g} of the paper's samples",
        )
    axis.set(xlabel=name, ylabel="runs that succeed, %", ylim=(-4, 104))
    axis.set_title(f"Easy instances, {test}", pad=44)
    if test == "Test1":
        axis.set_xscale("log", base=2)
    plain_ticks(axis.xaxis, [row[against] for row in part])
    key(axis, 2)


def key(axis, columns):
    """A legend between title and data."""
    axis.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize=8, borderaxespad=0.2
    )


PLOTS = [
    ("figure8", plot_figure8),
    ("figure9", plot_figure9),
    *[
        ("easy", partial(plot_easy, test=test, against=against, name=name))
        for test, against, name in (
            ("Test1", "R", "distance R of the clusters"),
            ("Test2", "k", "clusters"),
            ("Test3", "d", "features"),
        )
    ],
]


def plot(tables, path):
    """The papers' figures; the sixth place is empty."""
    figure, axes = new((14, 8), 2, 3)
    for axis, (name, draw) in zip(axes.flat, PLOTS, strict=False):
        if name in tables:
            draw(axis, tables[name])
            axis.grid(axis="y")
    axes.flat[-1].axis("off")
    save(figure, path, dpi=100)


def write(tables, output):
    text = [f"# K-tuples: the papers' figures\n\n```text\n{__doc__.strip()}\n```\n"]
    for name, rows in tables.items():
        text += [f"## {name}\n", CLAIMS[name] + "\n", markdown(rows) + "\n"]
    output.with_suffix(".md").write_text("\n".join([*text, "![](tuples.png)\n"]))
    plot(tables, output.with_suffix(".png"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=list(CLAIMS), action="append")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    kept = options.output.with_suffix(".json")
    tables = json.loads(kept.read_text()) if kept.exists() else {}
    if options.plot:
        return plot(tables, options.output.with_suffix(".png"))
    for name, make in (
        ("easy", easy),
        ("figure8", figure8),
        ("figure9", figure9),
        ("rivals", rivals),
    ):
        if not options.only or name in options.only:
            tables[name] = []
            for row in make(options.runs):
                print(row, flush=True)
                tables[name].append(row)
                kept.write_text(json.dumps(tables, indent=1))
    write(tables, options.output)


if __name__ == "__main__":
    main()
