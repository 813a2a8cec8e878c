"""
A data frame of Spark
=====================

This example did not run when this site was built, because it needs Spark and Java. To run it, in
a terminal::

    pip install "sklearn-dp[spark]"
    python examples/on_spark.py [--quick]

Starts a session of Spark on this computer, which needs Java, fits private k-means on a data frame,
counts the rows of each cluster where they are, and stops the session.
"""

# sphinx_gallery_thumbnail_path = 'images/on_dask.png'
import argparse
import os
import sys

import numpy as np

from sklearn_dp import DPKMeans


def session():
    """A session of two threads, without pages on the network."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers are of this environment
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def rows(spark, n_rows):
    """Two clusters of rows, made by Spark in four partitions."""
    made = spark.range(n_rows, numPartitions=4)
    return made.selectExpr("randn(1) + if(id % 4 = 0, 8, 0) east", "randn(2) north")


def counts(labels):
    """Rows of each cluster in a partition: only these come to the driver."""
    return np.bincount(labels, minlength=2)


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less data")
    n_rows = 20_000 if parser.parse_args(argv).quick else 1_000_000
    spark = session()
    try:
        X = rows(spark, n_rows)
        model = DPKMeans(2, epsilon=1.0, bounds=20.0).fit(X)
        found = sum(model.predict(X).map(counts).collect())
    finally:
        spark.stop()
    print(model.privacy_report_)
    print(f"\nReleased centers: {model.cluster_centers_.round(2).tolist()}")
    print(f"Released weights: {model.cluster_weights_.round().tolist()}")
    print(f"Rows nearest to each, which are not private: {found.tolist()}")


if __name__ == "__main__":
    main()
