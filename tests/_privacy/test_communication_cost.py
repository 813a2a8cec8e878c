"""What passes come to."""

import pickle

import pytest

from sklearn_dp._privacy._communication_cost import CommunicationCost, Pass

COST = CommunicationCost(
    (Pass("cells", 100, 30, 900), Pass("sums", 20, 10, 10, times=4)), 50, 10**6, 5, 8.0
)


def test_totals_are_those_of_all_passes():
    assert (COST.n_passes, COST.down, COST.up) == (5, 180, 70)
    assert COST.driver_bytes == 100 + 2 * 900
    assert COST.read_seconds == pytest.approx(5 * 10**6 * 8 / 5 / 1e9)
    assert COST.transfer_seconds == pytest.approx(250 * 50 / 5 / 1e9)


def test_it_prints_as_a_table_and_travels():
    lines = repr(COST).splitlines()
    assert lines[1].split() == ["cells", "1", "100", "30"]
    assert lines[3].split() == ["all", "5", "180", "70"] and "5 workers" in lines[4]
    assert COST.to_frame()["times"].tolist() == [1, 4]
    assert pickle.loads(pickle.dumps(COST)) == COST
