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

import _run  # first: one thread
import numpy as np
from _style import COLORS, MARKERS, legend_on_top, new, plain_ticks, read_table, save
from sklearn.linear_model import Ridge

from sklearn_dp import SampleAndAggregate

AGGREGATORS = {
    "one_cluster": {},
    "with replacement": {"sampling": "with_replacement"},
    "mean": {"aggregator": "mean"},
}
OUTPUT = _run.PAGES / "sample_and_aggregate"
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
    """A line for each aggregator and bound: the error with few rows, and with ten times as many."""
    figure, axis = new((8, 3.4))
    kinds = [(aggregator, bounds) for aggregator in AGGREGATORS for bounds in (10.0, 100.0)]
    for n, color, marker in zip((10_000, 100_000), COLORS, MARKERS, strict=False):
        errors = [
            next(row[4] for row in rows if row[:3] == (n, bounds, aggregator))
            for aggregator, bounds in kinds
        ]
        axis.plot(errors, range(len(kinds)), marker, color=color, label=f"{n:,} rows", ms=7)
    axis.set(xscale="log", xlabel="error of the coefficients")
    plain_ticks(axis.xaxis, [0.1, 0.3, 1, 3, 10, 30])
    plain_ticks(axis.yaxis, range(len(kinds)), [f"{name}, bounds {b:g}" for name, b in kinds])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(kinds) - 0.5, -0.5)
    axis.grid()
    legend_on_top(figure, 2)
    save(figure, path)


def stored(path):
    """The rows of the last run, from the table of the page."""
    return [
        (int(row["n"]), float(row["bounds"]), row["aggregator"], None, float(row["error"]))
        for row in read_table(path.read_text(), "n", "bounds", "aggregator")
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plot", action="store_true", help="draw what the page holds")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if options.plot:
        stored_rows = stored(options.output.with_suffix(".md"))
        return plot(stored_rows, options.output.with_suffix(".png"))
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
            "```text",
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
