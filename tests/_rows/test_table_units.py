"""Units in parts weigh what they weigh in memory, wherever the rows of a group are."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._rows import table_units
from sklearn_dp._rows.table import LocalEngine, PartSource, Table
from sklearn_dp._rows.table_units import open_units
from sklearn_dp.exceptions import PartError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
IDS = RNG.integers(0, 8, 30)
WEIGHTS = np.where(RNG.random(30) < 0.2, 0.0, RNG.uniform(0, 3, 30))
GROUPS = {
    "integers": IDS,
    "texts": [f"u{i}" for i in IDS],
    "dates": np.array(IDS, dtype="datetime64[D]"),
    "mixed": [(1, 1.0, True, "1", b"1", date(2020, 1, 1), (2, "a"), 2**60)[i] for i in IDS],
}


class Piece(PartSource):
    sparse, number = False, 0

    def __init__(self, X, groups, weights):
        self.X, self.groups, self.weights = X, groups, weights

    def read(self):
        return self.X

    def n_rows(self):
        return len(self.X)

    def read_groups(self):
        return self.groups

    def read_weights(self):
        return self.weights


def weighed(part):
    weights = part.units.weights
    return np.ones(len(part.source.read())) if weights is None else weights


def rows(part):
    return part.source.read()


def opened(places, groups=None, weights=None):
    """The table of a list of parts, each some places of the rows."""

    def of(values, place):
        return values[place] if isinstance(values, np.ndarray) else [values[i] for i in place]

    pieces = [
        Piece(
            X[place],
            None if groups is None else of(groups, place),
            None if weights is None else weights[place],
        )
        for place in places
    ]
    table = Table(LocalEngine(pieces), 2, X.dtype, UnitFacts())
    open_units(table, grouped=groups is not None, largest=None if weights is None else 2.0)
    return table


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", [None, *GROUPS])
def test_rows_weigh_what_they_weigh_in_memory(name, own):
    groups = None if name is None else GROUPS[name]
    if own:
        known, there = Units.weighted(WEIGHTS, 2.0, groups)
    else:
        known, there = Units(30, groups), np.ones(30, dtype=bool)
    for cuts in ([], [11], [0, 3, 3, 20], range(1, 30)):
        places = np.split(np.arange(30), cuts)
        table = opened(places, groups, WEIGHTS if own else None)
        expected = np.ones(there.sum()) if known.weights is None else known.weights
        assert np.array_equal(table.rows(weighed), expected)
        assert np.array_equal(table.rows(rows), X[there])
        assert table.units == known.facts


def test_categories_of_parts_are_compared_by_their_names():
    """Polars numbers them anew for each column: "a" of one part is not "b" of the other."""
    names = np.array(["a", "b", "b", "a", "c", "b"])
    kinds = pl.Enum(["a", "b"]), pl.Enum(["b", "a", "c"])
    groups = [pl.Series(names[:2], dtype=kinds[0]), pl.Series(names[2:], dtype=kinds[1])]
    pieces = [Piece(X[:2], groups[0], None), Piece(X[2:6], groups[1], None)]
    table = Table(LocalEngine(pieces), 2, X.dtype, UnitFacts())
    open_units(table, grouped=True)
    assert np.array_equal(table.rows(weighed), Units(6, names.tolist()).weights)


def test_a_group_that_is_not_found_again_ends_the_fit():
    """It would weigh as much as if it had no rows in other parts."""
    part, _ = table_units._opened(Piece(X[:3], [1, 2, 2], None), True, None)
    units = table_units._weighed(part, {1: (1, 8), 2: (4, 0)})[0].units
    assert units.weights.tolist() == [2**20, 2**18, 2**18] and units.numbers.tolist() == [8, 0]
    with pytest.raises(KeyError):
        table_units._weighed(part, {1: (1, 8)})


@pytest.mark.parametrize("bad", [[1], [1, None], [1, float("nan")], [[1], [2]]])
def test_bad_groups_end_the_fit_with_their_part(bad):
    table = Table(
        LocalEngine([Piece(X[:1], [5], None), Piece(X[1:3], bad, None)]), 2, X.dtype, UnitFacts()
    )
    with pytest.raises(PartError, match=r"^part 1 could not be read or processed \(\w+\)\.$"):
        open_units(table, grouped=True)


@pytest.mark.parametrize("bad", [[1.0], [1.0, -1.0], [1.0, np.inf]])
def test_bad_weights_end_the_fit_with_their_part(bad):
    table = Table(LocalEngine([Piece(X[:2], None, bad)]), 2, X.dtype, UnitFacts())
    open_units(table, largest=1.0)
    with pytest.raises(PartError, match=r"^part 0 "):
        table.rows(weighed)
