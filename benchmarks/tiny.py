"""Tiny data: status of each estimator on 0 to 30 rows.

    python benchmarks/tiny.py              # 4 fits of each setting; about seven minutes
    python benchmarks/tiny.py --fits 1
    python benchmarks/tiny.py DPKMeans     # names that begin so

Prints a table and writes doc/benchmarks/tiny.md. Rows are two clusters in the unit box, in 1, 3 and
20 features; epsilon is .01, .1, 1 and 10. With so few rows nearly all answers are useless, which
means here: worse than what everybody knows without looking, or than one center. For each estimator
the table says when that is. An answer to no row, or to one, is called useless always.
"""

import argparse
import itertools
import warnings
from pathlib import Path

import _run  # first: one thread
import kmeans as setting  # the benchmark beside this file
import numpy as np
from scipy.stats import multivariate_normal

from sklearn_dp import (
    DPCoreset,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPOneCluster,
    DPOneClusterKMeans,
    DPOutlierScreen,
    FriendlyMean,
    SampleAndAggregate,
)
from sklearn_dp.audit._observe import run_fit  # noqa: E402 - fits of no rows
from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.decomposition import DPPCA

OUTPUT = _run.PAGES / "tiny.md"
ROWS = (0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 30)
FEATURES, EPSILONS = (1, 3, 20), (0.01, 0.1, 1.0, 10.0)


def rows_of(n, d, seed):
    """Two round clusters in the box from -1 to 1."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.5, 0.5, size=(2, d))
    return centers[rng.integers(0, 2, n)] + 0.1 * rng.normal(size=(n, d))


def spread(X):
    """Root mean squared distance to the mean."""
    return np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())


def far(found, X):
    """A point that is farther from the mean than half of the spread."""
    return np.linalg.norm(found - X.mean(axis=0)) > spread(X) / 2


def covariance(X):
    return np.cov(X.T, bias=True).reshape(X.shape[1], -1)


def worse_than_one_center(centers, X):
    """By a fifth of its cost: a released center has noise, too."""
    return setting.cost(X, centers) > 1.2 * setting.cost(X, X.mean(axis=0)[None])


def off_by_all(model, X):
    """An error of the covariance that is larger than the covariance."""
    true = covariance(X)
    return np.linalg.norm(model.covariance_ - true) > np.linalg.norm(true)


def another_direction(model, X):
    """A first component at more than 60 degrees from that of the rows."""
    if X.shape[1] == 1:  # there is one direction only
        return np.abs(model.explained_variance_[0] - X.var()) > X.var()
    return abs(np.linalg.eigh(covariance(X))[1][:, -1] @ model.components_[0]) < 0.5


def less_likely_than_one_normal(model, X):
    """By one in the mean log-density."""
    shape = covariance(X) + 1e-3 * np.eye(X.shape[1])
    one = multivariate_normal(X.mean(axis=0), shape, allow_singular=True)
    return model.score(X) < np.mean(one.logpdf(X)) - 1


COST = "cost 1.2 times that of one center"
CENTERS = COST, lambda m, X: worse_than_one_center(m.cluster_centers_, X)
POINTS = COST, lambda m, X: worse_than_one_center(m.points_, X)
MEAN = "more than half a spread from the mean", lambda m, X: far(m.mean_, X)
OUTPUT_OF = "more than half a spread from the mean", lambda m, X: far(m.output_, X)
SHAPE = "an error larger than the covariance", off_by_all
BALL = (
    "less than a quarter of the rows asked for",
    (lambda m, X: m.predict(X).sum() < m.n_points_target_ / 4),
)
INSIDE = "less than half of the rows inside", lambda m, X: np.mean(m.predict(X) == 1) < 0.5
MIXTURE = "log-density one below that of one normal law", less_likely_than_one_normal
DIRECTION = "more than 60 degrees off", another_direction

CASES = {
    "DPKMeans(2)": (DPKMeans, {"n_clusters": 2}, CENTERS),
    "DPKMeans(2), no bounds": (DPKMeans, {"n_clusters": 2, "bounds": None}, CENTERS),
    'DPKMeans("auto")': (DPKMeans, {"n_clusters": "auto"}, CENTERS),
    "DPKTupleKMeans(2)": (DPKTupleKMeans, {"n_clusters": 2}, CENTERS),
    "DPOneClusterKMeans(2)": (DPOneClusterKMeans, {"n_clusters": 2}, CENTERS),
    "DPCoreset(2)": (DPCoreset, {"n_clusters": 2}, POINTS),
    "FriendlyMean": (FriendlyMean, {}, MEAN),
    "FriendlyMean, no bounds": (FriendlyMean, {"bounds": None}, MEAN),
    "FriendlyMean(refine=False)": (FriendlyMean, {"bounds": None, "refine": False}, MEAN),
    "FriendlyCovariance": (FriendlyCovariance, {}, SHAPE),
    'FriendlyCovariance(method="gram")': (FriendlyCovariance, {"method": "gram"}, SHAPE),
    "FriendlyCovariance(assume_centered)": (FriendlyCovariance, {"assume_centered": True}, SHAPE),
    "DPPCA(1)": (DPPCA, {"n_components": 1}, DIRECTION),
    "DPOneCluster(0.5)": (DPOneCluster, {"n_points": 0.5}, BALL),
    "DPOneCluster(8)": (DPOneCluster, {"n_points": 8}, BALL),
    "DPOutlierScreen": (DPOutlierScreen, {}, INSIDE),
    "DPGaussianMixture(1)": (DPGaussianMixture, {"n_components": 1}, MIXTURE),
    "DPGaussianMixture(2)": (DPGaussianMixture, {"n_components": 2}, MIXTURE),
    **{
        f'SampleAndAggregate(aggregator="{kind}", n_blocks=8)': (
            SampleAndAggregate,
            {"aggregator": kind, "n_blocks": 8},
            OUTPUT_OF,
        )
        for kind in ("one_cluster", "friendly_core", "mean")
    },
}


def fitted(kind, options, X, epsilon, seed):
    bounds = "output_bounds" if kind is SampleAndAggregate else "bounds"
    given = {bounds: np.sqrt(X.shape[1]), **options}
    model = kind(epsilon=epsilon, random_state=seed, **given)
    outcome = run_fit(model, X, internal=not len(X))
    if outcome.error is not None:
        raise outcome.error
    return model


def fits(case, n_fits):
    """One line for each fit: whether it was useless, and whether it called itself trustworthy."""
    kind, options, (_, useless) = case
    for n, d, epsilon, seed in itertools.product(ROWS, FEATURES, EPSILONS, range(n_fits)):
        X = rows_of(n, d, seed)
        model = fitted(kind, options, X, epsilon, seed)
        yield {
            "ok": model.trustworthy_,
            "useless": n < 2 or bool(useless(model, X)),
            "setting": (n, d, epsilon, seed),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[""])
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    page = [
        "# Tiny data",
        "",
        "Which results for 0 to 30 rows are called trustworthy, with 1, 3 and 20 features and an "
        "epsilon of .01 to 10.",
        "",
        setting.stamp(f"python benchmarks/tiny.py --fits {options.fits}"),
        "",
    ]
    table = [
        '| estimator | useless is | fits | useless | of these "ok" | others | of these "ok" |',
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(page + table))
    small = []  # the fits at an epsilon of at most 1
    for name, case in CASES.items():
        if not name.startswith(tuple(options.names)):
            continue
        lines = list(fits(case, options.fits))
        bad = [line for line in lines if line["useless"]]
        rest = [line for line in lines if not line["useless"]]
        told = [sum(line["ok"] for line in part) for part in (bad, rest)]
        small += [line["ok"] for line in lines if line["setting"][2] <= 1]
        table.append(
            f"| `{name}` | {case[2][0]} | {len(lines)} | {len(bad)} | {told[0]} "
            f"({100 * told[0] / max(len(bad), 1):.1f}%) | {len(rest)} | {told[1]} |"
        )
        print(table[-1], [line["setting"] for line in bad if line["ok"]][:8], flush=True)
    page += [
        f'At an epsilon of .01 to 1, {sum(small):,} of {len(small):,} fits were called "ok" '
        "(`tests/test_tiny_data.py` asks this of every estimator); what else is "
        '"ok" below was at 10.',
        "",
    ]
    print("\n".join(page[-2:]))
    page += table
    if options.names == [""]:
        options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
