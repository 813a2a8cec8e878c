"""What a friendly core of tuples costs, and how many tuples it needs."""

import pytest

from sklearn_dp._aggregate.tuples.core_plan import TupleShares, tuple_entries, tuples_needed


def test_entries_cost_what_they_are_given():
    for rho in (0.01, 1.0, 7.3):
        entries = tuple_entries(rho, 1e-6)
        assert sum(entry.rho for entry in entries) <= rho * (1 + 1e-12)
        assert sum(entry.delta for entry in entries) <= 1e-6


def test_number_of_tuples_against_the_table_of_the_exact_formula():
    """Filter with rho 0.7 and delta 9e-9 or 9e-7 of its own: the published table within 2 %."""
    share = TupleShares()
    for rho, delta, friends, expected in (
        (0.7, 9e-7, 1.0, 138),
        (0.7, 9e-9, 0.9, 272),
        (0.35, 9e-7, 0.9, 458),
        (0.07, 9e-9, 1.0, 1872),
    ):
        t = tuples_needed(rho / share.core, delta / share.core_delta, friends=friends)
        assert t == pytest.approx(expected, rel=0.02) and t % 2 == 0
    assert tuples_needed(0.01, 1e-6, most=1000) is None
