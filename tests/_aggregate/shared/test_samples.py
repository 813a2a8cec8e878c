"""Samples of rows in parts: coins by the numbers of rows, values in the order of the parts."""

import pickle

import numpy as np
import pytest
from grid_tools import parts_in_memory
from kernel_tools import open_session
from test_partitions import Piece

from sklearn_dp._privacy._unit_draws import UnitDraws, addressed_draws, unit_draws
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._queries import samples
from sklearn_dp._queries.samples import ByPart, Coins, UnitNumbers
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table, add_sums
from sklearn_dp._rows.table_units import open_units

DRAWS = UnitDraws(3, "coins")
KNOWN = DRAWS.take(0, 10_000)
BOUND = np.uint64(2**62)


def masks(sizes):
    """The coins of all rows, cut into parts; the seed goes to them."""
    counts = ByPart({number: size for number, size in enumerate(sizes)})
    coins = pickle.loads(pickle.dumps(Coins(0.25, DRAWS, counts.starts())))
    return [
        coins.mask(Part(ArraySource(None, number), Units(size)))
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("sizes", [[10_000], [0, 4096, 1, 0, 5903], [9999, 1, 0]])
def test_a_row_has_its_coin_wherever_the_cuts_are(monkeypatch, sizes):
    monkeypatch.setattr(samples, "_DRAWS", 1000)
    found = masks(sizes)
    assert [len(mask) for mask in found] == sizes
    assert np.array_equal(np.concatenate(found), KNOWN <= BOUND)
    assert 2200 < np.count_nonzero(KNOWN <= BOUND) < 2800


def test_coins_do_not_show_how_many_rows_there_are():
    assert repr(Coins(0.25, DRAWS, {0: 0, 1: 7319})) == "Coins"


def test_a_part_counts_once():
    assert (ByPart({1: "b"}) + ByPart({0: "a"})).in_order() == ["a", "b"]
    with pytest.raises(ValueError, match="once"):
        ByPart({0: "a"}) + ByPart({0: "a"})


N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
GROUPS = RNG.integers(0, 25, N)
WEIGHTS = np.where(RNG.random(N) < 0.3, 0.0, RNG.uniform(0, 2, N))


def table_of(cuts, groups, weights):
    pieces = [
        Piece(
            number,
            X[rows],
            None if groups is None else groups[rows],
            None if weights is None else weights[rows],
        )
        for number, rows in enumerate(np.split(np.arange(N), cuts))
    ]
    table = Table(LocalEngine(pieces), 2, X.dtype, UnitFacts())
    open_units(table, grouped=groups is not None, largest=None if weights is None else 1.5)
    return table


def drawn(part, numbers, draws):
    return numbers.draws_of(part, draws)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_numbers_are_those_in_memory(groups, weights):
    if weights is None:
        units, there = Units(N, groups), np.ones(N, dtype=bool)
    else:
        units, there = Units.weighted(weights, 1.5, groups)
    session = open_session()
    expected = units.spread(unit_draws(session, units.size))
    memory = [Table.in_memory(X[there], units, n_jobs) for n_jobs in (None, 3)]
    parts = [table_of(cuts, groups, weights) for cuts in ([], [0, 20, 20, 33], range(1, N))]
    for table in memory + parts:
        numbers = UnitNumbers.of(table)
        assert numbers.size == units.size and numbers.totals.tolist() == units.totals.tolist()
        draws = addressed_draws(session, numbers.size)
        assert np.array_equal(table.rows(drawn, numbers, draws), expected)
    assert repr(numbers) == "UnitNumbers"  # no sizes


def test_numbers_of_groups_follow_their_first_rows_whatever_order_parts_answer_in():
    class Backward(LocalEngine):
        def reduce(self, function, *broadcast):
            total = None
            for number in reversed(range(self.n_parts)):
                self.states[number], sums = function(self.states[number], *broadcast)
                total = sums if total is None else add_sums(total, sums)
            return total

    pieces = [Piece(i, X[i : i + 1], GROUPS[i : i + 1], None) for i in range(N)]
    table = Table(Backward(pieces), 2, X.dtype, UnitFacts())
    open_units(table, grouped=True)
    numbers = [int(part.units.numbers[0]) for part in parts_in_memory(table)]
    assert numbers == Units(N, GROUPS).index.tolist()
