"""DPKMeans on the data sets of PE-means (arXiv 2606.00342), beside the figures printed there.

    python benchmarks/pe_table.py [--seeds 5] [--data FOLDER]

prints its table and writes ``doc/benchmarks/pe_table.md``, which says what is compared. Letters are
read from the folder (or from that in the variable SKLEARN_DP_DATA), and left out without one.
"""

import argparse
import os
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs

from sklearn_dp import DPKMeans

PAGE = _run.PAGES / "pe_table.md"
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
# Features and clusters, and what is printed there: without privacy, PE-means, its projected variant
# (above 32 features), and the best of the four other private methods.
BLOBS = {
    (4, 4): (0.0777, 0.0778, None, 0.1240),
    (4, 16): (0.0459, 0.0445, None, 0.0979),
    (4, 64): (0.0343, 0.0379, None, 0.0818),
    (16, 4): (0.0950, 0.0955, None, 0.1395),
    (16, 16): (0.0606, 0.0668, None, 0.1596),
    (16, 64): (0.0642, 0.1183, None, 0.3872),
    (64, 4): (0.0954, 0.0993, 0.0974, 0.1090),
    (64, 16): (0.0847, 0.1192, 0.1189, 0.2258),
    (64, 64): (0.0823, 0.3070, 0.4678, 0.7878),
    (128, 4): (0.1054, 0.1333, 0.1097, 0.1186),
    (128, 16): (0.0919, 0.1942, 0.1562, 0.2838),
    (128, 64): (0.0933, 0.5740, 0.7190, 0.9675),
}
IRIS = (0.1361, 0.2894, None, 0.3979)
LETTERS = (0.2481, 0.2852, None, 0.3187)
INTRO = """# The data sets of PE-means

Made by `{made}` with {versions}.

[PE-means](https://arxiv.org/abs/2606.00342) (2026) improves centers with private counts of the rows
that are nearest to them. Its table has 34 data sets. Here are those that are generated or come with
scikit-learn or with our other benchmarks: `make_blobs(20000)`, iris, and letters. As there, rows
are centered and divided by the largest length, the public bound is the ball of radius 1, and delta
is n^-1.1. (The mean and that length are taken from the rows: this is the setting of the table, not
a way to prepare data about persons.)

The figure is the area under the mean squared distance over epsilon 0.25, 0.5, 1, 2 and 4, by
trapezoids; lower is better. Ours is made of means of {seeds} fits at each epsilon, as the printed
figures are made of means of 50. "Best other" is the best of four methods in that table: Google's
k-means, FastLloyd, diffprivlib, and the method of Balcan et al. (ICML 2017). All figures of others
are as printed. Without privacy, ours is the best of 5 runs of `KMeans`. The last column counts our
fits with the status "ok" at each epsilon.

The projected variant of PE-means, as released, is not private: see the
[errata](../proofs/errata.md#of-pe-means).
"""


def blobs(d, k):
    return make_blobs(n_samples=20_000, n_features=d, centers=k, random_state=1)[0]


def letters():
    """The rows of the letters, or None without a folder."""
    folder = os.environ.get("SKLEARN_DP_DATA")
    if not folder:
        return None
    with np.load(Path(folder) / "letter16.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64)


def tables():
    """Name, rows, number of clusters and printed figures of each data set."""
    for (d, k), printed in BLOBS.items():
        yield f"blobs, {d} features", blobs(d, k), k, printed
    yield "iris", load_iris().data, 3, IRIS
    if (X := letters()) is not None:
        yield "letters", X, 26, LETTERS


def in_unit_ball(X):
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1).max()


def line(name, X, k, printed, seeds):
    """A row of the table."""
    X = in_unit_ball(X)
    lowest = -KMeans(k, n_init=5, random_state=0).fit(X).score(X) / len(X)
    curve, fine = [], []
    for epsilon in EPSILONS:
        fits = [
            DPKMeans(k, epsilon=epsilon, delta=len(X) ** -1.1, bounds=1.0, random_state=seed).fit(X)
            for seed in range(seeds)
        ]
        curve.append(np.mean([-fit.score(X) / len(X) for fit in fits]))
        fine.append(str(sum(fit.trustworthy_ for fit in fits)))
    ours, free = (np.trapezoid(y, EPSILONS) for y in (curve, [lowest] * len(EPSILONS)))
    theirs = " | ".join("" if each is None else f"{each:.4f}" for each in printed[1:])
    rivals = [each for each in printed[1:] if each is not None]
    return (
        f"| {name} | {len(X):,} | {k} | {free:.4f} ({printed[0]:.4f}) | **{ours:.4f}** | {theirs} "
        f"| {ours / min(rivals) - 1:+.0%} | {' '.join(fine)} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", help="folder with letter16.npz")
    options = parser.parse_args()
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    warnings.simplefilter("ignore")
    lines = [
        "| data | rows | k | without privacy (printed) | DPKMeans | PE-means | projected "
        f"| best other | ours over the best of theirs | ok of {options.seeds} |",
        "|---" * 10 + "|",
    ]
    for table in tables():
        lines.append(line(*table, options.seeds))
        print(lines[-1], flush=True)
    intro = INTRO.format(
        made=f"python benchmarks/pe_table.py --seeds {options.seeds}",
        versions=_run.versions("numpy"),
        seeds=options.seeds,
    )
    PAGE.write_text(intro + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
