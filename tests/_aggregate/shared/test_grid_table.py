"""Integer rows in parts: the same as in one array, about whatever origin."""

import numpy as np
import pytest
from grid_tools import rows_in_memory

from sklearn_dp._aggregate.shared.grid_table import ROWS, GridTable
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._aggregate.shared.table import ArraySource, LocalEngine, Table, opened
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._units import UnitFacts, Units

X = np.random.default_rng(0).normal(size=(40, 3))
ORIGIN = np.array([1000.0, -2000.0, 3.0])


def served(part):
    return np.concatenate([np.empty((0, 3)), *(x for _, x in part[ROWS].chunks())])


def longest(part):
    rows = part[ROWS]
    return part, (rows.n_rows, int(np.sum(rows.squares)))


@pytest.mark.parametrize(
    "within", [None, Domain.from_bounds(1.5, 3), Domain.from_bounds((0, 1), 3)]
)
@pytest.mark.parametrize("cuts", [[], [7], [0, 7, 7, 39]])
def test_rows_in_parts_are_those_of_one_array(cuts, within):
    domain = Domain.from_bounds((-2.0, 1.0), 3)
    moved = X if within is None else within.move_rows(X)
    known = Rows.quantize(moved, domain).about(ORIGIN)
    sources = [ArraySource(part) for part in np.split(X, cuts)]
    table = Table(LocalEngine(sources), 3, np.float64, UnitFacts())
    table.update(opened)
    rows = GridTable.quantize(table, domain, within)
    rows.recenter(ORIGIN)
    assert (rows.ball, rows.limit, rows.unit) == (known.ball, known.limit, known.unit)
    assert rows.sums(longest) == (40, int(known.squares.sum()))
    assert np.array_equal(table.rows(served), np.concatenate([x for _, x in known.chunks()]))


def test_integer_rows_in_memory_are_a_table_of_one_part():
    rows, units = Rows.of(np.trunc(9 * X), 100.0, 0.5), Units(40)
    rows.recenter(np.array([1.0, 2.0, 3.0]))
    table = GridTable.of(rows, units)
    assert rows_in_memory(table) is rows and table.units == units.facts
    assert (table.limit, table.unit, table.origin.tolist()) == (rows.limit, 0.5, [1, 2, 3])
