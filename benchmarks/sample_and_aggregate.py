"""Coefficients of a private regression: blocks and a ball, or blocks and a noisy clipped mean.

    python benchmarks/sample_and_aggregate.py               # about five minutes on two cores
    python benchmarks/sample_and_aggregate.py --seeds 2

y = X w + 1 + noise with five normal features; epsilon = 1, delta = 1e-6, public bounds of the
coefficients 10 or 100 (Euclidean norm; the true one is 3.9). "error" is the distance of the
released coefficients and intercept to those of the fit to all rows without privacy, median over
seeds. "with replacement" draws blocks as published, from n / 9 draws. The baseline "mean" clips the
coefficients of each block to the bounds and adds noise to their mean.
Prints a table and writes doc/benchmarks/sample_and_aggregate.md and .png.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

from sklearn_dp import SampleAndAggregate

AGGREGATORS = {
    "one_cluster": {},
    "with replacement": {"sampling": "with_replacement"},
    "mean": {"aggregator": "mean"},
}
OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "sample_and_aggregate"
WEIGHTS = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
HEAD = (
    "| n | bounds | aggregator | blocks | error | R^2 | R^2 without privacy | seconds |\n"
    "|---|---|---|---|---|---|---|---|"
)


def regression(n, seed):
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n, len(WEIGHTS)))
    return X, X @ WEIGHTS + 1 + rng.normal(size=n)


def cell(n, bounds, aggregator, seeds):
    rows = []
    for seed in range(seeds):
        X, y = regression(n, seed)
        plain = Ridge().fit(X, y)
        model = SampleAndAggregate(
            Ridge(),
            output=("coef_", "intercept_"),
            epsilon=1.0,
            output_bounds=bounds,
            random_state=seed,
            **AGGREGATORS[aggregator],
        )
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        error = np.linalg.norm(model.output_ - np.append(plain.coef_, plain.intercept_))
        rows.append((model.n_blocks_, error, model.score(X, y), plain.score(X, y), seconds))
    return (n, bounds, aggregator, *np.median(rows, axis=0))


def show(row):
    n, bounds, aggregator, blocks, error, score, plain, seconds = row
    return (
        f"| {n} | {bounds:g} | {aggregator} | {blocks:.0f} | {error:.3f} | {score:.3f} "
        f"| {plain:.3f} | {seconds:.1f} |"
    )


def plot(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.5))
    axes = figure.subplots()
    for aggregator, marker in zip(AGGREGATORS, "ovs", strict=True):
        for bounds, style in ((10.0, "-"), (100.0, "--")):
            chosen = [row for row in rows if row[1:3] == (bounds, aggregator)]
            axes.plot(
                [row[0] for row in chosen],
                [row[4] for row in chosen],
                style,
                marker=marker,
                label=f"{aggregator}, bounds {bounds:g}",
            )
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="error of the coefficients")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    rows = []
    for n in (10_000, 100_000):
        for bounds in (10.0, 100.0):
            for aggregator in AGGREGATORS:
                rows.append(cell(n, bounds, aggregator, options.seeds))
                print(show(rows[-1]), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(
        [
            "# Sample and aggregate",
            "",
            "```",
            __doc__.strip(),
            "```",
            "",
            f"{options.seeds} seeds.",
            "",
            "![error](sample_and_aggregate.png)",
            "",
            HEAD,
            *map(show, rows),
            "",
        ]
    )
    options.output.with_suffix(".md").write_text(text)
    plot(rows, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
