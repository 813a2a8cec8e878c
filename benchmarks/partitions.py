"""Private k-means on tables in parts: identical results on every engine, and what they cost.

    pip install 'sklearn-dp[bench-partitions]'
    python benchmarks/partitions.py [--rows 3e6] [--only identity --only killed --only large]

"identity": a fit in memory beside fits in 7 uneven parts, some of them empty: a list, Dask (two
worker processes), Ray (two processes) and Spark (two threads of a local session). "passes" are
passes over the rows; "down" and "up" are bytes to and from each part in all of them. "killed":
SIGKILL of a Dask worker in the middle of a fit. "large": a Parquet file of float32, 20 columns and
20 clusters, read by two Dask workers of 1 GB each, beside KMeans of dask-ml on the same cluster and
KMeans of Spark's MLlib in a local session of two threads. "cost" is the sum of squared distances
over the best of the run; "CPU" are seconds of all processes of a fit, with what workers import on
the way; "peak" is the largest resident memory of the driver, and of one worker. Writes
doc/benchmarks/partitions.md.
"""

import argparse
import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings

import _run  # first: one thread

os.environ.setdefault("RAY_worker_niceness", "0")  # as all the others

import numpy as np  # noqa: E402

from sklearn_dp import DPKMeans  # noqa: E402
from sklearn_dp._rows.table import Table  # noqa: E402

OUTPUT = _run.PAGES / "partitions.md"
WORKERS, K, D = 2, 20, 20
CUTS = (0, 10, 10, 5_000, 5_001, 40_000)  # of 50,000 rows: some parts are empty
NAMES = [f"x{i}" for i in range(D)]


def rows_of(number, n_rows):
    """Rows of 20 clusters, the same for the same number."""
    centers = np.random.default_rng(0).uniform(-1, 1, (K, D))
    rng = np.random.default_rng([1, number])
    noise = rng.standard_normal((n_rows, D), dtype=np.float32)
    return (centers[rng.integers(K, size=n_rows)] + 0.1 * noise).astype(np.float32)


def model(**options):
    return DPKMeans(K, epsilon=1.0, random_state=0, **options)


def write(path, n_rows, step=500_000):
    """A Parquet file in row groups of `step` rows; one of them is in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for number, start in enumerate(range(0, n_rows, step)):
            rows = rows_of(number, min(step, n_rows - start))
            writer.write_table(pa.table(list(rows.T), schema=schema), row_group_size=step)


# -- engines ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def dask(**options):
    from dask.distributed import Client

    with Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None,
                silence_logs=50, **options) as client:  # fmt: skip
        client.wait_for_workers(WORKERS)
        yield client


@contextlib.contextmanager
def spark(memory="2g"):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers are of this environment
    session = (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", memory)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def ray():
    import ray as library

    library.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield library
    finally:
        library.shutdown()


# -- what a fit takes ------------------------------------------------------------------------------


def processes():
    import psutil

    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def cpu():
    """CPU seconds of this process and of all that descend from it."""
    import psutil

    total = 0.0
    for process in processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


class Watch:
    """CPU of a block, and the largest memory of the driver and of any process below it."""

    def __enter__(self):
        self.driver = self.worker = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        self.cpu = cpu()
        return self

    def __exit__(self, *error):
        self.cpu = cpu() - self.cpu
        self._ends.set()
        self._thread.join()

    def _look(self):
        import psutil

        while not self._ends.wait(0.2):
            with contextlib.suppress(psutil.NoSuchProcess):
                sizes = [process.memory_info().rss / 1e9 for process in processes()]
                self.driver = max(self.driver, sizes[0])
                self.worker = max(self.worker, *sizes[1:], 0.0)


@contextlib.contextmanager
def traffic():
    """Counts passes, and bytes that go to each part and come from it."""
    counts = {"passes": 0, "down": 0, "up": 0}
    sums = Table.sums

    def counted(table, function, *broadcast):
        steps = (*table._waiting, (function, broadcast))
        totals = sums(table, function, *broadcast)
        counts["passes"] += 1
        counts["down"] += len(pickle.dumps(steps))
        counts["up"] += len(pickle.dumps(totals))
        return totals

    Table.sums = counted
    try:
        yield counts
    finally:
        Table.sums = sums


def released(fitted):
    """The bits of all that a fit releases."""
    return {name: pickle.dumps(value) for name, value in fitted.__getstate__().items()}


# -- the three parts -------------------------------------------------------------------------------


def identity():
    """Lines of a table: a fit on each engine beside that in memory."""
    rows = rows_of(0, 50_000)
    parts = np.split(rows, CUTS)
    with Watch() as watch:
        expected = released(model().fit(rows))
    yield f"| in memory | 1 | | | | {watch.cpu:.1f} | |"

    def line(name, X, n_parts):
        with traffic() as seen, Watch() as watch:
            fitted = model().fit(X)
        bits, expected_bits = released(fitted), expected
        names = set(bits) & set(expected_bits) - {"feature_names_in_"}
        same = all(bits[one] == expected_bits[one] for one in names)
        return (
            f"| {name} | {n_parts} | {seen['passes']} | {seen['down'] / 1e3:.0f} | "
            f"{seen['up'] / 1e3:.0f} | {watch.cpu:.1f} | {'yes' if same else 'NO'} |"
        )

    yield line("list of arrays", parts, len(parts))
    with dask() as client:
        from dask import delayed

        yield line("Dask, delayed", [delayed(np.array)(part) for part in parts], len(parts))
        del client
    with ray() as library:
        yield line("Ray, references", [library.put(part) for part in parts], len(parts))
    with spark() as session:
        rdd = session.sparkContext.parallelize(parts, len(parts))
        yield line("Spark, RDD of arrays", rdd, len(parts))


def killed():
    """Sentences about a fit one of whose workers dies."""
    from dask import delayed

    parts = np.split(rows_of(0, 400_000), 16)
    expected = released(model().fit(np.concatenate(parts)))
    with dask() as client:
        X = [delayed(np.array)(part) for part in parts]
        model().fit(X)
        start = time.perf_counter()
        model().fit(X)
        wall = time.perf_counter() - start
        before = set(client.run(os.getpid).values())
        timer = threading.Timer(wall / 2, os.kill, (min(before), signal.SIGKILL))
        timer.start()
        start = time.perf_counter()
        bits = released(model().fit(X))
        longer = time.perf_counter() - start
        timer.join()
        client.wait_for_workers(WORKERS)
        # The scheduler may not know yet that the dead one is gone.
        after = set(client.run(os.getpid, on_error="ignore").values())
    yield (
        f"A fit in 16 parts took {wall:.1f} s of wall time on two workers. In another one, after "
        f"{wall / 2:.1f} s, a worker got SIGKILL; the fit took {longer:.1f} s. Processes that are "
        f"no longer there: {len(before - after)}. The same bits as in memory: "
        f"{'yes' if bits == expected else 'NO'}."
    )


def costs(path, answers):
    """Sum of squared distances of all rows to the nearest center, for each answer."""
    import pyarrow.parquet as pq
    from sklearn.metrics import pairwise_distances_argmin_min

    totals = dict.fromkeys(answers, 0.0)
    for batch in pq.ParquetFile(path).iter_batches(500_000):
        rows = np.column_stack([column.to_numpy() for column in batch.columns])
        for name, centers in answers.items():
            nearest = pairwise_distances_argmin_min(rows, centers.astype(np.float32))[1]
            totals[name] += float(np.square(nearest, dtype=np.float64).sum())
    return totals


def large(n_rows):
    """Lines of a table: fits of a file that is larger than the memory of the workers."""
    folder = tempfile.mkdtemp(prefix="partitions-")
    path = os.path.join(folder, "rows.parquet")
    answers, figures = {}, {}

    def fitted(name, fit):
        with Watch() as watch:
            start = time.perf_counter()
            answers[name] = np.asarray(fit())
            figures[name] = (watch, time.perf_counter() - start)
        # The others may take hours.
        print(name, f"CPU {watch.cpu:.0f} s, wall {figures[name][1]:.0f} s,", flush=True, end=" ")
        print(f"peaks: driver {watch.driver:.2f}, worker {watch.worker:.2f} GB", flush=True)

    try:
        write(path, n_rows)
        size = os.path.getsize(path) / 1e9
        with dask(memory_limit="1GB"):
            import dask.dataframe as dd

            X = dd.read_parquet(path, split_row_groups=True)
            n_parts = X.npartitions
            fitted("DPKMeans, epsilon = 1, on Dask", lambda: model().fit(X).cluster_centers_)
            from dask_ml.cluster import KMeans as DaskKMeans

            array = X.to_dask_array(lengths=True)
            rival = DaskKMeans(K, random_state=0)
            fitted("KMeans of dask-ml", lambda: rival.fit(array).cluster_centers_)
        with spark() as session:
            from pyspark.ml.clustering import KMeans as SparkKMeans
            from pyspark.ml.feature import VectorAssembler

            frame = session.read.parquet(path)
            vectors = VectorAssembler(inputCols=NAMES, outputCol="features").transform(frame)
            rival = SparkKMeans(k=K, seed=0)
            fitted("KMeans of Spark's MLlib", lambda: rival.fit(vectors).clusterCenters())
        totals = costs(path, answers)
    finally:
        shutil.rmtree(folder)
    yield (
        f"{n_rows:.0e} rows of {D} columns: {4 * D * n_rows / 1e9:.1f} GB in memory, {size:.1f} GB "
        f"on disk, in {n_parts} parts. The {WORKERS} workers of Dask are limited to 1 GB each."
    )
    yield ""
    yield "| | cost | CPU s | wall s | peak driver GB | peak worker GB |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, (watch, wall) in figures.items():
        cost = totals[name] / min(totals.values())
        yield (
            f"| {name} | {cost:.4f} | {watch.cpu:.0f} | {wall:.0f} | {watch.driver:.2f} | "
            f"{watch.worker:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=3e6, help="of the large table")
    parser.add_argument("--only", choices=["identity", "killed", "large"], action="append")
    options = parser.parse_args()
    needed = ("psutil", "pyarrow", "dask_ml", "distributed", "pyspark", "ray")
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        print("Not installed:", *missing)
        return
    warnings.simplefilter("ignore")
    heads = {
        "identity": [
            "## The same bits",
            "",
            "| input | parts | passes | down, kB | up, kB | CPU s | the same bits |",
            "|---|--:|--:|--:|--:|--:|---|",
        ],
        "killed": ["## A worker is killed", ""],
        "large": ["## A table and the memory of the workers", ""],
    }
    parts = {"identity": identity, "killed": killed, "large": lambda: large(int(options.rows))}
    for name in options.only or parts:
        lines = list(heads[name])
        for line in parts[name]():
            print(line, flush=True)
            lines.append(line)
            sections = stored() | {lines[0]: "\n".join(lines)}
            page = [f"# Tables in parts\n\n```text\n{__doc__.strip()}\n```"]
            page += [sections[head[0]] for head in heads.values() if head[0] in sections]
            OUTPUT.write_text("\n\n".join(page) + "\n", encoding="utf-8")


def stored():
    """The sections of the page that is there, by their headings."""
    if not OUTPUT.exists():
        return {}
    _, *found = OUTPUT.read_text(encoding="utf-8").strip().split("\n\n## ")
    return {f"## {text.splitlines()[0]}": f"## {text}" for text in found}


if __name__ == "__main__":
    main()
