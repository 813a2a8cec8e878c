"""CPU time of fits and of what comes after them, beside what scikit-learn takes for the same.

    python benchmarks/speed.py                 # all rows of the table: about two minutes
    python benchmarks/speed.py --only predict  # those whose names hold the word
    python benchmarks/speed.py --before FOLDER # beside another release, and write the page

One thread, and rows of both side by side in one process: a busy machine changes seconds more than
ratios. Each figure is the median of several runs. Private fits have fixed seeds. Rows with "wall"
are seconds on the clock, and need two free cores. Rows with "bytes" are no times, but the peak of
what a fit allocates (tracemalloc), beside the rows themselves, by their number. FOLDER holds the
`sklearn_dp` of another release, which is measured after this one; "before" is its ratio. Writes
doc/benchmarks/speed.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
from scipy.sparse import random_array
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.mixture import GaussianMixture

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, FriendlyCovariance

PAGE = _run.PAGES / "speed.md"
PRIVATE = {"epsilon": 1.0, "bounds": 10.0, "random_state": 0}


def clusters(n, d, k, dtype=np.float64):
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.normal(size=(n, d))
    return (rng.normal(size=(k, d))[rng.integers(k, size=n)] + noise).astype(dtype)


def cpu(task, least=0.3, most=9, clock=time.process_time):
    """Median CPU seconds of a few runs; the first one, which loads and makes things, left out."""
    task()
    times = []
    while len(times) < 3 or (sum(times) < least and len(times) < most):
        start = clock()
        task()
        times.append(clock() - start)
    return statistics.median(times)


def after_fits():
    """(name, ours, theirs) of methods of clusterers that have the same centers."""
    for n, d, k in ((10**5, 10, 10), (10**6, 10, 5), (10**6, 10, 10), (10**6, 10, 50)):
        for dtype in (np.float64, np.float32):
            for method in ("predict", "score", "transform"):
                name = f"KMeans.{method}, {n:.0e} x {d}, k = {k}, {np.dtype(dtype).name}"
                yield name, lambda at=(n, d, k, dtype, method): _after(*at)


def _after(n, d, k, dtype, method):
    X = clusters(n, d, k, dtype)
    theirs = KMeans(k, n_init=1, max_iter=2, init=X[:k]).fit(X[:5000])
    ours = DPKMeans(k, **PRIVATE).fit(X[:5000])
    ours.cluster_centers_ = theirs.cluster_centers_
    return cpu(lambda: getattr(ours, method)(X)), cpu(lambda: getattr(theirs, method)(X))


def _fits(X, ours, theirs, clock=time.process_time):
    return cpu(lambda: ours.fit(X), clock=clock), cpu(lambda: theirs.fit(X), clock=clock)


def _two_jobs(n):
    """Seconds on the clock with two jobs, beside those with one."""
    two, one = (DPKMeans(10, n_jobs=n_jobs, **PRIVATE) for n_jobs in (2, None))
    return _fits(clusters(n, 10, 10), two, one, time.perf_counter)


def _bytes(n, d, dtype):
    """The peak of memory of both fits, for each row."""
    X = clusters(n, d, 10, dtype)
    peaks = []
    for model in (DPKMeans(10, **PRIVATE), KMeans(10, random_state=0)):
        tracemalloc.start()
        model.fit(X)
        peaks.append(tracemalloc.get_traced_memory()[1] / n)
        tracemalloc.stop()
    return peaks


def memory():
    """(name, measure) of fits of several sizes."""
    for n, d in ((10**5, 10), (10**6, 10), (10**6, 50)):
        for dtype in (np.float64, np.float32):
            name = f"DPKMeans, bytes a row, {n:.0e} x {d}, {np.dtype(dtype).name}"
            yield name, lambda at=(n, d, dtype): _bytes(*at)


def _sparse():
    return random_array((50_000, 1000), density=0.01, format="csr", rng=np.random.default_rng(0))


def _import():
    """Loading everything, beside the modules of scikit-learn that have the same estimators."""
    code = "import time; start = time.process_time(); {}; print(time.process_time() - start)"
    theirs = ", ".join(f"sklearn.{name}" for name in ("cluster", "mixture", "decomposition"))
    ours = f"import {theirs}; start = time.process_time(); from sklearn_dp import DPKMeans"
    return [
        statistics.median(
            float(subprocess.check_output([sys.executable, "-c", code.format(line)]))
            for _ in range(5)
        )
        for line in (ours, f"import {theirs}")
    ]


ROWS = {
    **dict(after_fits()),
    "DPKMeans, 1e5 x 10, k = 10": lambda: _fits(
        clusters(10**5, 10, 10), DPKMeans(10, **PRIVATE), KMeans(10, random_state=0)
    ),
    "DPKMeans, n_jobs=2 over n_jobs=None, wall, 1e5 x 10": lambda: _two_jobs(10**5),
    "DPKMeans, n_jobs=2 over n_jobs=None, wall, 1e6 x 10": lambda: _two_jobs(10**6),
    "DPKMeans, 1e6 x 50, k = 10": lambda: _fits(
        clusters(10**6, 50, 10), DPKMeans(10, **PRIVATE), KMeans(10, random_state=0)
    ),
    "DPKMeans, 1e5 x 10, k = 500": lambda: _fits(
        clusters(10**5, 10, 500), DPKMeans(500, **PRIVATE), KMeans(500, random_state=0)
    ),
    "DPPCA, 1e6 x 10": lambda: _fits(clusters(10**6, 10, 10), DPPCA(3, **PRIVATE), PCA(3)),
    "DPPCA, 5e4 x 768": lambda: _fits(clusters(50_000, 768, 10), DPPCA(10, **PRIVATE), PCA(10)),
    "FriendlyCovariance, 1e6 x 10": lambda: _fits(
        clusters(10**6, 10, 10), FriendlyCovariance(**PRIVATE), EmpiricalCovariance()
    ),
    "DPGaussianMixture, 1e5 x 10, k = 5": lambda: _fits(
        clusters(10**5, 10, 5), DPGaussianMixture(5, **PRIVATE), GaussianMixture(5, random_state=0)
    ),
    "DPKMeans, sparse 5e4 x 1e3, 1%": lambda: _fits(
        _sparse(), DPKMeans(5, **PRIVATE), KMeans(5, random_state=0)
    ),
    "DPPCA, sparse 5e4 x 1e3, 1%": lambda: _fits(
        _sparse(), DPPCA(5, **PRIVATE), TruncatedSVD(5, random_state=0)
    ),
    **dict(memory()),
    "import, over that of scikit-learn's modules": _import,
}


def ratios_of(folder, word):
    """The ratio of each row with another release, by name."""
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    command = [sys.executable, __file__, "--only", word]
    table = subprocess.check_output(command, env=environment, text=True).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {name: ratio for name, *_, ratio in cells}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose names hold it")
    parser.add_argument("--before", metavar="FOLDER", help="of another release")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["| CPU of | s | scikit-learn | ratio |", "|---|--:|--:|--:|"]
    print("\n".join(lines))
    for name, measure in ROWS.items():
        if options.only in name:
            ours, theirs = measure()
            lines.append(f"| {name} | {ours:.4f} | {theirs:.4f} | {ours / theirs:.2f} |")
            print(lines[-1], flush=True)
    if options.before:
        before = ratios_of(options.before, options.only)
        last = [
            " before |",
            "--:|",
            *(f" {before.get(n, '')} |" for n in ROWS if options.only in n),
        ]
        table = [f"{line}{more}" for line, more in zip(lines, last, strict=True)]
        page = ["# Speed beside scikit-learn", f"```text\n{__doc__.strip()}\n```", "\n".join(table)]
        PAGE.write_text("\n\n".join(page) + "\n")


if __name__ == "__main__":
    main()
