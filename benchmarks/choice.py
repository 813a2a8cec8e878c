"""Which private k-means: cost over KMeans, time and path of both, over n, epsilon and dimension.

    python benchmarks/choice.py            # about two minutes on an idle core
    python benchmarks/choice.py --runs 1

Data: 8 Gaussian clusters of `make_blobs` (centers uniform in a cube of side 20, standard deviation
1), no bounds given, delta 1e-6. Each figure is the median over the runs, each with new noise, on
the same rows. "KMeans" has ten starts. Times are of the processor, all threads.
"""

import argparse
import statistics
import time
import warnings

from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import DPKMeans, DPKTupleKMeans
from sklearn_dp.exceptions import UtilityWarning

K = 8
CELLS = [  # n, d, epsilon
    (1_000, 2, 1.0), (10_000, 2, 1.0), (100_000, 2, 1.0),
    (1_000, 10, 1.0), (10_000, 10, 1.0), (100_000, 10, 1.0),
    (10_000, 50, 1.0), (100_000, 50, 1.0),
    (10_000, 10, 0.25), (10_000, 10, 4.0), (100_000, 10, 8.0),
]  # fmt: skip


def fit(model, X):
    """Cost and seconds of one fit."""
    start = time.process_time()
    model.fit(X)
    seconds = time.process_time() - start
    return -model.score(X), seconds


def row(n, d, epsilon, runs):
    X, _ = make_blobs(n, d, centers=K, center_box=(-10, 10), random_state=n + d)
    cost, seconds = fit(KMeans(K, n_init=10, random_state=0), X)
    cells = [f"{n:,}", str(d), f"{epsilon:g}", f"{seconds:.2f}"]
    for kind in (DPKMeans, DPKTupleKMeans):
        models = [kind(K, epsilon=epsilon) for _ in range(runs)]
        found = [fit(model, X) for model in models]
        ratio, taken = (statistics.median(values) for values in zip(*found, strict=True))
        cells += [f"{ratio / cost:.3f}", f"{taken:.2f}"]
    return [*cells, statistics.mode(model.path_ for model in models)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore", UtilityWarning)
    headings = ["n", "d", "epsilon", "KMeans s", "DPKMeans cost", "s", "DPKTupleKMeans cost", "s",
                "path"]  # fmt: skip
    print("| " + " | ".join(headings) + " |\n|" + "---|" * len(headings))
    for cell in CELLS:
        print("| " + " | ".join(row(*cell, runs)) + " |", flush=True)


if __name__ == "__main__":
    main()
