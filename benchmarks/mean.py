"""FriendlyMean beside an oracle that knows where the data are, and the published algorithm.

Run ``python benchmarks/mean.py``; it prints its tables and writes ``doc/benchmarks/mean.md`` and
``doc/images/mean.png``. Takes about twenty minutes on one core; ``--runs 10`` is quicker.
"""

import argparse
import math
import platform
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from _style import COLORS, MARKERS, MUTED, new, plain_ticks, read_table, save
from scipy.stats import trim_mean

from sklearn_dp import PrivacyBudget
from sklearn_dp.mean import FriendlyMean

DOC = Path(__file__).parents[1] / "doc"
RHO, DELTA = 1.0, 1e-8
SPLITS = np.geomspace(1e-3, 0.5, 20)  # of rho, for the oracle's count
SIZES = {
    "cells": (120, 150, 180, 210, 240, 280, 330, 400),
    "basic": (350, 400, 450, 500, 550, 600, 700, 800),
}


def diameter_of(n, d):
    """A bound of all distances among n points of N(0, I_d), as in the paper's experiments."""
    return math.sqrt(2) * (math.sqrt(d) + math.sqrt(math.log(100 * n)))


def oracle_errors(X, location, rho, rng):
    """Noisy sum over noisy count of points clipped about the true mean, for each split of rho."""
    n, d = X.shape
    radius = diameter_of(n, d) / math.sqrt(2)
    offsets = X - location
    norms = np.linalg.norm(offsets, axis=1, keepdims=True)
    total = (offsets * np.minimum(1, radius / norms)).sum(axis=0)
    noise, count_noise = rng.normal(size=d), rng.normal()
    return [
        np.linalg.norm(
            (total + noise * radius / math.sqrt(2 * rho * (1 - w)))
            / max(1.0, n + count_noise / math.sqrt(2 * rho * w))
        )
        for w in SPLITS
    ]


def sample(rng, n, d, distance):
    location = np.full(d, distance / math.sqrt(d))
    return rng.normal(size=(n, d)) + location, location


def one_run(models, rng, n, d, distance, rho):
    """Error of each model, of the oracle for each split, and without privacy."""
    X, location = sample(rng, n, d, distance)
    errors, seconds = {}, {}
    for name, model in models.items():
        start = time.perf_counter()
        fitted = model.fit(X)
        seconds[name] = time.perf_counter() - start
        errors[name] = float(np.linalg.norm(fitted.mean_ - location))
    oracle = oracle_errors(X, location, rho, rng)
    return errors, oracle, float(np.linalg.norm(X.mean(axis=0) - location)), seconds


def experiment(models, runs, n, d, distance, rho=RHO, seed=0):
    """Trimmed means over the runs; the oracle takes the split that is best on average."""
    rng = np.random.default_rng([seed, n, d, int(distance)])
    results = [one_run(models, rng, n, d, distance, rho) for _ in range(runs)]
    trimmed = {name: float(trim_mean([r[0][name] for r in results], 0.1)) for name in models}
    oracle = float(trim_mean(np.array([r[1] for r in results]), 0.1, axis=0).min())
    plain = float(trim_mean([r[2] for r in results], 0.1))
    seconds = {name: float(np.median([r[3][name] for r in results])) for name in models}
    return trimmed, oracle, plain, seconds


def table(title, header, rows):
    lines = [f"## {title}", "", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    text = "\n".join(lines) + "\n"
    print(text, flush=True)
    return text


def known_diameter_rows(runs):
    for d in (50, 200, 1000):
        for distance in (0.0, 1e2, 1e4, 1e7):
            options = {"rho": RHO, "delta": DELTA, "diameter": diameter_of(800, d)}
            models = {"ours": FriendlyMean(**options)}
            if distance == 1e4:
                models["published"] = FriendlyMean(refine=False, **options)
            error, oracle, plain, seconds = experiment(models, runs, 800, d, distance)
            published = f"{error['published']:.3f}" if "published" in error else ""
            yield (
                d,
                f"{distance:g}",
                f"{plain:.3f}",
                f"{oracle:.3f}",
                f"{error['ours']:.3f}",
                f"{error['ours'] / oracle:.3f}",
                published,
                f"{seconds['ours']:.2f}",
            )


def locator_rows(runs):
    for d in (50, 200, 1000):
        options = {"rho": RHO, "delta": DELTA, "diameter": diameter_of(800, d)}
        models = {name: FriendlyMean(locate=name, **options) for name in ("basic", "cells")}
        error, oracle, _, seconds = experiment(models, runs, 800, d, 1e4)
        yield (
            d,
            *(f"{error[name] / oracle:.3f}" for name in models),
            *(f"{seconds[name]:.2f}" for name in models),
        )


def unknown_diameter_rows(runs):
    for d in (50, 200, 1000):
        models = {
            "ours": FriendlyMean(rho=RHO, delta=DELTA),
            "published": FriendlyMean(rho=RHO, delta=DELTA, refine=False),
        }
        error, oracle, plain, seconds = experiment(models, runs, 2000, d, 1e4)
        yield (
            d,
            f"{plain:.3f}",
            f"{oracle:.3f}",
            f"{error['ours']:.3f}",
            f"{error['ours'] / oracle:.3f}",
            f"{error['published']:.3f}",
            f"{seconds['ours']:.2f}",
        )


def success_rates(runs, d=10):
    """Share of runs with an error of at most twice the oracle's root mean square."""
    rho = PrivacyBudget(epsilon=1.0, delta=1e-6).to_rho()
    for locate, sizes in SIZES.items():
        for n in sizes:
            rng = np.random.default_rng(n)
            model = FriendlyMean(epsilon=1.0, delta=1e-6, diameter=diameter_of(n, d), locate=locate)
            results = [one_run({"ours": model}, rng, n, d, 1e5, rho) for _ in range(runs)]
            oracle = np.sqrt(np.mean(np.square([r[1] for r in results]), axis=0)).min()
            errors = np.array([r[0]["ours"] for r in results])
            yield (
                locate,
                n,
                f"{oracle:.3f}",
                f"{np.median(errors):.3f}",
                float(np.mean(errors <= 2 * oracle)),
            )


def smallest_sizes(rates):
    """For each locator the first size from which on at least 95% of the runs succeed."""
    for locate in SIZES:
        good = [(n, rate >= 0.95) for name, n, *_, rate in rates if name == locate]
        bad = [n for n, fine in good if not fine]
        yield locate, min((n for n, fine in good if fine and n > max(bad, default=0)), default="")


def plot(rates, path):
    """Share of successful runs over the number of points, each curve with its name."""
    figure, axes = new((7.5, 4))
    for locate, color, marker in zip(SIZES, COLORS, MARKERS, strict=False):
        n, share = zip(*[(n, rate) for name, n, *_, rate in rates if name == locate], strict=True)
        axes.plot(n, [100 * each for each in share], color=color, marker=marker)
        half = next(i for i, each in enumerate(share) if each >= 0.5)
        axes.annotate(
            f'locate="{locate}"', (n[half - 1] * 0.94, 55), color=color, ha="right", va="center"
        )
    axes.axhline(95, color=MUTED, lw=1, ls="--")
    axes.text(2600, 94, "95%", color=MUTED, va="top", ha="right")
    axes.set(
        xscale="log",
        xlabel="number of points",
        ylabel="runs within twice the oracle's error, %",
        title="Points that a mean needs: epsilon = 1, delta = 1e-6, 10 features",
        xlim=(80, 2800),
    )
    plain_ticks(axes.xaxis, [100, 200, 500, 1000, 2000])
    axes.grid(axis="y")
    save(figure, path)


def stored():
    """The rates of the last run, from the table of the page."""
    rows = read_table((DOC / "benchmarks" / "mean.md").read_text(), "locate", "n", "oracle")
    return [(row["locate"], int(row["n"]), float(row["successes"])) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--plot", action="store_true", help="draw what the page holds")
    options = parser.parse_args()
    runs, picture = options.runs, DOC / "images" / "mean.png"
    if options.plot:
        return plot(stored(), picture)
    command = "python benchmarks/mean.py" + (f" --runs {runs}" if runs != 50 else "")
    parts = [
        f"""# The mean of points of unknown location

Made by `{command}` (Python {platform.python_version()}, numpy {version("numpy")}).

Data: N(mu, I_d), mu at distance R from the origin. Errors are Euclidean distances to mu, means of
{runs} runs trimmed by a tenth at both ends. *Oracle*: knows mu, clips to the ball of radius
diameter / sqrt(2) about it, spends the whole budget on a noisy sum and a noisy count (best split).
*Published*: a friendly core and its average, with exact quantiles. Nobody else is told mu or R.
FriendlyMean chooses its clipping radius from noisy counts, so it can be ahead of the oracle.
"""
    ]
    parts.append(
        table(
            f"Known diameter: n = 800, rho = {RHO:g}, delta = {DELTA:g}",
            (
                "d",
                "R",
                "not private",
                "oracle",
                "FriendlyMean",
                "over oracle",
                "published",
                "seconds",
            ),
            known_diameter_rows(runs),
        )
    )
    parts.append(
        table(
            "How the location is found: error over the oracle's, n = 800, R = 1e4",
            ("d", "basic", "cells", "basic (s)", "cells (s)"),
            locator_rows(runs),
        )
    )
    parts.append(
        table(
            "Unknown diameter (1e-6 to 1e12): n = 2000, R = 1e4",
            ("d", "not private", "oracle", "FriendlyMean", "over oracle", "published", "seconds"),
            unknown_diameter_rows(max(runs // 2, 5)),
        )
    )
    rates = list(success_rates(2 * runs))
    parts.append(
        table(
            "epsilon = 1, delta = 1e-6, d = 10, R = 1e5: runs within twice the oracle's error",
            ("locate", "n", "oracle", "median error", "successes"),
            rates,
        )
    )
    parts.append(
        table(
            "Smallest n with at least 95% of the runs within twice the oracle's error",
            ("locate", "n"),
            smallest_sizes(rates),
        )
    )
    parts.append("![success](../images/mean.png)\n")
    plot(rates, picture)
    (DOC / "benchmarks" / "mean.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
