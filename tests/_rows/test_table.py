"""A table in parts: passes, exact totals, and errors that tell a part and a type."""

import pickle
import weakref

import numpy as np
import pytest

from sklearn_dp._partitions._sources import GroupSizes
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._rows.table import (
    CellCounts,
    LocalEngine,
    Part,
    PartSource,
    Table,
    add_sums,
    opened,
)
from sklearn_dp.exceptions import PartError


class Numbers(PartSource):
    """Rows that are counted when they are read."""

    def __init__(self, values, error=None):
        self.values, self.error, self.reads = np.asarray(values, dtype=float), error, 0

    def read(self):
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.values[:, None]


def doubled(part, factor):
    return part.having(twice=factor * part.source.read()[:, 0]), ()


def total(part):
    twice = part["twice"]
    return part, (int(twice.sum()), np.array([len(twice), part.units.n_rows]))


def values(part):
    return part["twice"]


def broken(part):
    raise KeyError(f"secret {part['twice'][0]}")


def table_of(*parts, n_jobs=None):
    engine = LocalEngine([Numbers(part) for part in parts], n_jobs)
    table = Table(engine, 1, np.float64, UnitFacts())
    table.update(opened)
    return table


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("parts", [[[1, 2, 3]], [[], [3], [1, 2]], [[2], [1], [3], []]])
def test_totals_do_not_depend_on_the_parts(parts, n_jobs):
    table = table_of(*parts, n_jobs=n_jobs)
    table.update(doubled, 2)
    number, sizes = table.sums(total)
    assert number == 12 and sizes.tolist() == [3, 3]
    assert sorted(table.rows(values).tolist()) == [2, 4, 6]


def test_sums_of_many_parts_are_added_one_after_the_other():
    """What parts give may be large: those of all of them would not fit into the memory."""
    made, alive = [], []

    def large(part):
        sums = np.ones(10)
        made.append(weakref.ref(sums))
        alive.append(sum(each() is not None for each in made))
        return part, (sums,)

    (sums,) = table_of(*([[1]] * 20)).sums(large)
    assert sums.tolist() == [20.0] * 10 and max(alive) <= 3


def test_a_part_is_not_changed_in_place():
    part = Part(Numbers([1.0]), Units(1), {"a": 1})
    assert part.having(b=2).without("a").state == {"b": 2} and part.state == {"a": 1}
    assert pickle.loads(pickle.dumps(part))["a"] == 1


@pytest.mark.parametrize("values", [CellCounts.of(np.array([0, 7319])), GroupSizes({"7319": 7319})])
def test_what_is_unreleased_is_not_printed(values):
    """A log of tasks, or a frame of a traceback, would show it."""
    part = Part(Numbers([7319.0]), Units(1), {"a": np.array([7319]), "b": values})
    assert "7319" not in repr([values, part, Units(1, ["7319"])])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("secret"),
        OSError("secret"),
        MemoryError("shape (secret, 3)"),
        PartError("part 7"),
    ],
)
def test_a_part_that_cannot_be_read_ends_the_pass(error):
    engine = LocalEngine([Numbers([1]), Numbers([2], error)])
    table = Table(engine, 1, np.float64, UnitFacts())
    table.update(opened)
    with pytest.raises(PartError) as caught:
        table.sums(weigh)
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
    if not isinstance(error, PartError):
        assert str(caught.value) == (
            f"part 1 could not be read or processed ({type(error).__name__})."
        )


def test_an_error_on_the_way_quotes_no_row():
    table = table_of([3.0])
    table.update(doubled, 1)
    with pytest.raises(PartError, match=r"part 0 .*\(KeyError\)"):
        table.sums(broken)


@pytest.mark.parametrize("groups", [None, ["a", "a", "b"]])
def test_a_table_in_memory_is_one_part_with_its_units(groups):
    X = np.arange(6.0).reshape(3, 2)
    table = Table.in_memory(X, Units(3, groups))
    assert table.n_features == 2 and table.engine.n_parts == 1
    assert table.units.scale == (1 if groups is None else 2**20)
    (weight,) = table.sums(weigh)
    assert weight == (3 if groups is None else 2 * 2**20)


def weigh(part):
    weights = part.units.weights
    return part, (len(part.source.read()) if weights is None else int(weights.sum()),)


def test_totals_never_wrap():
    """Sums that fit into 64 bits in each part, but not together."""
    part = (np.array([2**62, -(2**62)]), 2**63)
    sums = part
    for _ in range(7):
        sums = add_sums(sums, part)
    assert sums[0].tolist() == [2**65, -(2**65)] and sums[1] == 2**66
