"""What parts send: exact totals, whatever their number and their order."""

import itertools

import numpy as np
import pytest

from sklearn_dp._aggregate.shared.sums import CellCounts, Summed, add_sums


def test_totals_never_wrap():
    """Sums that fit into 64 bits in each part, but not together."""
    part = (np.array([2**62, -(2**62)]), 2**63)
    sums = part
    for _ in range(7):
        sums = add_sums(sums, part)
    assert sums[0].tolist() == [2**65, -(2**65)] and sums[1] == 2**66


def test_counts_of_cells_add_up_without_the_empty_ones():
    dense = [np.array([0, 3, 0, 1]), np.array([2, 0, 0, 5]), np.zeros(4, dtype=np.int64)]
    one, other, nothing = map(CellCounts.of, dense)
    (both,) = add_sums(add_sums((one,), (nothing,)), (other,))
    assert both.cells.tolist() == [0, 1, 3] and both.counts.tolist() == [2, 3, 6]


def test_totals_have_no_order():
    parts = [(np.array([i, 2**61 * i]), i, CellCounts.of(np.arange(i))) for i in range(4)]
    totals = set()
    for order in itertools.permutations(parts):
        total = order[0]
        for part in order[1:]:
            total = add_sums(total, part)
        totals.add((*total[0].tolist(), total[1], *total[2].counts.tolist()))
    assert totals == {(6, 6 * 2**61, 6, 2, 2)}


def test_what_is_no_sum_does_not_add_up():
    with pytest.raises(TypeError, match="a sum must say how"):
        add_sums((Summed(),), (Summed(),))
    with pytest.raises(ValueError, match="argument 2 is longer"):
        add_sums((1,), (1, 2))
