"""Passes over parts for tests of engines, and a table that is cut in several ways."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from sklearn_dp._aggregate.shared.table import Table, opened
from sklearn_dp._privacy._units import UnitFacts

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "doc" / "many_machines.md"
SECRET = 7319.4825
ROWS = np.random.default_rng(0).normal(size=(200, 3))
CUTS = (0, 10, 10, 90)  # the first part is empty, and so is the third


def pieces(rows=ROWS):
    return np.split(rows, CUTS)


def sums(part, factor):
    """Sums of rows, and a value of each row for the passes after it."""
    steps = np.rint(part.source.read().astype(float) * 2**20).astype(np.int64)
    return part.having(first=steps[:, 0]), (factor * steps.sum(axis=0), len(steps))


def again(part):
    return part.having(first=part["first"] + 1), (part["first"].sum(),)


def wide(part):
    return part, (np.full(2, 2**62), 2**62)


def signs(part):
    return (part["first"] > 0).astype(np.int32)


def quoting(part):
    raise KeyError(f"{SECRET} in part {part.source}")


def table_of(found):
    table = Table(found.engine, found.n_features, found.dtype, UnitFacts())
    table.update(opened)
    return table


def passes(found):
    """What some passes give, as a list; and the lazy rows after them."""
    table = table_of(found)
    totals = [*table.sums(sums, 3), *table.sums(again), *table.sums(again)]
    return [np.asarray(total).tolist() for total in totals], table.rows(signs)


EXPECTED = [
    (3 * np.rint(ROWS * 2**20).astype(np.int64).sum(axis=0)).tolist(),
    len(ROWS),
    int(np.rint(ROWS[:, 0] * 2**20).sum()),
    int(np.rint(ROWS[:, 0] * 2**20).sum()) + len(ROWS),
]
LABELS = (np.rint(ROWS[:, 0] * 2**20) > 0).astype(np.int32)


def quotes_nothing(error):
    """An error without values of the data, and without others that hang on to it."""
    return "7319" not in str(error) and error.__cause__ is None and error.__context__ is None


def run_block(page, word, folder):
    """Run the block of a page that imports a library, in a folder with a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    rows = np.concatenate([ROWS[:, :2] - 5, ROWS[:, :2] + 5])
    table = pyarrow.table({"x": rows[:, 0], "y": rows[:, 1]})
    pyarrow.parquet.write_table(table, folder / "visits.parquet", row_group_size=100)
    blocks = re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if re.search(rf"^(import|from) {word}\b", block, re.M))
    names = {}
    with contextlib.chdir(folder):
        exec(compile(block, str(page), "exec"), names)
        assert names["model"].cluster_centers_.shape == (2, 2)
    return names


def run_example(name, *options):
    """What an example says, as a program of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), "--quick", *map(str, options)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
