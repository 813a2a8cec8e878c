"""DPGaussianMixture on separated components and real tables, beside rivals and no privacy.

    python benchmarks/mixture.py                    # everything that is missing; an hour or two
    python benchmarks/mixture.py --parts cells --match "^2, 2" --runs 3
    python benchmarks/mixture.py --data FOLDER      # or the variable SKLEARN_DP_DATA: more tables

Writes doc/benchmarks/mixture.csv, .md and doc/images/mixture.png, mixture_labels.png (`--output`
for another folder). A row is a run of a method; what the file holds already is left out, so an
interrupted run can go on. Each seed is a new mixture (real tables: a new split and new noise).

Parts:
  cells   k components in d dimensions: random rotations, eigenvalues of covariances in [0.2, 1],
          the largest 1; separation is the least distance of means, all within the radius. Error:
          total variation of the worst component (Monte Carlo), and of the mixture. "found": each
          mean has one within 3 standard deviations. "naive": private k-means on half of the budget,
          then a noisy Gram matrix of each cluster within the bounds. Without privacy:
          "GaussianMixture" of scikit-learn, the better of two starts; "labeled", the moments of
          the rows of each component.
          A method is followed by the way that most of its fits went, where that is another one:
          k-tuples need an epsilon of about 4, or more rows.
  labels  five standard normals about points of {1, 2}^d: rows with a wrong label of fresh ones, and
          of the true mixture (Bayes).
  real    mean log-density of rows that were held out, over that of GaussianMixture.
  speed   CPU seconds at n = 1e5, d = 10, k = 5 beside GaussianMixture(n_init=5).
  memory  the most that is held beside the rows, at d = 10, k = 5.
"""

import argparse
import csv
import os
import re
import time
import tracemalloc
import warnings
from collections import defaultdict
from pathlib import Path

import _run  # first: one thread
import numpy as np
from _style import COLORS, INK, MARKERS, MUTED, legend_on_top, new, plain_ticks, save
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.mixture import DPGaussianMixture

DOC = _run.PAGES.parent
CELLS = [  # k, d, separation, n, epsilon, radius
    (3, 2, 12, 20000, 1.0, 200.0),
    (3, 2, 12, 20000, 1.0, 1e6),
    (3, 2, 12, 20000, 0.2, 200.0),
    (3, 2, 12, 20000, 8.0, 200.0),
    (3, 2, 6, 20000, 1.0, 200.0),
    (2, 2, 10, 3000, 1.0, 200.0),
    (2, 2, 10, 1000, 1.0, 200.0),
    (5, 2, 10, 5000, 1.0, 200.0),
    (5, 2, 10, 5000, 1.0, 1e6),
    (4, 10, 12, 20000, 1.0, 200.0),
    (4, 10, 12, 50000, 1.0, 200.0),
    (4, 10, 12, 50000, 1.0, None),
    (4, 10, 4, 100000, 1.0, 200.0),
    (8, 10, 12, 200000, 1.0, 200.0),
    (8, 10, 6, 200000, 1.0, 200.0),
    (4, 30, 12, 100000, 1.0, 200.0),
]
METHODS = ("coreset", "partition", "k_tuples", "naive", "GaussianMixture", "labeled")
DIMENSIONS = (16, 32, 64, 128, 256)
ROWS = (25000, 50000, 100000, 200000, 400000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
FIELDS = (
    "part",
    "cell",
    "method",
    "seed",
    "found",
    "largest",
    "mixture",
    "weight",
    "loss",
    "seconds",
    "path",
    "megabytes",
)


class Truth:
    """Rotated components, eigenvalues in [0.2, 1]; separation is the least distance of means."""

    def __init__(self, k, d, separation, rng, radius=np.inf):
        self.means = None
        while self.means is None or np.linalg.norm(self.means, axis=1).max() > radius - 10:
            means = rng.normal(size=(k, d))
            self.means = (
                means
                * separation
                / np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(k, 1)].min()
            )
        self.covariances = np.empty((k, d, d))
        for j in range(k):
            rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
            values = np.append(1.0, rng.uniform(0.2, 1, d - 1))
            self.covariances[j] = (rotation * values) @ rotation.T

    def draw(self, n, rng):
        labels = rng.integers(len(self.means), size=n)
        X = np.empty((n, self.means.shape[1]))
        for j, covariance in enumerate(self.covariances):
            there = labels == j
            X[there] = rng.multivariate_normal(self.means[j], covariance, size=there.sum())
        return X, labels

    def density(self, X):
        return np.mean(
            [
                multivariate_normal(m, c).pdf(X)
                for m, c in zip(self.means, self.covariances, strict=True)
            ],
            axis=0,
        )

    def errors(self, weights, means, covariances, rng):
        """Share found, largest total variation, that of the mixture, weight error, log-density."""
        cost = np.linalg.norm(self.means[:, None] - means, axis=2)
        pairs = linear_sum_assignment(cost)
        laws = [
            multivariate_normal(m, c, allow_singular=True)
            for m, c in zip(means, covariances, strict=True)
        ]
        worst = 0.0
        for i, j in zip(*pairs, strict=True):
            true = multivariate_normal(self.means[i], self.covariances[i])
            x = true.rvs(size=10000, random_state=rng)
            ratio = np.exp(np.minimum(laws[j].logpdf(x) - true.logpdf(x), 0.0))
            worst = max(worst, float((1 - ratio).mean()))
        X, _ = self.draw(10000, rng)
        mixture = sum(w * law.pdf(X) for w, law in zip(weights, laws, strict=True))
        true = self.density(X)
        return np.array(
            [
                cost[pairs].max() < 3,
                worst,
                np.maximum(0, 1 - mixture / true).mean(),
                np.abs(weights[pairs[1]] - 1 / len(self.means)).max(),
                np.log(true).mean() - np.log(np.maximum(mixture, 1e-300)).mean(),
            ]
        )


def naive(X, k, epsilon, radius, rng):
    """Half of the budget for k-means, half for a Gram matrix of each cluster clipped to bounds.

    For measuring only: its noise is numpy's.
    """
    model = DPKMeans(k, epsilon=epsilon / 2, bounds=radius).fit(X)
    rho = DPKMeans(epsilon=epsilon / 2).privacy_plan(2).rho
    covariances = []
    for j, center in enumerate(model.cluster_centers_):
        Y = X[model.labels_ == j] - center
        noise = np.triu(rng.normal(size=(X.shape[1],) * 2)) * radius**2 / np.sqrt(2 * rho)
        S = (Y.T @ Y + noise + np.triu(noise, 1).T) / max(model.cluster_weights_[j], 1.0)
        values, vectors = np.linalg.eigh(S)
        covariances.append((vectors * np.maximum(values, 1e-3)) @ vectors.T)
    weights = np.maximum(model.cluster_weights_, 1.0)
    return weights / weights.sum(), model.cluster_centers_, np.array(covariances)


def labeled(X, labels, k):
    parts = [X[labels == j] for j in range(k)]
    return (
        np.array([len(part) for part in parts]) / len(X),
        np.array([part.mean(axis=0) for part in parts]),
        np.array([np.cov(part.T) for part in parts]),
    )


# -- parts: each yields (cell, method, seed, run), of which `run` gives a row of the table


def cells(options):
    for cell in CELLS:
        for seed in range(options.runs):
            for method in METHODS:
                yield (
                    ", ".join(map(str, cell)),
                    method,
                    seed,
                    lambda cell=cell, seed=seed, method=method: run_cell(cell, seed, method),
                )


def run_cell(cell, seed, method):
    k, d, separation, n, epsilon, radius = cell
    rng = np.random.default_rng(seed)
    truth = Truth(k, d, separation, rng, radius or np.inf)
    X, labels = truth.draw(n, rng)
    path, start = "", time.process_time()
    if method == "naive":
        found = naive(X, k, epsilon, radius or 200.0, rng)
    elif method == "labeled":
        found = labeled(X, labels, k)
    elif method == "GaussianMixture":
        plain = GaussianMixture(k, n_init=2, random_state=seed).fit(X)
        found = plain.weights_, plain.means_, plain.covariances_
    else:
        model = DPGaussianMixture(k, epsilon=epsilon, bounds=radius, method=method).fit(X)
        found, path = (model.weights_, model.means_, model.covariances_), model.path_
    seconds = time.process_time() - start
    values = truth.errors(*found, rng)
    return dict(
        zip(("found", "largest", "mixture", "weight", "loss"), values.tolist(), strict=True)
    ) | {"seconds": seconds, "path": path}


def labels(options):
    for d in DIMENSIONS:
        for seed in range(min(options.runs, 3)):
            for method in ("coreset", "k_tuples", "partition", "Bayes"):
                yield (
                    f"{d}, {options.rows}",
                    method,
                    seed,
                    lambda d=d, seed=seed, method=method: run_labels(d, options.rows, seed, method),
                )


def run_labels(d, n, seed, method, k=5):
    rng = np.random.default_rng(seed)
    means = rng.integers(1, 3, size=(k, d)).astype(np.float64)
    label, fresh = rng.integers(k, size=n), rng.integers(k, size=20000)
    test = means[fresh] + rng.normal(size=(len(fresh), d))
    start, path, found = time.process_time(), "", means
    if method != "Bayes":
        X = rng.normal(size=(n, d))
        X += means[label]
        start = time.process_time()
        model = DPGaussianMixture(
            k, covariance_type="spherical", method=method, bounds=10 * np.sqrt(d)
        ).fit(X)
        path, predicted = model.path_, model.predict(test)
    else:
        predicted = ((test[:, None] - found) ** 2).sum(axis=2).argmin(axis=1)
    seconds = time.process_time() - start
    table = np.zeros((k, k))
    np.add.at(table, (fresh, predicted), 1)
    right = table[linear_sum_assignment(-table)].sum() / len(test)
    return {"loss": 1 - right, "seconds": seconds, "path": path}


def tables(options):
    """Name, rows, components, and the scaling by public ranges."""
    wine = load_wine()
    low = np.array([11, 0.5, 1, 10, 70, 0.5, 0, 0, 0, 1, 0.4, 1, 250])
    high = np.array([15, 6, 3.5, 30, 170, 4, 6, 1, 4, 13, 2, 4, 1700])
    yield "wine, 2 features", (wine.data[:, [0, 6]] - low[[0, 6]]) / (high - low)[[0, 6]], 3
    yield "digits after DPPCA(8)", load_digits().data / 16, 10
    folder = options.data or os.environ.get("SKLEARN_DP_DATA")
    for name, k in (
        (
            ("s1", 15),
            ("unbalance", 8),
            ("letter16", 10),
            ("credit_default", 5),
            ("acs_20states", 8),
            ("cabs_sf", 10),
        )
        if folder
        else ()
    ):
        file = Path(folder) / f"{name}.npz"
        if file.exists():
            with np.load(file, allow_pickle=False) as archive:
                X, ends = archive["X"].astype(float), [archive["bounds_lo"], archive["bounds_hi"]]
            yield name, (X - ends[0]) / (ends[1] - ends[0]), k


_PLAIN = {}  # scores without privacy, which know no epsilon


def real(options):
    for name, X, k in tables(options):
        for epsilon in EPSILONS:
            for seed in range(min(options.runs, 5)):
                for form in ("full", "diag"):
                    yield (
                        f"{name}, {epsilon:g}",
                        form,
                        seed,
                        lambda X=X, k=k, epsilon=epsilon, seed=seed, form=form, name=name: run_real(
                            X, k, epsilon, seed, form, name
                        ),
                    )


def run_real(X, k, epsilon, seed, form, name):
    """The scores are of the rows plus a little public noise: many columns are discrete."""
    X = np.clip(X, 0, 1) + np.random.default_rng(seed).normal(scale=0.01, size=X.shape)
    train, test = train_test_split(X, test_size=0.25, random_state=seed)
    share = epsilon
    if "DPPCA" in name:
        share = epsilon * 0.9
        pca = DPPCA(8, epsilon=epsilon * 0.1, bounds=(0.0, 1.0)).fit(train)
        train, test = pca.transform(train), pca.transform(test)
    start = time.process_time()
    model = DPGaussianMixture(k, covariance_type=form, epsilon=share).fit(train)
    seconds = time.process_time() - start
    key = (name, seed, form) + ((epsilon,) if "DPPCA" in name else ())
    if key not in _PLAIN:
        plain = GaussianMixture(k, covariance_type=form, n_init=2, random_state=0).fit(train)
        _PLAIN[key] = plain.score(test)
    return {
        "loss": _PLAIN[key] - model.score(test),
        "mixture": _PLAIN[key],
        "seconds": seconds,
        "path": model.path_,
    }


def speed(options):
    for seed in range(min(options.runs, 5)):
        for method in ("auto", "k_tuples", "partition", "GaussianMixture(n_init=5)"):
            yield (
                "5, 10, 12, 100000",
                method,
                seed,
                lambda method=method, seed=seed: run_speed(method, seed),
            )


def run_speed(method, seed):
    rng = np.random.default_rng(seed)
    X, _ = Truth(5, 10, 12, rng).draw(100000, rng)
    model = GaussianMixture(5, n_init=5) if "(" in method else DPGaussianMixture(5, method=method)
    start = time.process_time()
    model.fit(X)
    return {"seconds": time.process_time() - start}


def memory(options):
    for n in ROWS:
        for method in ("coreset", "partition"):
            yield str(n), method, 0, lambda n=n, method=method: run_memory(n, method)


def run_memory(n, method):
    rng = np.random.default_rng(0)
    X, _ = Truth(5, 10, 12, rng).draw(n, rng)
    tracemalloc.start()
    DPGaussianMixture(5, method=method).fit(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"megabytes": most / 1e6}


PARTS = {"cells": cells, "labels": labels, "real": real, "speed": speed, "memory": memory}


# -- tables and pictures -------------------------------------------------------------------------


def read(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path, row):
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def grouped(rows, part):
    found = defaultdict(list)
    for row in rows:
        if row["part"] == part:
            found[row["cell"], row["method"]].append(row)
    return found


def numbers(rows, field):
    return np.array([float(row[field]) for row in rows])


def cell_table(rows):
    yield (
        "| k, d, separation, n, epsilon, radius | method | runs | found | largest TV (worst) "
        "| mixture TV | weight error | log-density lost | CPU s |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    found = grouped(rows, "cells")
    for cell in CELLS:
        name = ", ".join(map(str, cell))
        for method in METHODS:
            if part := found.get((name, method)):
                middle = {
                    field: np.median(numbers(part, field))
                    for field in ("largest", "mixture", "weight", "loss", "seconds")
                }
                paths = [row["path"] for row in part]
                usual = max(set(paths), key=paths.count) or method
                shown = method if usual == method else f"{method} ({usual})"
                yield (
                    f"| {name} | {shown} | {len(part)} | {numbers(part, 'found').mean():.0%} | "
                    f"{middle['largest']:.3f} ({numbers(part, 'largest').max():.3f}) | "
                    f"{middle['mixture']:.3f} | {middle['weight']:.4f} | {middle['loss']:.4f} | "
                    f"{middle['seconds']:.2f} |"
                )


def label_table(rows):
    found = grouped(rows, "labels")
    methods = [
        m
        for m in ("coreset", "k_tuples", "partition", "Bayes")
        if any(key[1] == m for key in found)
    ]
    yield f"| d, rows | {' | '.join(methods)} |"
    yield f"|---|{'---|' * len(methods)}"
    for cell in dict.fromkeys(key[0] for key in found):
        values = [
            f"{np.median(numbers(found[cell, m], 'loss')):.4f} ({len(found[cell, m])})"
            if (cell, m) in found
            else "-"
            for m in methods
        ]
        yield f"| {cell} | {' | '.join(values)} |"


def real_table(rows):
    found = grouped(rows, "real")
    yield "| table, epsilon | no privacy, full | lost, full | no privacy, diag | lost, diag |"
    yield "|---|---|---|---|---|"
    for cell in dict.fromkeys(key[0] for key in found):
        values = [
            f"{np.median(numbers(found[cell, form], field)):.2f}"
            for form in ("full", "diag")
            if (cell, form) in found
            for field in ("mixture", "loss")
        ]
        yield f"| {cell} | {' | '.join(values)} |"


def speed_table(rows):
    yield "| method | CPU seconds |"
    yield "|---|---|"
    for (_, method), part in grouped(rows, "speed").items():
        yield f"| {method} | {np.median(numbers(part, 'seconds')):.2f} |"


def memory_table(rows):
    found = grouped(rows, "memory")
    methods = list(dict.fromkeys(key[1] for key in found))
    yield f"| rows | of the rows themselves | {' | '.join(methods)} |"
    yield f"|---|---|{'---|' * len(methods)}"
    for cell in dict.fromkeys(key[0] for key in found):
        values = [f"{numbers(found[cell, m], 'megabytes')[0]:.0f}" for m in methods]
        yield f"| {cell} | {int(cell) * 80 / 1e6:.0f} | {' | '.join(values)} |"


def page(rows, output):
    lines = [
        "# Gaussian mixtures",
        "",
        "Made by `python benchmarks/mixture.py`; its docstring says what is measured; medians of "
        "the runs, delta = 1e-6, one thread.",
        "",
        "![Ellipses of private and other components](../images/mixture.png)",
        "",
        "## Separated, rotated components",
        "",
        *cell_table(rows),
        "",
        "## Labels in many dimensions",
        "",
        "Share of fresh rows with a wrong label; five standard normals about points of "
        "{1, 2}^d, epsilon = 1; in brackets the number of runs.",
        "",
        "![Labels](../images/mixture_labels.png)",
        "",
        *label_table(rows),
        "",
        "## Held-out log-density of real tables",
        "",
        "Nats per row: of the non-private mixture, and how much less the private one has.",
        "",
        *real_table(rows),
        "",
        "## Time",
        "",
        "n = 1e5, d = 10, k = 5.",
        "",
        *speed_table(rows),
        "",
        "## Memory",
        "",
        "Megabytes beside the rows at the worst moment of a fit; d = 10, k = 5.",
        "",
        *memory_table(rows),
        "",
    ]
    (output / "benchmarks" / "mixture.md").write_text("\n".join(lines))


def pictures(rows, output):
    """Ellipses of one fit, made anew; and the shares of wrong labels."""
    figure, axis = new((6.5, 5.6))
    draw_ellipses(axis)
    legend_on_top(figure, 3)
    save(figure, output / "images" / "mixture.png")
    figure, axis = new((7, 4))
    draw_labels(axis, grouped(rows, "labels"))
    legend_on_top(figure, 4)
    save(figure, output / "images" / "mixture_labels.png")


def draw_labels(axis, found):
    """The methods side by side, or nobody could see that they agree."""
    sizes = sorted({int(cell.split(",")[0]) for cell, _ in found})
    methods = ("coreset", "k_tuples", "partition")
    for i, (method, color, marker) in enumerate(zip(methods, COLORS, MARKERS, strict=False)):
        points = [(at + 0.16 * (i - 1), level) for at, level in wrong_labels(found, sizes, method)]
        axis.plot(*zip(*points, strict=True), marker, color=color, label=method, ms=6)
    for at, level in wrong_labels(found, sizes, "Bayes"):
        axis.hlines(level, at - 0.35, at + 0.35, color=INK, ls="--", lw=1, label="best possible")
    axis.set_yscale("symlog", linthresh=1e-3)
    axis.set(xlabel="features", ylabel="wrong labels, %", ylim=(-2e-4, 100))
    plain_ticks(axis.xaxis, range(len(sizes)), [str(size) for size in sizes])
    plain_ticks(axis.yaxis, [0, 1e-3, 1e-2, 0.1, 1, 10, 100])
    axis.grid(axis="y")


def wrong_labels(found, sizes, method):
    """Place and median share of wrong labels, in percent, for each number of features."""
    for (cell, name), part in found.items():
        if name == method:
            share = np.median(numbers(part, "loss"))
            yield sizes.index(int(cell.split(",")[0])), 100 * share


def draw_ellipses(axis):
    """Two standard deviations about each mean, private and not."""
    rng = np.random.default_rng(200)  # means that are close together
    truth = Truth(5, 2, 7, rng)
    X, _ = truth.draw(5000, rng)
    model, other = DPGaussianMixture(5, epsilon=1.0).fit(X), GaussianMixture(5, n_init=5).fit(X)
    axis.plot(*X.T, ".", ms=2, mew=0, color=MUTED, alpha=0.5, label="rows")
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = 2.0 * np.stack([np.cos(turn), np.sin(turn)])
    for mixture, color, style, label in (
        (model, COLORS[1], "-", "DPGaussianMixture, epsilon = 1"),
        (other, INK, "--", "GaussianMixture"),
    ):
        for mean, covariance in zip(mixture.means_, mixture.covariances_, strict=True):
            ring = mean[:, None] + np.linalg.cholesky(covariance) @ circle
            axis.plot(*ring, style, color=color, label=label)
            label = None
    axis.set(aspect="equal", xlabel="first feature", ylabel="second feature")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=250000, help="of the part 'labels'")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--match", default="", help="regular expression for 'cell | method'")
    parser.add_argument("--data", help="folder with more tables")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start nothing after this")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=DOC)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    path, start = options.output / "benchmarks" / "mixture.csv", time.monotonic()
    if options.plot:
        return pictures(read(path), options.output)
    done = {(row["part"], row["cell"], row["method"], row["seed"]) for row in read(path)}
    for part in options.parts:
        for cell, method, seed, run in PARTS[part](options):
            key = (part, cell, method, str(seed))
            if key in done or not re.search(options.match, f"{cell} | {method}"):
                continue
            if time.monotonic() - start > options.seconds:
                break
            append(path, dict(zip(FIELDS, key, strict=False)) | run())
    rows = read(path)
    page(rows, options.output)
    pictures(rows, options.output)


if __name__ == "__main__":
    main()
