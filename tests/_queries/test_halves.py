"""Halves, and one row for each unit: they belong to units, wherever the rows are."""

import numpy as np
import pytest
from grid_tools import raw_table
from mixture_tools import context_of, session_of
from test_partitions import Elsewhere, Piece

from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy import _unit_draws
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._queries.halves import in_first, in_second
from sklearn_dp._queries.samples import ByPart, numbered
from sklearn_dp._rows.table import ROWS, LocalEngine, Table
from sklearn_dp._rows.table_units import open_units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

N = 60
X = np.arange(1.0, N + 1)[:, None] * [1.0, 0.0]
GROUPS = np.arange(N) // 3


def session():
    return session_of(PlanEntry("x", "gaussian", 1.0))


def table_of(places, groups=None, engine=LocalEngine):
    pieces = [
        Piece(i, X[place], None if groups is None else groups[place], None)
        for i, place in enumerate(places)
    ]
    table = Table(engine(pieces), 2, X.dtype, UnitFacts())
    open_units(table, grouped=groups is not None)
    return table


def all_rows(rows):
    """The rows of a handle, in lengths, and what each weighs."""
    found = raw_table(rows).sums(_rows)[0].in_order()
    return np.concatenate([x for x, _ in found]) * rows.unit, np.concatenate([w for _, w in found])


def _rows(part):
    x = [np.empty((0, 2)), *(x for _, x in part[ROWS].chunks())]
    weights = part.units.weights
    weights = np.ones(part.units.n_rows) if weights is None else weights
    return part, (ByPart({part.source.number: (np.concatenate(x), weights)}),)


def test_each_unit_is_in_one_half():
    draws = _unit_draws.unit_draws(session(), N)
    assert np.array_equal(in_first(draws), ~in_second(draws)) and 15 < in_second(draws).sum() < 45


CUTS = ([], [7, 7, 20, 41], [1, 2])


@pytest.mark.parametrize("groups", [GROUPS, np.arange(N) % 20])
def test_one_row_stands_for_each_group(groups):
    found = []
    for cut in CUTS:
        table = table_of(np.split(np.arange(N), cut), groups, Elsewhere)
        rows, weights = all_rows(context_of(session(), table, 100.0).points())
        assert (weights == 1).all()
        found.append(sorted(np.rint(rows[:, 0]).astype(int).tolist()))
    places = np.array(found[0]) - 1
    assert sorted(groups[places].tolist()) == list(range(20)) and len(set(places % 3)) > 1
    assert found == [found[0]] * 3
    memory = context_of(session(), Table.in_memory(X, Units(N, groups), 2), 100.0)
    points = memory.points(numbered(memory.rows.table))
    assert sorted(np.rint(all_rows(points)[0][:, 0]).astype(int).tolist()) == found[0]
    # The last unit gone, the others are as they were: the bits are theirs.
    fewer = groups != groups[-1]
    table = table_of([np.flatnonzero(fewer)], groups)
    rows, _ = all_rows(context_of(session(), table, 100.0).points())
    left = [place + 1 for place in places if fewer[place]]
    assert sorted(np.rint(rows[:, 0]).astype(int).tolist()) == left
