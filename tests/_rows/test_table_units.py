"""Units in parts weigh what they weigh in memory, wherever the rows of a group are."""

import numpy as np
import polars as pl
import pytest

from sklearn_dp._partitions import _sources
from sklearn_dp._partitions._sources import open_units
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._rows.table import LocalEngine, PartSource, Table
from sklearn_dp.exceptions import PartError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))


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
    part, _ = _sources._opened(Piece(X[:3], [1, 2, 2], None), True, None)
    units = _sources._weighed(part, {1: (1, 8), 2: (4, 0)})[0].units
    assert units.weights.tolist() == [2**20, 2**18, 2**18] and units.numbers.tolist() == [8, 0]
    with pytest.raises(KeyError):
        _sources._weighed(part, {1: (1, 8)})


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
