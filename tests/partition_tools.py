"""Passes over parts for tests of engines, and a table that is cut in several ways."""

import numpy as np

from sklearn_dp._aggregate.shared.table import Table, opened
from sklearn_dp._privacy._units import UnitFacts

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
