"""FriendlyCovariance, without any bound, beside CoinPress that is given a tight one.

Run ``python benchmarks/covariance.py``; it writes ``doc/benchmarks/covariance.csv``, ``.md`` and
``doc/images/covariance.png``. Cells that are not run keep their rows: ``--runs 1 --only d2-n2000``
is quick, all of them take about half an hour on one core.
"""

import argparse
import csv
import itertools
import re
import time
import warnings
from pathlib import Path

import numpy as np
from _style import COLORS, INK, MARKERS, legend_on_top, new, plain_ticks, save

from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.exceptions import UtilityWarning

DOC = Path(__file__).parents[1] / "doc"
CSV = DOC / "benchmarks" / "covariance.csv"
KEYS = "d", "n", "condition", "scale"
RHO = 0.5
ROUNDS = (1, 2, 3, 4, 6, 8)


def sample(rng, n, d, condition, scale):
    """Rows of a rotated centered normal law, and its covariance."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = scale * np.sqrt(np.geomspace(1, 1 / condition, d))
    return (rng.normal(size=(n, d)) * scales) @ rotation.T, (rotation * scales**2) @ rotation.T


def error(truth, estimate):
    """|S^-1/2 Shat S^-1/2 - I|_F."""
    inverse = np.linalg.inv(np.linalg.cholesky(truth))
    return float(np.linalg.norm(inverse @ estimate @ inverse.T - np.eye(len(truth))))


def coinpress(X, bound, rounds, rng, *, repaired, beta=0.01):
    """CoinPress for centered data with covariance at most bound * I; it treats n as public.

    As published, rows are multiplied from the right and the maps in the order that is correct
    for at most two rounds; `repaired` has the right order for any number.
    """
    n, d = X.shape
    shares = np.append(np.full(rounds - 1, 0.25 / max(rounds - 1, 1)), 0.75 if rounds > 1 else 1.0)
    tail = np.log(1 / (beta / (4 * rounds)))
    gamma = np.sqrt(d + 2 * np.sqrt(d * tail) + 2 * tail)
    A = np.eye(d) / np.sqrt(bound)
    eta = np.sqrt(d / n) + d / (2 * n)
    for rho in RHO * shares:
        W = X @ (A.T if repaired else A)
        W = W * np.minimum(1, gamma / np.maximum(np.linalg.norm(W, axis=1), 1e-300))[:, None]
        noise = np.triu(rng.normal(size=(d, d))) * gamma**2 / (n * np.sqrt(rho))
        Z = W.T @ W / n + noise + np.triu(noise, 1).T
        values, vectors = np.linalg.eigh(Z)
        Z = (vectors * np.maximum(values, 1e-12)) @ vectors.T
        estimate = np.linalg.inv(A) @ Z @ np.linalg.inv(A).T
        values, vectors = np.linalg.eigh(Z + eta * np.eye(d))
        A = (vectors / np.sqrt(values)) @ vectors.T @ A
    return estimate


def one_run(rng, n, d, condition, scale):
    X, truth = sample(rng, n, d, condition, scale)
    start = time.perf_counter()
    model = FriendlyCovariance(rho=RHO).fit(X)
    out = {
        "seconds": time.perf_counter() - start,
        "ours": error(truth, model.covariance_),
        "plain": error(truth, np.cov(X.T)),
    }
    for name, repaired in (("published", False), ("repaired", True)):
        out[name] = [
            error(truth, coinpress(X, scale**2, rounds, rng, repaired=repaired))
            for rounds in ROUNDS
        ]
    return out


def cell(n, d, condition, scale, runs):
    rng = np.random.default_rng(0)
    results = [one_run(rng, n, d, condition, scale) for _ in range(runs)]
    # The rivals may choose the number of rounds afterward, by the true error.
    found = {
        name: float(np.median([r[name] for r in results], axis=0).min()) for name in results[0]
    }
    return {"d": d, "n": n, "condition": condition, "scale": scale, "runs": runs, **found}


def cells(only):
    """All cells whose name, such as d10-n2000-c100-s1e+06, matches a pattern."""
    for d, n, condition, scale in itertools.product(
        (2, 10, 50), (2000, 10000, 50000), (1.0, 1e2, 1e6), (1e-3, 1e6)
    ):
        if re.search(only, f"d{d}-n{n}-c{condition:g}-s{scale:g}"):
            yield n, d, condition, scale


def read():
    """The cells that are known, by their names."""
    if not CSV.exists():
        return {}
    with CSV.open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return {tuple(row[name] for name in KEYS): row for row in rows}


def write(rows):
    with CSV.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.5g}" for name, value in row.items()} for row in rows)


def table(rows):
    lines = [
        "| d | n | condition | scale | plain | FriendlyCovariance, no bound | "
        "CoinPress repaired, tight bound | CoinPress published, tight bound | "
        "ratio to the better one | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = row["ours"] / min(row["repaired"], row["published"])
        lines.append(
            "| {d:.0f} | {n:.0f} | {condition:g} | {scale:g} | {plain:.3g} | {ours:.3g} | "
            "{repaired:.3g} | {published:.3g} | {ratio:.2f} | {seconds:.2f} |".format(
                **row, ratio=ratio
            )
        )
    return lines


def picture(rows):
    """The error of each cell over that without privacy, a facet for each number of features.

    The two scales of the data are two marks on one line: nobody's error depends on the scale.
    """
    features = sorted({row["d"] for row in rows})
    lines = sorted({(row["n"], row["condition"]) for row in rows})
    figure, axes = new((12, 4.2), 1, len(features), sharey=True)
    names = {
        "ours": "FriendlyCovariance, no bound",
        "repaired": "CoinPress repaired, tight bound",
        "published": "CoinPress published, tight bound",
    }
    for axis, d in zip(axes, features, strict=True):
        part = [row for row in rows if row["d"] == d]
        places = [lines.index((row["n"], row["condition"])) for row in part]
        for i, (name, label) in enumerate(names.items()):
            ratio = [row[name] / row["plain"] for row in part]
            at = [place + 0.22 * (i - 1) for place in places]
            axis.plot(ratio, at, MARKERS[i], color=COLORS[i], label=label)
        axis.axvline(1, color=INK, ls="--", lw=1)
        axis.set(xscale="log", title=f"{d:.0f} features", xlabel="error, over that without privacy")
        plain_ticks(axis.xaxis, [1, 100, 10000])
        axis.set(xlim=(0.6, 3e5))
        axis.grid()
    labels = [f"{n:,.0f} rows, condition {condition:,.0f}" for n, condition in lines]
    plain_ticks(axes[0].yaxis, range(len(lines)), labels)
    axes[0].set_ylim(len(lines) - 0.5, -0.5)
    legend_on_top(figure, 3)
    save(figure, DOC / "images" / "covariance.png", dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="pattern for the names of cells")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    options = parser.parse_args()
    if options.plot:
        return picture(list(read().values()))
    warnings.simplefilter("ignore", UtilityWarning)
    for what in cells(options.only):
        found, known = cell(*what, options.runs), read()
        known[tuple(found[name] for name in KEYS)] = found
        rows = [known[key] for key in sorted(known)]
        write(rows)
        print(found, flush=True)
    rows = list(read().values())
    picture(rows)
    head = [
        "# Covariance without bounds",
        "",
        "Median error `|S^-1/2 Shat S^-1/2 - I|_F` on N(0, S), rho = 0.5, by",
        "`python benchmarks/covariance.py` (number of runs: column `runs` of",
        "`covariance.csv`). CoinPress treats n as public, is told the mean and the largest",
        "variance, and takes the best number of rounds by the true error.",
        "",
        "![Errors with and without privacy](../images/covariance.png)",
        "",
    ]
    (DOC / "benchmarks" / "covariance.md").write_text("\n".join([*head, *table(rows), ""]))


if __name__ == "__main__":
    main()
