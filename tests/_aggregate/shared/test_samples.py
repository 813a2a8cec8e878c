"""Samples of rows in parts: coins by the numbers of rows, values in the order of the parts."""

import pickle

import numpy as np
import pytest

from sklearn_dp._privacy._units import Units
from sklearn_dp._privacy.mechanisms.stability import UnitDraws
from sklearn_dp._queries import samples
from sklearn_dp._queries.samples import ByPart, Coins
from sklearn_dp._rows.table import ArraySource, Part

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
