"""Samples of rows in parts: coins by the numbers of rows, values in the order of the parts."""

import pickle

import numpy as np
import pytest

from sklearn_dp._aggregate.shared import samples
from sklearn_dp._aggregate.shared.samples import ByPart, Coins, drawn_places
from sklearn_dp._aggregate.shared.table import ArraySource, Part
from sklearn_dp._privacy._randomness import UnitDraws
from sklearn_dp._privacy._units import Units

DRAWS = UnitDraws(3, "coins")
KNOWN = DRAWS.take(0, 10_000)
BOUND = np.uint64(2**62)


def masks(sizes):
    """The coins of all rows, cut into parts; the seed goes to them."""
    counts = ByPart({number: size for number, size in enumerate(sizes)})
    coins = pickle.loads(pickle.dumps(Coins(DRAWS, BOUND, counts.starts())))
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
    assert repr(Coins(DRAWS, BOUND, {0: 0, 1: 7319})) == "Coins"


def test_places_are_those_within_a_part():
    places = drawn_places(DRAWS, BOUND, 5000, 3000)
    assert np.array_equal(places, np.flatnonzero(KNOWN[5000:8000] <= BOUND))
    assert drawn_places(DRAWS, BOUND, 5000, 0).shape == (0,)


def test_rows_are_numbered_part_after_part():
    assert ByPart({2: 7, 0: 3, 1: 0}).starts() == {0: 0, 1: 3, 2: 3}


def test_a_part_counts_once():
    assert (ByPart({1: "b"}) + ByPart({0: "a"})).in_order() == ["a", "b"]
    with pytest.raises(ValueError, match="once"):
        ByPart({0: "a"}) + ByPart({0: "a"})
