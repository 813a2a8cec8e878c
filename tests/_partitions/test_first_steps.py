"""The first lines that a user types, each in a process of its own: nothing is imported before."""

import os
import random
import re
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from partition_tools import PAGE, ROOT, ROWS

pytestmark = pytest.mark.filterwarnings("ignore")

DATA = "X = numpy.random.default_rng(0).normal(size=(500, 2))"
LINES = {
    "array": "import dask.array as da; X = da.from_array(X)",
    "frame": "import dask.dataframe as dd; X = dd.from_array(X, 100)",
    "delayed": "import dask; X = [dask.delayed(X[:100]), dask.delayed(X[100:])]",
}
FIT = """
from sklearn_dp import DPKMeans
model = DPKMeans(3, bounds=5.0).fit(X)
assert model.labels_.compute().shape == (500,)
assert model.cluster_centers_.shape == (3, 2)
"""
# What a program may have imported beforehand, in any order.
PACKAGES = (
    "dask", "dask.array", "dask.config", "dask.dataframe", "distributed", "joblib", "pandas",
    "polars", "pyarrow", "sklearn.cluster", "sklearn_dp", "sklearn_dp.audit",
)  # fmt: skip


def run(source, folder=None):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.quick("0")
@pytest.mark.parametrize("seed", range(12))
def test_packages_may_be_imported_in_any_order(seed):
    """Some of them, or none; all collections, and what was set in Dask is there after the fits."""
    draw = random.Random(seed)
    packages = draw.sample(PACKAGES, draw.randrange(len(PACKAGES)))
    source = ["import numpy", *(f"import {package}" for package in packages)]
    for name in draw.sample(sorted(LINES), len(LINES)):
        source += [DATA, LINES[name], FIT]
    source += [
        "import dask, distributed",
        "assert dask.config.get('distributed.admin.large-graph-warning-threshold') == '10MB'",
        "assert dask.config.get('distributed.comm.retry.count') == 0",
    ]
    run("\n".join(source))


def blocks():
    found = re.findall(r"^```py\w*\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return {
        re.search(r"dask|pyspark|ray|numpy", block)[0]: block for block in found if "fit(" in block
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "dask", "pyspark", "ray"])
def test_each_first_step_of_the_page(name, tmp_path):
    if name in ("pyspark", "ray"):
        pytest.importorskip(name, reason=f"needs the extra {name.removeprefix('py')}")
    table = pyarrow.table({"x": ROWS[:, 0], "y": ROWS[:, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "visits.parquet", row_group_size=100)
    run(f"{blocks()[name]}\nassert model.cluster_centers_.shape == (2, 2)", tmp_path)
