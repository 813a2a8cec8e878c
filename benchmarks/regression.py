"""Whether anything got worse: a few quick fits, compared with the ratios of the last release.

    python benchmarks/regression.py            # print and compare; exit status 1 if it got worse
    python benchmarks/regression.py --update   # print, and write benchmarks/ratios.json

Each cell fits under fixed seeds, so its cost ratios repeat to the last digits on one machine; a
margin covers other versions of the libraries. Costs and errors are over those of the same task
without privacy, or over the smallest error that is possible with this noise. CPU time is the
smallest of several runs over that of scikit-learn in the same process, with a wide margin.
A cell that improves by more than its margin is told as well: update the table then.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

import _run  # noqa: F401 - first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture

from sklearn_dp.cluster import DPKMeans, DPKTupleKMeans
from sklearn_dp.exceptions import PrivacyWarning, UtilityWarning
from sklearn_dp.federated import FederatedDPKMeans
from sklearn_dp.mean import FriendlyMean
from sklearn_dp.mixture import DPGaussianMixture

TABLE = Path(__file__).with_name("ratios.json")
# Of the excess over one of a cost, and of an error: what a change of libraries may do, while a
# wrong constant in the noise (a factor of two) shows. Of time: what a busy machine may do.
MARGIN = {"cost": 1.5, "error": 1.3, "cpu": 3.0}
LEAST_EXCESS = 0.002  # an excess below it is no different from none


def clusters(n, d, k, seed=0):
    """Well separated round clusters in the unit ball, with their number of each row."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    centers *= rng.uniform(0.4, 0.9, size=(k, 1)) / np.linalg.norm(centers, axis=1, keepdims=True)
    labels = rng.integers(0, k, size=n)
    return centers[labels] + 0.02 * rng.normal(size=(n, d)), labels


def cost(X, centers):
    """Mean squared distance to the nearest center."""
    squares = (X**2).sum(axis=1)[:, None] - 2 * X @ centers.T + (centers**2).sum(axis=1)
    return float(squares.min(axis=1).mean())


def cost_ratios(X, fit_centers, k, seeds=25):
    """Costs over that of KMeans with ten starts: the middle one, and one that few exceed."""
    best = cost(X, KMeans(k, n_init=10, random_state=0).fit(X).cluster_centers_)
    ratios = [cost(X, fit_centers(seed)) / best for seed in range(seeds)]
    return typical_and_bad(ratios)


def typical_and_bad(ratios):
    return {
        "median": ("cost", statistics.median(ratios)),
        "p80": ("cost", float(np.quantile(ratios, 0.8))),
    }


# -- cells -----------------------------------------------------------------------------------------
# Budgets are small enough for the noise to show in the cost: with ratios of 1.0000 twice the noise
# would pass.


def kmeans_plane():
    X, _ = clusters(20_000, 2, 8)
    return cost_ratios(X, lambda seed: kmeans(X, 8, seed, epsilon=0.1, bounds=1.0), 8)


def kmeans_many_features():
    X, _ = clusters(20_000, 20, 10)
    return cost_ratios(X, lambda seed: kmeans(X, 10, seed, epsilon=0.2), 10)


def kmeans_digits():
    X = load_digits().data / 16.0
    return cost_ratios(X, lambda seed: kmeans(X, 10, seed, bounds=(0.0, 1.0)), 10)


def kmeans(X, k, seed, **options):
    return DPKMeans(k, random_state=seed, **options).fit(X).cluster_centers_


def k_tuples():
    """Error of the centers over what the sample itself leaves open, as a length."""
    X, _ = clusters(20_000, 4, 4)

    def fit(seed):
        model = DPKTupleKMeans(4, epsilon=8.0, n_tuples=300, bounds=1.0, random_state=seed)
        return model.fit(X).cluster_centers_

    # Centers of n / k rows each miss the true ones by an excess of k / n in the cost.
    found = cost_ratios(X, fit, 4)
    return {
        what: ("error", float(np.sqrt(max(ratio - 1, 0.0) * len(X) / 4)))
        for what, (_, ratio) in found.items()
    }


def federated():
    X, _ = clusters(12_000, 3, 5)
    clients = np.arange(len(X)) % 300

    def fit(seed):
        model = FederatedDPKMeans(5, epsilon=1.0, privacy_unit="row", bounds=1.0, random_state=seed)
        return model.fit(X, groups=clients).cluster_centers_

    return cost_ratios(X, fit, 5, seeds=15)


def mean_far_away():
    """Error over that of the sample's own mean about the true one."""
    rng = np.random.default_rng(0)
    samples = [1e6 + rng.normal(size=(1500, 5)) for _ in range(50)]
    errors = [
        np.linalg.norm(FriendlyMean(epsilon=0.5, random_state=seed).fit(X).mean_ - 1e6)
        for seed, X in enumerate(samples)
    ]
    own = [np.linalg.norm(X.mean(axis=0) - 1e6) for X in samples]
    return {"median": ("error", float(statistics.median(errors) / statistics.median(own)))}


def mixture_density():
    """One, and the mean log-density lost on fresh rows over what a single Gaussian loses."""
    rows, fresh = (mixture_rows(seed) for seed in (0, 1))
    best = GaussianMixture(3, random_state=0).fit(rows).score(fresh)
    single = GaussianMixture(1, random_state=0).fit(rows).score(fresh)
    scores = [
        DPGaussianMixture(3, epsilon=0.2, random_state=seed).fit(rows).score(fresh)
        for seed in range(25)
    ]
    return typical_and_bad([1 + (best - score) / (best - single) for score in scores])


def mixture_rows(seed):
    rng = np.random.default_rng(seed)
    places = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 1.0], [0.0, 9.0, -4.0]])
    scales = np.array([[1.0, 1.0, 0.5], [0.5, 2.0, 1.0], [1.0, 0.3, 1.0]])
    labels = rng.integers(0, 3, size=15_000)
    return places[labels] + scales[labels] * rng.normal(size=(len(labels), 3))


def kmeans_time():
    X, _ = clusters(100_000, 10, 10)
    return cpu_ratio(lambda: kmeans(X, 10, 0, epsilon=1.0), KMeans(10, n_init=10), X)


def k_tuples_time():
    X, _ = clusters(40_000, 4, 4)
    ours = DPKTupleKMeans(4, epsilon=8.0, bounds=1.0, random_state=0)
    return cpu_ratio(lambda: ours.fit(X), KMeans(4, n_init=10), X)


def mixture_time():
    X = mixture_rows(0)
    ours = DPGaussianMixture(3, epsilon=1.0, random_state=0)
    return cpu_ratio(lambda: ours.fit(X), GaussianMixture(3, n_init=10), X)


def cpu_ratio(ours, theirs, X):
    theirs.set_params(random_state=0)
    return {"cpu": ("cpu", cpu(ours) / cpu(lambda: theirs.fit(X)))}


def cpu(task, repeats=3):
    """Smallest CPU time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


CELLS = {
    "DPKMeans, n=20000 d=2 k=8, epsilon=0.1": kmeans_plane,
    "DPKMeans, n=20000 d=20 k=10, epsilon=0.2, no bounds": kmeans_many_features,
    "DPKMeans, digits, epsilon=1": kmeans_digits,
    "DPKTupleKMeans, n=20000 d=4 k=4, 300 tuples, epsilon=8": k_tuples,
    "FederatedDPKMeans, 300 clients, n=12000 d=3 k=5, epsilon=1": federated,
    "FriendlyMean, n=1500 d=5, epsilon=0.5": mean_far_away,
    "DPGaussianMixture, n=15000 d=3 k=3, epsilon=0.2": mixture_density,
    "DPKMeans over KMeans(n_init=10), n=100000": kmeans_time,
    "DPKTupleKMeans over KMeans(n_init=10), n=40000": k_tuples_time,
    "DPGaussianMixture over GaussianMixture(n_init=10)": mixture_time,
}


# -- comparison ------------------------------------------------------------------------------------


def limits(kind, stored):
    """Between which values a ratio counts as unchanged."""
    margin = MARGIN[kind]
    if kind == "cost":
        excess = stored - 1
        slack = max(LEAST_EXCESS, (margin - 1) * abs(excess))
        return stored - slack, stored + slack
    return stored / margin, stored * margin


def verdict(kind, stored, value):
    if stored is None:
        return "new"
    low, high = limits(kind, stored)
    if not value <= high:  # NaN is worse, too
        return "WORSE"
    return "better" if value < low else "ok"


def compare(measured, table):
    """Print all cells; the names of those that are worse, or of which one side is missing."""
    bad = [name for name in table if name not in measured]
    for name, (kind, value) in measured.items():
        stored = table.get(name, {}).get("ratio")
        word = verdict(kind, stored, value)
        if word in ("WORSE", "new"):
            bad.append(name)
        print(f"{name:68} {kind:6} {value:8.4f}  stored {stored or float('nan'):8.4f}  {word}")
    return bad


def measure():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # seeds
        warnings.simplefilter("ignore", UtilityWarning)
        return {
            f"{name}: {what}": figure
            for name, cell in CELLS.items()
            for what, figure in cell().items()
        }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="compare with the table (the default)")
    choice.add_argument("--update", action="store_true", help="write the table")
    arguments = parser.parse_args(argv)
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    start = time.process_time()
    measured = measure()
    bad = compare(measured, table)
    print(f"{time.process_time() - start:.0f} CPU seconds")
    if arguments.update:
        rows = {name: {"kind": kind, "ratio": round(v, 4)} for name, (kind, v) in measured.items()}
        TABLE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        return 0
    for name in bad:
        print(f"worse, or missing on one side: {name}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
