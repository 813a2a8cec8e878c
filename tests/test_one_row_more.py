"""One row more, of any type, in any container: what it changes is its own, and nothing else.

Exact: what is released is compared before noise is added. The neighbors differ by one row; all
others must come to the algorithm with the same bits. An error after the charge is allowed.
"""

import warnings
from collections import deque, namedtuple
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from federated_states import ROW_STATES, D
from sklearn.linear_model import LogisticRegression, Ridge

from sklearn_dp import DPOneHotEncoder, FederatedDPKMeans, FriendlyMean
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._door import check_weights
from sklearn_dp._privacy._entries import object_array
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import code_groups
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.ensemble._aggregation import target_column
from sklearn_dp.federated import client_update
from sklearn_dp.preprocessing import PublicEncoder
from sklearn_dp.segments import DPBySegment
from sklearn_dp.segments._rows import segment_of_rows

Row = namedtuple("Row", "a b")
N = 40

HELD = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "tuples": lambda rows: [tuple(row) if isinstance(row, list) else row for row in rows],
    "deques": lambda rows: deque(deque(row) if isinstance(row, list) else row for row in rows),
    "namedtuples": lambda rows: [
        Row(*row) if isinstance(row, list) and len(row) == 2 else row for row in rows
    ],
    "series": lambda rows: [
        pd.Series(row, dtype=object) if isinstance(row, list) else row for row in rows
    ],
    "arrays": lambda rows: [
        np.array(row, dtype=object) if isinstance(row, list) else row for row in rows
    ],
    "arrays of no axes": lambda rows: [
        [np.array(value) if np.isscalar(value) else value for value in row]
        if isinstance(row, list)
        else row
        for row in rows
    ],
    "mixed": lambda rows: [
        (list, tuple, deque, pd.Series)[i % 4](row) if isinstance(row, list) else row
        for i, row in enumerate(rows)
    ],
}
"""Containers of rows that have no type of their own."""

ENTRIES = {
    "text": "x", "number in a text": "1", "huge": 2**63 + 1, "beyond floats": 10**400,
    "complex": 1j, "bool": True, "None": None, "NA": pd.NA, "NaN": np.nan, "date": date(2020, 1, 1),
    "datetime64": np.datetime64(1, "s"), "Timestamp": pd.Timestamp(0), "Decimal": Decimal("0.1"),
    "timedelta64": np.timedelta64(7, "ns"),  # pandas takes one of 1 for the number at times
    "bytes": b"x", "list": [1.0], "dict": {}, "array": np.ones(2), "float32": np.float32(0.1),
}  # fmt: skip
NO_ROWS = {
    "short": [1.0], "long": [1.0] * 3, "a number": 5.0, "dict row": {"a": 1.0, "b": 1.0},
    "text row": "ab", "nothing": None, "two axes": np.ones((1, 2)),
}  # fmt: skip
ROWS = {
    **{name: [value, 1.0] for name, value in ENTRIES.items()},
    **NO_ROWS,
    "typed texts": np.array(["x", "1"]),
    "typed dates": np.array([1, 2], "M8[s]"),
    "typed ints": np.array([1, 2]),
    "a series": pd.Series([1, "x"]),
    "an arrow array": pa.array([1, 2]),
    "polars": pl.Series(["x", "y"]),
}


@contextmanager
def recorded(owner, name):
    """The arguments of all calls of a method, in the place of which nothing is done."""
    calls = []

    def recording(self, *arguments, **options):
        calls.append(arguments)
        return self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, recording)
        yield calls


@contextmanager
def case(name):
    """Says which row of many a failure is about; what NumPy would warn of is an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            yield
    except BaseException as error:
        error.add_note(f"case: {name}")
        raise


def ends(call):
    """Whether a fit comes to its end; one that is paid for may refuse a row."""
    try:
        call()
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.quick("list", "deques", "arrays of no axes", "mixed")
@pytest.mark.parametrize("held", HELD)
def test_counts_of_categories_move_by_one(held):
    """True among texts must stay True: as an array of texts it would be "True" in all rows."""
    rows = [[(True, 1, 2.5, "1", "01", None, "a")[i % 7], i % 3] for i in range(N)]

    def counts(table):
        with trace(Trace()) as recorder:
            done = ends(lambda: DPOneHotEncoder(epsilon=100.0).fit(HELD[held](table)))
        counted = [event.value for event in recorder.events if event.kind == "stability"]
        return done, [dict(zip(*each, strict=True)) for each in counted]

    _, plain = counts(rows)
    assert len(plain[0]) == 7 and len(plain[1]) == 3
    for name, row in ROWS.items():
        with case(name):
            done, found = counts([*rows, row])
            assert done == (name not in NO_ROWS) and len(found) == 2 * done
            for before, after in zip(plain, found, strict=False):
                moved = [after.get(key, 0) - before.get(key, 0) for key in {*before, *after}]
                assert sum(map(abs, moved)) <= 1 and min(moved) >= 0


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "series": lambda values: pd.Series(values, dtype=object),
    "index": lambda values: pd.Index(values, dtype=object),
    "arrays of no axes": lambda values: [
        np.array(value) if np.isscalar(value) else value for value in values
    ],
    "categories": pd.Categorical,
}
"""The same of one entry for each row."""


@pytest.mark.quick("list-*", "arrays of no axes-*", "index-numbers")
@pytest.mark.parametrize("labels", [True, False], ids=["labels", "numbers"])
@pytest.mark.parametrize("held", [name for name in COLUMNS if name != "categories"])
def test_targets_of_other_rows_stay(held, labels):
    """As one array the labels True and 1.0 of all rows would become texts for the sake of one."""
    X = np.random.default_rng(0).normal(size=(N + 1, 2))
    y = [(True, False)[i % 2] if labels else (True, 2, 0.5)[i % 3] for i in range(N)]
    inner = LogisticRegression() if labels else Ridge()
    model = SampleAndAggregate(inner, classes=[False, True] if labels else None, epsilon=5.0)
    for name, value in ENTRIES.items():
        with case(name), recorded(BaseDPEstimator, "_fit_session") as calls:
            assert ends(lambda: model.fit(X[:N], COLUMNS[held](y)))
            ended = ends(lambda: model.fit(X, COLUMNS[held]([*y, value])))  # noqa: B023
            assert ended == (len(calls) == 2) and ended >= labels
            rows = [call[0][:N] for call in calls]
            assert set(rows[0][:, -1]) == ({0.0, 1.0} if labels else {1.0, 2.0, 0.5})
            assert rows[-1].tobytes() == rows[0].tobytes()


@pytest.mark.quick("deque", "tuples", "arrays of no axes")
@pytest.mark.parametrize("held", HELD)
def test_clients_send_the_same_for_their_other_rows(held):
    """One odd row of a deque once took all of its rows away."""
    message = ROW_STATES[0].message
    rows = np.random.default_rng(0).normal(size=(800, D)).tolist()

    def answer(*tables):
        table = [row for each in tables for row in each]
        return client_update("moment", message, HELD[held](table))["second moment"]

    plain = answer(rows)
    assert np.array_equal(plain, client_update("moment", message, rows)["second moment"])
    assert plain.any()
    for name, row in ROWS.items():
        more = [row[0], *[0.5] * (D - 1)] if isinstance(row, list) and len(row) == 2 else row
        with case(name):
            assert np.array_equal(answer(rows, [more]), plain + answer([more]))


def test_federated_fits_of_clients_in_every_container():
    rows = np.random.default_rng(0).normal(size=(400, 2)) + 5 * (np.arange(400) % 2)[:, None]
    centers = []
    for held in HELD.values():
        clients = [held(rows[i::4].tolist()) for i in range(4)]
        model = FederatedDPKMeans(2, bounds=20.0, privacy_unit="row", random_state=0)
        with pytest.warns(match="random_state"):
            centers.append(model.fit_clients(clients, n_features=2).cluster_centers_)
    assert all(np.array_equal(each, centers[0]) for each in centers)


@pytest.mark.quick("list", "deques", "series", "mixed")
@pytest.mark.parametrize("held", HELD)
def test_rows_of_numbers_stay(held):
    rows = [[(True, 2.5, 2**53 + 1)[i % 3], i * 0.1] for i in range(N)]
    expected = np.array(rows, dtype=np.float64)
    for name, row in ROWS.items():
        with case(name), recorded(BaseDPEstimator, "_fit_session") as calls:
            assert ends(lambda: FriendlyMean().fit(HELD[held](rows)))
            ended = ends(lambda: FriendlyMean().fit(HELD[held]([*rows, row])))  # noqa: B023
            assert ended == (len(calls) == 2)
            assert all(call[0][:N].tobytes() == expected.tobytes() for call in calls)


@pytest.mark.parametrize("held", HELD)
def test_public_encodings_of_other_rows_stay(held):
    encoder = PublicEncoder([["a", True, 2], (0, 10)])
    rows = [[("a", True, 2, "z")[i % 4], i % 11] for i in range(N)]
    plain = encoder.fit_transform(rows)
    assert plain[:3].any(axis=1).all()
    for name, row in ROWS.items():
        with case(name):
            found = encoder.transform(HELD[held]([*rows, row]))
            assert found[:N].tobytes() == plain.tobytes()


@pytest.mark.parametrize("held", COLUMNS)
def test_segments_groups_and_weights_of_other_rows_stay(held):
    X = np.random.default_rng(0).normal(size=(N + 1, 1))
    key = [(1, "a", 2**53 + 1)[i % 3] for i in range(N)]
    model = DPBySegment(FriendlyMean(max_weight=2.0), values=[1, "a", 2**53 + 1], epsilon=5.0)
    for name, value in ENTRIES.items():
        if held == "categories" and name in ("list", "dict", "array"):
            continue  # pandas has no such categories
        keys, weights = (COLUMNS[held]([*own, value]) for own in (key, [1.5] * N))
        with case(name), recorded(DPBySegment, "_fit_session") as calls:
            model.fit(X, by=keys)
            grouped = ends(lambda: model.fit(X, by=[*key, 1], groups=keys))  # noqa: B023
            weighted = ends(lambda: model.fit(X, by=[*key, 1], sample_weight=weights))  # noqa: B023
        assert len(calls) == 1 + grouped + weighted
        units = [call[1] for call in calls]
        assert all(each.segment[:N].tolist() == [i % 3 for i in range(N)] for each in units)
        if grouped:
            assert units[1].groups[:N].tolist() == [i % 3 for i in range(N)]
        if weighted:
            assert units[-1].weights[:N].tolist() == [1.5] * N


# -- entries with code of their own ----------------------------------------------------------------


class Spied(BaseException):
    """Of a row: it quotes what it holds, and no handler of errors expects it."""


def spied(*bases, **members):
    """A class whose code is never run: each of its methods would tell the row."""

    def tell(self, *arguments):
        raise Spied("SECRET")

    names = ("bool", "float", "int", "index", "complex", "str", "repr", "hash", "eq", "ne", "lt",
             "gt", "sub", "len", "iter", "getitem", "array", "contains", "reduce_ex", "format",
             "encode", "getattribute", "class")  # fmt: skip
    code = {f"__{name}__": tell for name in names} | {"__class__": property(tell), "item": tell}
    return type("Own", bases, code | members)


OWN = {
    "text": (spied(str)("1.5"), "1.5"), "no number": (spied(str)("a"), "a"),
    "float": (spied(float)(1.5), 1.5), "NumPy's float": (spied(np.float64)(1.5), 1.5),
    "float32": (spied(np.float32)(1.5), 1.5), "integer": (spied(int)(2), 2),
    "huge": (spied(int)(10**400), 10**400), "decimal": (spied(Decimal)("1.5"), Decimal("1.5")),
    "complex": (spied(complex)(1j), 1j), "bytes": (spied(bytes)(b"x"), b"x"),
    "member": (StrEnum("Text", {"A": "1.5"}).A, "1.5"),
    "number of a name": (IntEnum("N", "A").A, 1),
    "object": (spied()(), object()),
}  # fmt: skip
READ = {
    "rows": lambda entry: FriendlyMean(bounds=9.0, random_state=0).fit([*PLAIN, [entry, 1.0]]),
    "categories": lambda entry: DPOneHotEncoder(epsilon=99.0, random_state=0).fit(
        [*PLAIN, *[[entry, 1.0]] * 30]
    ),
    "encoded": lambda entry: PublicEncoder([["1.5", "a", 1], (0, 2)]).fit_transform([[entry, 1.0]]),
    "groups": lambda entry: code_groups(
        [1.5, "1.5", "a", 2, 1, entry, 10**400, b"x", 1j, (entry,)]
    ),
    "groups in objects": lambda entry: code_groups(object_array([1.5, entry])),
    "segments": lambda entry: segment_of_rows([entry], ["a", "1.5", 1.5, 2, 1], 1),
    "labels": lambda entry: target_column([entry], 1, np.array(["a", "1.5"])),
    "target": lambda entry: target_column([entry], 1),
    "weights": lambda entry: check_weights([entry], 1),
}
PLAIN = [[i % 3 * 0.5, 1.0] for i in range(N)]


def outcome(call, *given):
    """What a call returns, or what its error says."""
    try:
        found = call(*given)
    except (TypeError, ValueError) as error:
        assert error.__context__ is None and "SECRET" not in str(error)
        return str(error)
    if isinstance(found, DPOneHotEncoder):
        return [each.tolist() for each in (*found.categories_, *found.counts_)]
    return found.mean_.tolist() if isinstance(found, FriendlyMean) else found.tolist()


@pytest.mark.parametrize("entry", OWN)
@pytest.mark.parametrize("read", READ)
def test_no_code_of_an_entry_is_run(read, entry):
    """It is what it would be as a plain text or number. Its __float__ ended the fit and told it."""
    own, plain = OWN[entry]
    assert outcome(READ[read], own) == outcome(READ[read], plain)


@pytest.mark.parametrize("base", [list, tuple])
def test_no_code_of_a_row_is_run(base):
    row = spied(base)([1.5, 1.0])
    for read in (FriendlyMean(bounds=9.0, random_state=0), DPOneHotEncoder(random_state=0)):
        assert outcome(read.fit, [*PLAIN, row]) == outcome(read.fit, [*PLAIN, [1.5, 1.0]])


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, MemoryError, Spied, ValueError])
def test_an_error_of_other_code_quotes_nothing(error):
    """A column of some library, which is asked for its values."""

    class Column:
        shape, dtype = (N, 2), np.dtype(float)

        def __array__(self, *arguments, **options):
            raise error("SECRET")

    kinds = (KeyboardInterrupt, MemoryError, ValueError)
    with pytest.raises(kinds) as caught:
        FriendlyMean().fit(Column())
    assert "SECRET" not in str(caught.value) and caught.value.__context__ is None
    assert type(caught.value) is (error if error in kinds else ValueError)
