"""Private k-means on joblib's backends: identical results, and what they cost.

    pip install 'sklearn-dp[distributed]'
    python benchmarks/backends.py

DPKTupleKMeans, rho = 2, on 100,000 rows in ten dimensions, ten clusters; two workers of one thread
each on the same machine. Seconds of the second fit, when the workers are up: "wall", and "CPU" of
the process and all its descendants (less the workers of ray, which end with the fit). The stored
figures are of a busy machine with two processors, so "wall" is several times "CPU". Blocks this
small are done before they have reached another process. Writes doc/benchmarks/backends.md.
"""

import argparse
import contextlib
import importlib.util
import os
import time
import warnings

import _run  # first: one thread

os.environ.setdefault("RAY_worker_niceness", "0")  # as all the others

import numpy as np  # noqa: E402
from joblib import parallel_backend  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402

from sklearn_dp import DPKTupleKMeans  # noqa: E402

OUTPUT = _run.PAGES / "backends.md"
WORKERS = 2
INNER = {"default": None, "KMeans(n_init=3)": KMeans(10, n_init=3)}


@contextlib.contextmanager
def local(name):
    with parallel_backend(name, n_jobs=WORKERS):
        yield


@contextlib.contextmanager
def dask():
    from dask.distributed import Client

    with Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as client:
        client.wait_for_workers(WORKERS)
        with parallel_backend("dask"):
            yield


@contextlib.contextmanager
def ray():
    import ray as library
    from ray.util.joblib import register_ray

    library.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        with parallel_backend("ray"):
            yield
    finally:
        library.shutdown()


BACKENDS = {
    "one process": contextlib.nullcontext,
    "threading": lambda: local("threading"),
    "loky": lambda: local("loky"),
    "dask": dask,
    "ray": ray,
}


def cpu():
    """CPU seconds of this process and of all that descend from it."""
    import psutil

    total, own = 0.0, psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def measure(start, model, X):
    with start():
        model.fit(X)
        wall, used = time.perf_counter(), cpu()
        model.fit(X)
        return time.perf_counter() - wall, cpu() - used, model.cluster_centers_


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(BACKENDS), action="append")
    options = parser.parse_args()
    missing = [name for name in ("psutil", "dask", "ray") if not importlib.util.find_spec(name)]
    if missing:
        print("Not installed:", *missing)
        return
    warnings.simplefilter("ignore")
    X, _ = make_blobs(100_000, 10, centers=10, center_box=(-1, 1), cluster_std=0.05, random_state=0)
    lines = ["| inner | backend | wall s | CPU s | the same bits |", "|---|---|--:|--:|---|"]
    known = {}
    for inner, estimator in INNER.items():
        model = DPKTupleKMeans(10, rho=2.0, bounds=4.0, inner=estimator, random_state=0)
        for name in options.only or BACKENDS:
            wall, used, centers = measure(BACKENDS[name], model, X)
            same = np.array_equal(known.setdefault(inner, centers), centers)
            lines.append(
                f"| {inner} | {name} | {wall:.2f} | {used:.2f} | {'yes' if same else 'NO'} |"
            )
            print(lines[-1], model.path_, flush=True)
    OUTPUT.write_text(
        f"# Backends\n\n```text\n{__doc__.strip()}\n```\n\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
