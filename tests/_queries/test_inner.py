"""Tables inside of the parts of others: passes, state, errors."""

import numpy as np
import pytest
from partition_tools import quotes_nothing
from test_partitions import Elsewhere, Piece

from sklearn_dp._partitions._sources import open_units
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.halves import Dropped, inner_table
from sklearn_dp._rows.table import LocalEngine, Part, Table
from sklearn_dp.exceptions import PartError

X = np.arange(24.0).reshape(12, 2)


def table_of(cuts, engine=LocalEngine):
    pieces = [Piece(i, rows, None, None) for i, rows in enumerate(np.split(X, cuts))]
    table = Table(engine(pieces), 2, X.dtype, UnitFacts())
    open_units(table)
    return TableRows(table)


def sums(rows, *asked):
    return rows._raw().sums(*asked)


def first_column(part, factor):
    values = (factor * part.source.read()[:, 0]).astype(np.int64)
    return Part(part.source, Units(len(values)), {"values": values})


def total(part):
    return part, (int(part["values"].sum()), int(part.units.n_rows))


def increased(part, by):
    return part.having(values=part["values"] + by), ()


def large(part):
    chosen = part["values"] > 20
    return Part(part.source, part.units.take(chosen), {"values": part["values"][chosen]})


def names(part):
    return part, (len(part.state),)


def quoting(part):
    raise KeyError("7319")


@pytest.mark.parametrize("engine", [LocalEngine, Elsewhere])
@pytest.mark.parametrize("cuts", [[], [3, 3, 10]])
def test_passes_over_inner_tables(engine, cuts):
    table = table_of(cuts, engine)
    inner = inner_table(table, "inner", 1, first_column, 2)
    assert sums(inner, total) == (2 * 132, 12) and inner.n_features == 1
    inner._raw().update(increased, 1)  # it waits
    deeper = inner_table(inner, "deeper", 1, large)
    assert sums(deeper, total) == (sum(v for v in range(1, 46, 4) if v > 20), 7)
    deeper._raw().update(increased, 5)
    assert sums(inner, total) == (2 * 132 + 12, 12)
    assert sums(deeper, total)[0] == sum(v + 5 for v in range(1, 46, 4) if v > 20)
    again = inner_table(table, "inner", 1, first_column, 0)
    assert sums(again, total) == (0, 12)
    table.apply(Dropped(("inner",)))
    assert sums(table, names) == (0,)


def test_errors_are_those_of_the_outer_part():
    inner = inner_table(table_of([5]), "inner", 1, first_column, 1)
    with pytest.raises(PartError, match=r"^part 0 .*\(KeyError\)") as caught:
        sums(inner, quoting)
    assert quotes_nothing(caught.value)
