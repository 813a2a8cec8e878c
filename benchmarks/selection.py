"""Private choices: how often the number of clusters is right, and what the choice costs.

    python benchmarks/selection.py auto                 # 12 mixtures of each kind; ten minutes
    python benchmarks/selection.py auto --seeds 3 --sizes 2000 10000

Prints tables and writes doc/benchmarks/selection.md. epsilon = 1, delta = 1e-6, no public bounds,
candidates 1 to 30. Round clusters whose centers are at least 6 standard deviations apart, with
unequal weights; each seed is another mixture and another noise.
"""

import argparse
import os
import platform
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from scipy.spatial.distance import pdist  # noqa: E402

from sklearn_dp import DPKMeans  # noqa: E402
from sklearn_dp.mixture import DPGaussianMixture  # noqa: E402

OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "selection.md"
HEAD = """# Private choices

## The number of clusters

`DPKMeans("auto")` at epsilon = 1, delta = 1e-6, without public bounds, among 1 to 30 clusters. Up
to 5 features the gap statistic of the coreset chooses, above a criterion on one noisy iteration.
Round clusters at least 6 standard deviations apart, {seeds} mixtures for each line, each with
noise of its own. "within 10 %" also counts 18 to 22 for 20. Cost: on the rows, over that of
`DPKMeans(k)` with the true k; median (largest). Seconds are CPU seconds of a fit that chooses, and
of one with the true k.

`python benchmarks/selection.py auto --seeds {seeds}{sizes}` with {versions}.

"""
FEATURES = (2, 5, 20, 50)
CLUSTERS = (3, 8, 20)
SIZES = (2000, 10_000, 100_000)
LEAST = 6.0  # standard deviations between two centers


def mixture(n, d, k, seed):
    """Round clusters of unit variance; of 30 draws of centers the one that spreads them best."""
    rng = np.random.default_rng(seed)
    draws = [rng.normal(size=(k, d)) if d > 5 else rng.uniform(size=(k, d)) for _ in range(30)]
    centers = max(draws, key=lambda c: pdist(c).min() / pdist(c).mean())
    centers *= LEAST / pdist(centers).min()
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 8.0)))
    return centers[labels] + rng.normal(size=(n, d))


def overlapping(k, seed, each=150):
    """Clusters of a plane that touch: at least 3.5 of their standard deviations apart."""
    rng, centers = np.random.default_rng(seed), []
    while len(centers) < k:
        new = rng.uniform(0, 4.6 * np.sqrt(k), 2)
        if all(np.hypot(*(new - old)) > 3.5 for old in centers):
            centers.append(new)
    widths = rng.uniform(0.7, 1.1, k)
    return np.concatenate(
        [c + s * rng.normal(size=(each, 2)) for c, s in zip(centers, widths, strict=True)]
    )


def timed(model, X, **options):
    """A fit, and its CPU seconds."""
    begin = time.process_time()
    model.fit(X, **options)
    return model, time.process_time() - begin


def kmeans_line(n, d, k, n_seeds):
    """One line of the table: how often the number is right, the costs, the times."""
    found, ratios, seconds = [], [], []
    for seed in range(n_seeds):
        X = mixture(n, d, k, 10_000 + seed)
        chosen, of_chosen = timed(DPKMeans("auto"), X)
        given, of_given = timed(DPKMeans(k), X)
        found.append(chosen.n_clusters_)
        ratios.append(chosen.score(X) / given.score(X))
        seconds.append((of_chosen, of_given))
    off = np.abs(np.array(found) - k)
    times = " / ".join(f"{value:.2f}" for value in np.median(seconds, axis=0))
    return (
        f"| {n:,} | {d} | {k} | {np.sum(off == 0)} | {np.sum(off <= 0.1 * k + 1e-9)} | "
        f"{min(found)} to {max(found)} | {np.median(ratios):.3f} ({max(ratios):.3f}) | {times} |"
    )


def other_lines(n_seeds):
    """Clusters that touch, and mixtures with and without groups."""
    for k in (20, 35, 50):
        found = [
            DPKMeans((1, 30 if k < 30 else 100)).fit(overlapping(k, seed)).n_clusters_
            for seed in range(n_seeds)
        ]
        yield "`DPKMeans`, touching clusters of 150 rows, d = 2", k, found
    for d, k in ((2, 8), (5, 8), (20, 8)):
        for each in (1, 3):
            found = []
            for seed in range(n_seeds):
                X = mixture(10_000 * each, d, k, 20_000 + seed)
                groups = {} if each == 1 else {"groups": np.arange(len(X)) // each}
                found.append(DPGaussianMixture("auto").fit(X, **groups).n_components_)
            unit = "10,000 rows" if each == 1 else "10,000 groups of 3 rows"
            yield f"`DPGaussianMixture`, {unit}, d = {d}", k, found


def auto(n_seeds, sizes):
    """The lines of the page about the number of clusters, as they are measured."""
    yield "| rows | features | clusters | exact | within 10 % | chosen | cost | seconds |"
    yield "|---" * 8 + "|"
    for n in sizes:
        for d in FEATURES:
            for k in CLUSTERS:
                yield kmeans_line(n, d, k, n_seeds)
    yield ""
    yield "| data | clusters | exact | within 10 % | chosen |"
    yield "|---" * 5 + "|"
    for name, k, found in other_lines(n_seeds):
        off = np.abs(np.array(found) - k)
        shown = ", ".join(str(number) for number in sorted(found))
        yield f"| {name} | {k} | {np.sum(off == 0)} | {np.sum(off <= 0.1 * k + 1e-9)} | {shown} |"


def main():
    """Measure, print, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["auto"], help="what to measure")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows")
    parser.add_argument("--no-page", action="store_true", help="print only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    versions = (
        f"Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
    lines = []
    for line in auto(options.seeds, options.sizes):
        print(line, flush=True)
        lines.append(line)
    if not options.no_page:
        sizes = "" if options.sizes == SIZES else f" --sizes {' '.join(map(str, options.sizes))}"
        page = HEAD.format(seeds=options.seeds, sizes=sizes, versions=versions)
        OUTPUT.write_text(page + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
