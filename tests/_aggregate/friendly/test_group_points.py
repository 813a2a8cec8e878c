"""Points of groups that are spread over parts: those in memory, bit for bit, with their numbers."""

import numpy as np
import pytest
from grid_tools import parts_in_memory
from test_partitions import Elsewhere, Piece

from sklearn_dp._aggregate.friendly import group_points as module
from sklearn_dp._aggregate.friendly.group_points import group_points
from sklearn_dp._aggregate.friendly.points import unit_points
from sklearn_dp._aggregate.shared.table import LocalEngine, Part, Table
from sklearn_dp._aggregate.shared.table_units import open_units
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp.exceptions import PartError

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) * 10.0 ** RNG.integers(-5, 9, size=(N, 1))
GROUPS = RNG.integers(0, 90, N)
WEIGHTS = np.where(RNG.random(N) < 0.4, 0.0, RNG.uniform(0, 2, N))
CUTS = ([], [0, 1, 1, 300], range(20, N, 20))


def table_of(cuts, weights=None, engine=LocalEngine, groups=GROUPS, dtype=float):
    pieces = [
        Piece(
            number,
            X[rows].astype(dtype),
            None if groups is None else groups[rows],
            None if weights is None else weights[rows],
        )
        for number, rows in enumerate(np.split(np.arange(N), cuts))
    ]
    table = Table(engine(pieces), 3, np.dtype(dtype), UnitFacts())
    open_units(table, grouped=groups is not None, largest=None if weights is None else 1.5)
    return table


def points_of(part):
    assert len(part.source.read()) == part.units.n_rows and part.units.index is None
    return part.source.read()


def weights_of(part):
    weights = part.units.weights
    return np.ones(part.units.n_rows, dtype=np.int64) if weights is None else weights


def known_points(weights, dtype=float):
    """The same in memory, and their weights."""
    if weights is None:
        units, rows = Units(N, GROUPS), X.astype(dtype)
    else:
        units, there = Units.weighted(weights, 1.5, GROUPS)
        rows = X.astype(dtype)[there]
    alone = units.of_points()
    return unit_points(rows, units), alone, weights_of(Part(None, alone))


@pytest.mark.parametrize("engine", [LocalEngine, Elsewhere])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_points_are_those_in_memory(weights, dtype, engine):
    expected, units, expected_weights = known_points(weights, dtype)
    for cuts in CUTS:
        table = group_points(table_of(cuts, weights, engine, dtype=dtype))
        assert table.engine.n_parts == len(cuts) + 1 and table.dtype == np.float64
        assert table.units == units.facts and not table.units.grouped
        assert np.array_equal(table.rows(weights_of), expected_weights)
        found = table.rows(points_of)
        assert found.tobytes() == expected.tobytes()


def test_rows_in_another_order_make_other_sums(monkeypatch):
    """So the pieces of a group have to be in the order of the parts."""
    monkeypatch.setattr(Elsewhere, "brought", lambda self, held: held[::-1])
    found = group_points(table_of(CUTS[2], engine=Elsewhere)).rows(points_of)
    expected = known_points(None)[0]
    assert np.allclose(found, expected, rtol=1e-5) and not np.array_equal(found, expected)


def test_rows_that_are_units_stay_where_they_are():
    table = table_of(CUTS[1], WEIGHTS, groups=None)
    assert group_points(table) is table


@pytest.mark.parametrize("engine", [LocalEngine, Elsewhere])
def test_groups_whose_rows_weigh_nothing_are_no_points(engine):
    table = group_points(table_of(CUTS[1], np.zeros(N), engine))
    assert table.rows(points_of).shape == (0, 3) and table.units.own_weights


def test_very_many_parts_become_fewer(monkeypatch):
    """Or there would be a piece for each pair of them."""
    monkeypatch.setattr(module, "TASKS", 4)
    monkeypatch.setattr(module, "MOST_PIECES", 160)
    table = group_points(table_of(CUTS[2]))
    assert table.engine.n_parts == 160 // 20
    assert np.array_equal(table.rows(points_of), known_points(None)[0])


def test_nothing_of_the_pieces_is_printed():
    (part,) = parts_in_memory(table_of([]))
    held = module._by_group(part, np.array([0, 40, 90]), part.units.facts)
    assert "array" not in repr(held) and len(held[0][0]) + len(held[1][0]) == N


def test_a_part_that_cannot_be_read_ends_the_fit():
    class Bad(Piece):
        def read(self):
            raise OSError("secret")

        def n_rows(self):
            return 2

    table = Table(LocalEngine([Bad(0, None, [1, 2], None)]), 3, X.dtype, UnitFacts())
    open_units(table, grouped=True)
    with pytest.raises(PartError, match=r"^part 0 could not be read .*\(OSError\)") as caught:
        group_points(table)
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
