"""Passes over parts for tests of engines, and a table that is cut in several ways."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._rows.table import ArraySource, Part, Table, opened
from sklearn_dp.exceptions import PartError

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


def signs(part):
    return (part["first"] > 0).astype(np.int32)


class Thirds:
    """Every third row of a part."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, task):
        return self.rows[task::3]


def thirds(part, factor):
    return Thirds(factor * part.source.read())


def joined(task, pieces, factor):
    return task, np.concatenate(pieces)


def quoting_task(task, pieces, factor):
    raise KeyError(f"{SECRET} in task {task}")


THIRDS = [2 * np.concatenate([piece[task::3] for piece in pieces()]) for task in range(3)]


def exchanges(found):
    """Whether rows come together in tasks, in the order of the parts; errors quote nothing."""
    table = table_of(found)
    table.update(again_and_first)
    results = table.exchange(thirds, joined, 3, 2)
    with pytest.raises(PartError, match=r"^X: rows of several parts .*\(KeyError\)") as caught:
        table.exchange(thirds, quoting_task, 3, 2)
    assert quotes_nothing(caught.value)
    assert table.sums(sums, 1)[1] == len(ROWS)  # the states are what they were
    return [task for task, _ in results] == [0, 1, 2] and all(
        np.array_equal(rows, known) for (_, rows), known in zip(results, THIRDS, strict=True)
    )


def in_new_part(number, pieces, factor):
    rows = np.concatenate(pieces)
    return Part(ArraySource(rows, number), Units(len(rows)))


def quoting_part(number, pieces, factor):
    raise KeyError(f"{SECRET} in new part {number}")


def third_signs(part):
    return (part.source.read()[:, 0] > 0).astype(np.int32) + 2 * part.source.number


def shuffled(table, join=in_new_part):
    engine = table.shuffle(thirds, join, 3, 2)
    assert engine.n_parts == 3
    return Table(engine, table.n_features, table.dtype, UnitFacts())


def shuffles(found):
    """Whether rows come to new parts, in the order of the parts; gives what each row has there."""
    table = table_of(found)
    table.update(again_and_first)
    new = shuffled(table)
    total, n_rows = new.sums(sums, 1)  # a pass, whose state the next one finds
    known = np.rint(2 * ROWS * 2**20).astype(np.int64).sum(axis=0)
    assert np.array_equal(total, known) and n_rows == len(ROWS)
    assert new.sums(again)[0] == known[0]
    with pytest.raises(PartError, match=r"^X: rows of several parts .*\(KeyError\)") as caught:
        shuffled(table, quoting_part).sums(sums, 1)
    assert quotes_nothing(caught.value)
    assert table.sums(sums, 1)[1] == len(ROWS)  # the states are what they were
    return new.rows(third_signs)


THIRD_SIGNS = np.concatenate(
    [(rows[:, 0] > 0).astype(np.int32) + 2 * i for i, rows in enumerate(THIRDS)]
)


def again_and_first(part):
    return part.having(first=0), ()


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


def run_example(name, *options):
    """What an example says, as a program of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), "--quick", *map(str, options)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
