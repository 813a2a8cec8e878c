"""Steps of a part: nothing that a worker raises leaves it, and totals never wrap."""

import numpy as np
import pytest
from partition_tools import ROWS, SECRET, quotes_nothing, quoting, sums

from sklearn_dp._partitions._sources import CheckedSource, columns_of
from sklearn_dp._partitions._steps import Failure, Message, Step, raised, rows_of, run, total
from sklearn_dp._rows.table import chained, opened
from sklearn_dp.exceptions import PartError


def bad():
    raise OSError(SECRET)


def first(reader=lambda: ROWS, number=4):
    return Step(number, CheckedSource(number, columns_of(ROWS), reader))


def passed(step, *functions):
    return run(step, Message(chained, (tuple((function, ()) for function in functions),)))


def test_a_step_gives_a_new_state_and_sums():
    before = passed(first(), opened)
    after = run(before, Message(sums, (2,)))
    assert raised(after.sums)[1] == len(ROWS) and after.part == 4
    assert "first" not in before.state.state and "first" in after.state.state  # it is pure
    assert str(SECRET) not in repr(after) and "state" not in repr(after)


@pytest.mark.parametrize("reader", [bad, lambda: ROWS * np.nan])
def test_a_part_that_fails_stays_failed(reader):
    failed = passed(first(reader), opened)
    assert isinstance(failed.sums, Failure) and failed.sums.part == 4
    later = run(failed, Message(sums, (2,)))
    assert later.sums == failed.sums
    for call in (lambda: raised(later.sums), lambda: rows_of(later, Message(sums, (2,)))):
        with pytest.raises(PartError, match="^X, part 4: ") as caught:
            call()
        assert quotes_nothing(caught.value)


@pytest.mark.parametrize("ending", [run, rows_of])
def test_an_error_of_a_pass_is_told_by_its_type(ending):
    before = passed(first(), opened)
    with pytest.raises(PartError, match=r"^X, part 4: .*\(KeyError\)\.$") as caught:
        raised(ending(before, Message(quoting, ())).sums)
    assert quotes_nothing(caught.value)


def test_totals_are_exact():
    one = (np.array([2**62, 1]), 2**62)
    assert [np.asarray(x).tolist() for x in total([one] * 7)] == [[7 * 2**62, 7], 7 * 2**62]
