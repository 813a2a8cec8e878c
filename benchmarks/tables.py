"""Tables as people have them: columns of different units, skewed columns, weights, statuses.

    python benchmarks/tables.py [--runs 40] [--tables 200]

prints its tables and writes ``doc/benchmarks/tables.md``.
"""

import argparse
import platform
import warnings
from importlib.metadata import version
from textwrap import wrap

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from tables_answers import rare, status, weighted

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, FriendlyCovariance, FriendlyMean
from sklearn_dp.preprocessing import DPQuantiles, DPStandardScaler

PAGE = _run.PAGES / "tables.md"
GROUPS = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]], dtype=float)
LOW, HIGH = np.array([15.0, 0, 0]), np.array([95.0, 2e5, 80])


def persons(n, rng):
    """Ages, salaries and hours of four groups, and the groups."""
    group = rng.integers(4, size=n)
    return np.clip(GROUPS[group] + rng.normal(size=(n, 3)) * [5, 6e3, 4], LOW, HIGH), group


# -- units -----------------------------------------------------------------------------------------


def mean(X, bounds, seed, group):
    model = FriendlyMean(bounds=bounds, random_state=seed).fit(X)
    return np.abs(model.mean_ - X.mean(axis=0)) / X.std(axis=0)


def location(X, bounds, seed, group):
    model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
    return np.abs(model.location_ - X.mean(axis=0)) / X.std(axis=0)


def covariance(X, bounds, seed, group):
    model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
    sd, truth = X.std(axis=0), np.cov(X.T)
    return (np.abs(model.covariance_ - truth) / np.outer(sd, sd)).max(axis=0)


def components(X, bounds, seed, group):
    model = DPPCA(2, bounds=bounds, random_state=seed).fit(X)
    return np.abs(model.mean_ - X.mean(axis=0)) / X.std(axis=0)


def mixture(X, bounds, seed, group):
    model = DPGaussianMixture(4, bounds=bounds, random_state=seed).fit(X)
    return np.full(3, 1 - adjusted_rand_score(group, model.predict(X)))


def centers(X, bounds, seed, group):
    """Of the columns' means in the clusters that the centers make."""
    model = DPKMeans(4, bounds=bounds, random_state=seed).fit(X)
    labels = model.predict(X)
    off = [
        np.abs(center - X[labels == j].mean(axis=0))
        for j, center in enumerate(model.cluster_centers_)
        if np.any(labels == j)
    ]
    return np.max(off, axis=0) / X.std(axis=0)


def cost(X, bounds, seed, group):
    """Of the clusters, over those of KMeans on the same rows."""
    model = DPKMeans(4, bounds=bounds, random_state=seed).fit(X)
    best = KMeans(4, n_init=5, random_state=0).fit(X)
    return np.array([model.score(X) / -best.inertia_])


def deviations(X, bounds, seed, group):
    model = DPStandardScaler(bounds=bounds, random_state=seed).fit(X)
    return np.abs(model.scale_ / X.std(axis=0) - 1)


def medians(X, bounds, seed, group):
    model = DPQuantiles((0.5,), bounds=bounds, random_state=seed).fit(X)
    return np.abs(model.quantiles_[0] - np.median(X, axis=0)) / X.std(axis=0)


MODELS = {
    "FriendlyMean": mean,
    "DPStandardScaler.scale_": deviations,
    "DPQuantiles, median": medians,
    "FriendlyCovariance.location_": location,
    "FriendlyCovariance": covariance,
    "DPPCA.mean_": components,
    "DPGaussianMixture (1 - ARI)": mixture,
    "DPKMeans, centers": centers,
    "DPKMeans, cost": cost,
}


def units(runs, sizes=(2000, 20_000)):
    """Root mean squared error of a column, in its standard deviations: own units, and scaled."""
    for name, measure in MODELS.items():
        for bounded in (True, False):
            for n in sizes:
                found = {"raw": [], "scaled": []}
                for seed in range(runs):
                    rng = np.random.default_rng([n, seed])
                    X, group = persons(n, rng)
                    unit = 10.0 ** rng.uniform(-6, 6, 3)
                    middle, sd = X.mean(axis=0), X.std(axis=0)
                    kinds = {"raw": (0.0, 1 / unit), "scaled": (middle, sd)}
                    for kind, (shift, scale) in kinds.items():
                        bounds = ((LOW - shift) / scale, (HIGH - shift) / scale)
                        rows = (X - shift) / scale
                        found[kind].append(measure(rows, bounds if bounded else None, seed, group))
                raw, scaled = (np.sqrt(np.mean(np.square(found[k]))) for k in ("raw", "scaled"))
                yield name, "box" if bounded else "none", n, raw, scaled, raw / max(scaled, 1e-12)


# -- skewed columns --------------------------------------------------------------------------------

LAWS = {
    "normal": (lambda r, n: r.normal(size=n), (-6, 6)),
    "lognormal(.5)": (lambda r, n: r.lognormal(0, 0.5, n), (0, 12)),
    "lognormal(.8)": (lambda r, n: r.lognormal(0, 0.8, n), (0, 40)),
    "lognormal(1.5)": (lambda r, n: r.lognormal(0, 1.5, n), (0, 600)),
    "exponential": (lambda r, n: r.exponential(size=n), (0, 20)),
    "Pareto(2.5)": (lambda r, n: 1 + r.pareto(2.5, n), (1, 100)),
    "bimodal": (lambda r, n: r.normal(size=n) + 8 * (r.random(n) < 0.3), (-6, 14)),
    "80% zeros": (lambda r, n: r.exponential(size=n) * (r.random(n) < 0.2), (0, 20)),
    "heaped": (lambda r, n: np.round(r.gamma(2, 10, n) / 5) * 5, (0, 200)),
}


def quantile_clipped(x, box, rng):
    """A mean clipped at quantiles that half of the budget finds, as Google's library has it."""
    low, high = box
    edges = np.linspace(low, high, 201)
    counts = np.histogram(x, edges)[0] + rng.laplace(0, 2 / 1.0 * 2, 200)
    total = np.cumsum(np.maximum(counts, 0))
    top = edges[1 + int(np.searchsorted(total, 0.99 * total[-1]))]
    bottom = edges[int(np.searchsorted(total, 0.01 * total[-1]))]
    middle, half = (top + bottom) / 2, max((top - bottom) / 2, 1e-9)
    total = (np.clip(x, bottom, top) - middle).sum() + rng.laplace(0, half / 0.25)
    return middle + total / (len(x) + rng.laplace(0, 1 / 0.25))


def skewed(runs, sizes=(1000, 10_000, 100_000)):
    """Coverage of 95% intervals, bias and error in sampling errors, and those of others."""
    for name, (draw, box) in LAWS.items():
        sample = draw(np.random.default_rng(10**6), 4_000_000)
        truth, sd = sample.mean(), sample.std()
        for n in sizes:
            for bounds in (box, None):
                off, bias, held, others = [], [], 0, ([], [])
                for seed in range(runs):
                    x = draw(np.random.default_rng([n, seed]), n)
                    model = FriendlyMean(bounds=bounds, random_state=seed).fit(x[:, None])
                    low, high = model.confidence_interval()
                    held += bool(low[0] <= truth <= high[0])
                    off.append(model.mean_[0] - truth)
                    bias.append(model.mean_[0] - x.mean())
                    if bounds:
                        noise = np.random.default_rng(seed)
                        own = np.clip(x, *box).mean() + noise.laplace(0, (box[1] - box[0]) / n)
                        others[0].append(own - truth)
                        clipped = quantile_clipped(x, box, noise)
                        others[1].append(clipped - truth)
                unit = sd / np.sqrt(n)
                error = [
                    np.sqrt(np.mean(np.square(each))) / unit for each in (off, *others) if each
                ]
                error += [np.nan] * (3 - len(error))
                yield (
                    name,
                    n,
                    "box" if bounds else "none",
                    held / runs,
                    np.mean(bias) / unit,
                    *error,
                )


TOGETHER = {FriendlyMean: "mean_", FriendlyCovariance: "location_", DPPCA: "mean_"}


def together(runs, sizes=(10_000, 100_000)):
    """Coverage, bias and error of the means of columns of one table, in units of their own."""
    samples = [draw(np.random.default_rng(10**6), 4_000_000) for draw, _ in LAWS.values()]
    truth, sd = np.mean(samples, axis=1), np.std(samples, axis=1)
    low, high = np.transpose([box for _, box in LAWS.values()])
    for cls, attribute in TOGETHER.items():
        for bounded in (True, False):
            for n in sizes:
                off, bias, held = [], [], []
                for seed in range(runs):
                    rng = np.random.default_rng([n, seed])
                    unit = 10.0 ** rng.uniform(-6, 6, len(LAWS))
                    X = np.column_stack([draw(rng, n) for draw, _ in LAWS.values()]) * unit
                    bounds = (low * unit, high * unit) if bounded else None
                    model = cls(bounds=bounds, random_state=seed).fit(X)
                    least, most = model.confidence_interval(attribute=attribute)
                    held.append((least <= truth * unit) & (truth * unit <= most))
                    found = getattr(model, attribute) / unit
                    off.append((found - truth) / sd * np.sqrt(n))
                    bias.append((found - X.mean(axis=0) / unit) / sd * np.sqrt(n))
                error = np.sqrt(np.mean(np.square(off), axis=0))
                shown = np.mean(held, axis=0), np.mean(bias, axis=0), error
                for column, *row in zip(LAWS, *shown, strict=True):
                    yield (
                        f"{cls.__name__}.{attribute}",
                        column,
                        n,
                        "box" if bounded else "none",
                        *row,
                    )


# -- the page --------------------------------------------------------------------------------------


def lines(head, rows):
    """A table in Markdown."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        cells = (
            ""
            if isinstance(v, float | np.floating) and np.isnan(v)
            else f"{v:.3g}"
            if isinstance(v, float | np.floating)
            else v
            for v in row
        )
        yield "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--tables", type=int, default=200)
    options = parser.parse_args()
    runs, tables = options.runs, options.tables
    warnings.simplefilter("ignore")
    text = [
        "# Realistic tables",
        "",
        f"Made by `python benchmarks/tables.py --runs {runs} --tables {tables}` with Python "
        f"{platform.python_version()} and NumPy {version('numpy')}; epsilon 1, delta 1e-6.",
    ]
    for title, words, head, rows in parts(runs, tables):
        part = ["", f"## {title}", "", *wrap(words, 100), ""]
        part += lines(
            head, [[float(v) if isinstance(v, np.floating) else v for v in r] for r in rows]
        )
        print("\n".join(part), flush=True)
        text += part
    PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")


def parts(runs, tables):
    """Title, words, heads and rows of each table."""
    yield (
        "Units",
        "Ages, salaries and hours of four groups, each column in a unit of 10^-6 to 10^6 (`raw`), "
        "and standardized (`scaled`), with a box of public bounds and without any. Root mean "
        "squared error of a column in its standard deviations. k-means compares distances in the "
        "units of the table, so its clusters are other ones in the two tables; the error of a "
        "center is from the mean of its rows, and its cost is over that of KMeans on them.",
        ("", "bounds", "n", "raw", "scaled", "ratio"),
        units(runs),
    )
    yield (
        "Skewed columns",
        "The mean of one column. Coverage of 95% intervals; bias, from the mean of the same rows, "
        "and root mean squared error in sampling errors (1: the error without privacy), of "
        "`FriendlyMean`, of a mean with Laplace noise in the same box (diffprivlib's: epsilon 1, "
        "the number of rows is public), "
        "and of one that is clipped at quantiles found with half of epsilon 1.",
        ("column", "n", "bounds", "coverage", "bias", "error", "Laplace", "clipped"),
        skewed(runs),
    )
    yield (
        "Skewed columns together",
        "The means of these columns in one table, each in a unit of 10^-6 to 10^6: coverage of "
        "95% intervals, bias (from the mean of the same rows) and root mean squared error in "
        "sampling errors.",
        ("", "column", "n", "bounds", "coverage", "bias", "error"),
        together(runs),
    )
    yield (
        "Rare values",
        "A flag that is 1 in 1% of the rows, beside 1 or 5 columns of ages, in a box: coverage of "
        "95% intervals of its mean and of its variance, and of the means of the ages; the root "
        "mean squared error of its mean and the median of the standard errors, in its spreads; and "
        "the share of fits in which its code is ok.",
        (
            *("", "ages", "n", "epsilon", "mean", "variance", "ages' means"),
            *("error", "standard error", "ok"),
        ),
        rare(runs),
    )
    yield (
        "Weights",
        "A survey of ages and incomes whose weights are 1 to 300, larger for small incomes. The "
        "most negative and the mean bias, in standard errors, and the coverage of 95% intervals "
        "of the coordinate that has the least.",
        ("", "bounds", "n", "least bias", "mean bias", "coverage"),
        weighted(runs),
    )
    yield (
        "Status",
        f"{tables} random tables of 300 to 30,000 rows and three to six columns: ages, lognormal "
        "money, hours, columns of mostly zeros, heaped and constant ones, half of them with a box. "
        "A coordinate is wrong if it is off by more than half of the spread of its column, or by "
        "more than four of its standard errors. Shares of wrong coordinates about which the status "
        "says nothing, among all; and of good ones that it complains of, among the good. Good is "
        "what came out well in one fit: of values whose error is half of the spread, two of three "
        "do by luck, and a status that finds the third cannot leave them alone. So the same by "
        "what the error is, the root mean square over four fits of the same rows (of centers in "
        "the order of their weights): the share that is complained of where it is below 1/8 of "
        "the spread, and so on; above 1/2 a value is useless. Ideal is a status that knew these "
        "errors and complained of those above 1/2. A scaler tells its means and its standard "
        "deviations apart.",
        (
            *("", "coordinates", "wrong, and called ok", "good, and complained of"),
            *("error below 1/8", "to 1/4", "to 1/2", "above"),
            *("ideal: wrong, and ok", "ideal: good, and complained of"),
        ),
        status(tables),
    )


if __name__ == "__main__":
    main()
