"""A table that is made on the fly comes as an Arrow stream: how much memory a fit takes.

    python benchmarks/streams.py [--gigabytes 1]

fits `FriendlyMean` and `DPKMeans` to streams of a quarter of that size and of that size (float64,
10 columns, bounds known), which exist nowhere as a whole. It prints the time and the largest memory
that is the own of the process (rows that were kept in a temporary file are not).
"""

import argparse
import re
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

from sklearn_dp import DPKMeans, FriendlyMean

WIDTH, BATCH = 10, 250_000
NAMES = [f"x{i}" for i in range(WIDTH)]


class Made:
    """So many rows around five points, made batch by batch whenever somebody reads the stream."""

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def batches(self):
        for start in range(0, self.n_rows, BATCH):
            n, rng = min(BATCH, self.n_rows - start), np.random.default_rng(start)
            X = rng.normal(size=(n, WIDTH)) + 4.0 * (np.arange(n) % 5)[:, None]
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in X.T], NAMES)

    def __arrow_c_stream__(self, requested_schema=None):
        schema = pa.schema([(name, pa.float64()) for name in NAMES])
        reader = pa.RecordBatchReader.from_batches(schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)


def own_memory():
    """Megabytes of this process that are in no file (Linux)."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


class Peak(threading.Thread):
    """The largest memory while a block runs, looked up fifty times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.done = 0.0, threading.Event()

    def run(self):
        while not self.done.wait(0.02):
            self.most = max(self.most, own_memory())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for model in (FriendlyMean(bounds=40.0), DPKMeans(5, bounds=40.0)):
        for size in (options.gigabytes / 4, options.gigabytes):
            n_rows = int(size * 1e9) // (8 * WIDTH)
            began, before = time.perf_counter(), own_memory()
            with Peak() as peak:
                model.fit(Made(n_rows))
            print(
                f"{type(model).__name__:14s} {size:5.2f} GB, {n_rows:,} rows: "
                f"{time.perf_counter() - began:.0f} s, at most {peak.most:.0f} MB "
                f"({before:.0f} MB before)",
                flush=True,
            )


if __name__ == "__main__":
    main()
