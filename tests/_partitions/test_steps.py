"""Steps of a part: nothing that a worker raises leaves it, and totals never wrap."""

import numpy as np
import pytest
from partition_tools import (
    ROWS,
    SECRET,
    joined,
    quotes_nothing,
    quoting,
    quoting_task,
    sums,
    thirds,
)

from sklearn_dp._partitions._steps import (
    CheckedSource,
    Failure,
    Message,
    Split,
    Step,
    all_raised,
    columns_of,
    name_of,
    pieces_of,
    raised,
    rows_of,
    run,
    total,
    used,
)
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


def test_the_first_failure_stands_for_a_total():
    failures = [Failure(7, "b"), Failure(2, "c")]
    assert total([(1,), failures[0], (2,), failures[1]]) == failures[1]


def test_pieces_of_parts_come_together():
    split = Message(Split(thirds, 3), (2,))
    pieces = [pieces_of(passed(first(number=i), opened), split) for i in range(2)]
    task, rows = used(1, Message(joined, (2,)), [own[1] for own in pieces])
    assert task == 1 and np.array_equal(rows, 2 * np.concatenate([ROWS[1::3]] * 2))
    assert name_of(split.function, (2,)) == "thirds"


def test_a_part_that_fails_ends_all_tasks():
    split, good = Message(Split(thirds, 3), (2,)), passed(first(number=1), opened)
    failed = pieces_of(passed(first(bad), opened), split)
    quoted = pieces_of(good, Message(Split(quoting, 3), ()))
    pieces = [pieces_of(good, split), failed, quoted]
    results = [used(task, Message(joined, (2,)), [own[task] for own in pieces]) for task in (0, 1)]
    assert len(failed) == len(quoted) == 3 and all(isinstance(one, Failure) for one in results)
    with pytest.raises(PartError, match=r"^X, part 1: .*\(KeyError\)") as caught:
        all_raised(results)
    assert quotes_nothing(caught.value)


def test_an_error_of_a_task_is_told_by_its_type():
    own = pieces_of(passed(first(), opened), Message(Split(thirds, 3), (2,)))
    with pytest.raises(PartError, match=r"^X: rows of several parts .*\(KeyError\)\.$") as caught:
        all_raised([used(0, Message(quoting_task, (2,)), own[:1])])
    assert quotes_nothing(caught.value)
    assert all_raised([1, 2]) == [1, 2]


def test_names_for_dashboards():
    assert name_of(sums, (2,)) == "sums"
    assert name_of(chained, (((opened, ()), (sums, (2,))),)) == "sums"
