"""
Data larger than memory, on Dask
================================

This example did not run when this site was built, because it needs Dask. To run it, in a
terminal::

    pip install "sklearn-dp[arrow,dask,plot]"
    python examples/on_dask.py [--quick] [--output FILE.png]

Starts a cluster of two processes on this computer, writes a Parquet file, and fits private k-means
to it without ever loading it whole. It then plots a few rows with the released centers and shuts
the cluster down. The rows stay on the workers; only sums of them come back.
"""

# sphinx_gallery_thumbnail_path = 'images/on_dask.png'
import tempfile
from pathlib import Path

import numpy as np
from _common import ACCENT, MUTED, parse_arguments, print_table, save, timed

from sklearn_dp import DPKMeans

CENTERS = np.array([[-6.0, -3.0], [-4.0, 5.0], [0.0, 0.0], [4.0, 4.5], [6.0, -4.0]])


def write(path, n_parts, n_rows):
    """Write a Parquet file in row groups, one in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("east", pa.float64()), ("north", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for part in range(n_parts):
            rng = np.random.default_rng(part)
            rows = CENTERS[rng.integers(5, size=n_rows)] + rng.normal(size=(n_rows, 2))
            writer.write_table(pa.table(list(rows.T), schema=schema), row_group_size=n_rows)


def draw(sample, model, counts):
    """Plot some rows and the released centers, labeled with the released weights."""

    def fill(figure):
        axes = figure.add_subplot()
        axes.scatter(*sample.T, s=3, color=MUTED, alpha=0.4, linewidths=0)
        axes.scatter(*model.cluster_centers_.T, s=90, color=ACCENT, marker="X", zorder=3)
        pairs = zip(model.cluster_centers_, model.cluster_weights_, strict=True)
        for (east, north), weight in pairs:
            axes.annotate(f"{weight:,.0f}", (east, north), (8, 8), textcoords="offset points")
        axes.set_title(f"{counts:,} rows in parts, five released centers (epsilon = 1)")
        axes.set_xlabel("east")
        axes.set_ylabel("north")

    return fill


def fit(path, n_workers=2):
    """Fit on a local cluster; return the model and a few rows for the picture."""
    import dask.dataframe as dd
    from dask.distributed import Client

    with Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as client:
        client.wait_for_workers(n_workers)
        X = dd.read_parquet(path, split_row_groups=True)
        model, timing = timed(DPKMeans(5, epsilon=1.0, bounds=15.0).fit, X)
        lazy = model.predict(X)  # a dask.array; only its counts (not private) come here
        labels = lazy.map_blocks(np.bincount, minlength=5, dtype=np.int64).compute()
        counts = labels.reshape(-1, 5).sum(axis=0)
        sample = X.partitions[0].head(2000, npartitions=1).to_numpy()
        return model, timing, counts, sample, X.npartitions


def main(argv=None):
    options = parse_arguments(__doc__, "on_dask.png", argv)
    n_parts, n_rows = (4, 20_000) if options.quick else (16, 250_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n_parts, n_rows)
        model, timing, counts, sample, parts = fit(path)
    print(model.privacy_report_)
    print(f"\n{n_parts * n_rows:,} rows in {parts} parts on two workers: {timing.wall:.1f} s")
    rows = [
        [f"({east:.2f}, {north:.2f})", f"{weight:,.0f}", f"{count:,}"]
        for (east, north), weight, count in zip(
            model.cluster_centers_, model.cluster_weights_, counts, strict=True
        )
    ]
    print_table(["center", "released weight", "rows nearest (not private)"], rows)
    save(draw(sample, model, n_parts * n_rows), options.output, (7, 5))


if __name__ == "__main__":
    main()
