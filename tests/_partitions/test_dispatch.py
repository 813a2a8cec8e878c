"""From the type of a table to who holds its parts."""

import ast
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from partition_tools import ROWS, SECRET, quotes_nothing

from sklearn_dp._partitions import engine_of, engine_of_parts

IN_MEMORY = {
    "array": ROWS,
    "list of rows": ROWS.tolist(),
    "list of arrays": list(ROWS),
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "none": None,
    "a number": 3.0,
    "generator": (row for row in ROWS),
    "a class": np.ndarray,
    "list of classes": [np.ndarray],
    "nothing": [],
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_tables_in_memory_are_no_parts(name):
    assert engine_of(IN_MEMORY[name]) is None


def stranger(module, name="Stranger", *bases):
    """A type of another library."""
    return type(name, bases, {"__module__": module})


@pytest.mark.parametrize("module", ["dask.bag.core", "pyspark.mllib.linalg", "ray.util.actor_pool"])
def test_other_collections_are_refused_with_those_that_are_taken(module):
    words = "^X must not be of type Stranger.*dask.array.Array"
    with pytest.raises(TypeError, match=words) as caught:
        engine_of(stranger(module)())
    assert quotes_nothing(caught.value)


@pytest.mark.parametrize("parts", [ROWS, 3, None, pd.DataFrame(ROWS), SECRET])
def test_what_is_no_iterable_of_parts(parts):
    with pytest.raises(TypeError, match="parts must be an iterable") as caught:
        engine_of_parts(parts)
    assert quotes_nothing(caught.value)


ROOM = "sklearn_dp._partitions"


def test_no_library_is_imported_that_is_not_there_already():
    code = (
        "import sys, numpy as np\n"
        "from sklearn_dp import DPKMeans\n"
        "DPKMeans(2, bounds=9.0).fit(np.ones((9, 2)))\n"
        "print([n for n in sys.modules if n.startswith('sklearn_dp._partitions._')])\n"
        "from sklearn_dp._partitions import engine_of\n"
        "engine_of(np.ones((2, 2))), engine_of([[1.0]]), engine_of([np.ones((2, 2))]).engine\n"
        "print([n for n in ('dask', 'distributed', 'pyspark', 'ray') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    of_memory, of_parts = done.stdout.splitlines()
    assert of_parts == "[]", done.stderr
    assert set(ast.literal_eval(of_memory)) == {f"{ROOM}._dispatch", f"{ROOM}._rowwise"}
