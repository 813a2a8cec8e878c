"""Units are the ids as given: none merged, none split, none missing, in every kind of array."""

from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._privacy import _grid as aggregates
from sklearn_dp._privacy._units import Units, code_groups, unit_of
from sklearn_dp._queries.group_points import units_of_points

NS = np.datetime64("2020-01-01T00:00:00.000000001")
PERSONS = {  # ids of which no two are equal
    "integers beyond floats": [2**53, 2**53 + 1, 2**53 + 2, 0.5],
    "big and negative integers": [2**63 + 1, 2**63, -1, -2, 2**70, 2**70 + 1],
    "alike": [1, "1", b"1", (1,), ("1",), frozenset({1}), 1.5, 1 + 1j],
    "partly ordered": [frozenset({1}), frozenset({2}), frozenset({1, 2}), frozenset(), ()],
    "nested": [("a", 1), ("a", 2), ("a", ("b", 1)), ("a", frozenset({"b"})), "a"],
    "dates": [
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        time(1),
        timedelta(1),
        timedelta(2),
    ],
    "numbers": [
        Decimal("0.1"),
        0.1,
        Fraction(1, 3),
        1 / 3,
        np.float32(0.1),
        np.longdouble(2) ** 62,
    ],
    "enumerations": list(Enum("Color", "RED GREEN")),
    "universal ids": [UUID(int=1), UUID(int=2)],
    "pandas scalars": [
        pd.Timestamp(0),
        pd.Timestamp(1),
        pd.Timedelta(1),
        pd.Period("2020-01"),
        pd.Interval(0, 1),
    ],
    "NumPy dates": [NS, NS + 1, NS + 1000],
    "NumPy durations": [np.timedelta64(1, "ns"), np.timedelta64(2, "ns")],
    "texts": ["", "a", "A", "a ", "\u00e4", "a\u0308"],
}
SAME = [
    [
        1,
        1.0,
        True,
        np.int8(1),
        np.float32(1),
        np.bool_(True),
        Decimal(1),
        Fraction(1),
        1 + 0j,
        np.longdouble(1),
    ],
    [0, 0.0, -0.0, False, np.float64(-0.0)],
    ["a", np.str_("a")],
    [b"a", np.bytes_(b"a")],
    [2.0**53, 2**53, np.uint64(2**53), np.longdouble(2) ** 53],
    [(1, 0.0), (True, -0.0), namedtuple("Pair", "a b")(1, 0)],
    [
        datetime(2020, 1, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))),
    ],
    [pd.Timestamp("2020-01-01"), datetime(2020, 1, 1)],
]
MISSING = {
    "None": None,
    "NaN": float("nan"),
    "NumPy NaN": np.float32("nan"),
    "NaT": pd.NaT,
    "NumPy NaT": np.datetime64("NaT"),
    "NumPy NaT in time": np.timedelta64("NaT"),
    "NA": pd.NA,
    "masked": np.ma.masked,
    "complex NaN": complex(0, float("nan")),
    "infinity": float("inf"),
    "Decimal NaN": Decimal("NaN"),
    "signaling NaN": Decimal("sNaN"),
    "Decimal infinity": Decimal("inf"),
    "in a tuple": (1, float("nan")),
    "deep down": (1, (2, frozenset({None}))),
    "long NaN": np.longdouble("nan"),
}


class Person:
    """Equal to nothing but itself, so two objects for one person would be two units."""


def shuffled(values, seed=0, copies=7):
    """Each value several times, and which of them stands where."""
    which = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(values)), copies))
    return which, [values[i] for i in which]


def assert_same_parts(codes, which):
    """Codes agree with the truth up to names, and count from 0 in the order of first rows."""
    pairs = set(zip(codes.tolist(), np.asarray(which).tolist(), strict=True))
    assert len(pairs) == len(set(codes.tolist())) == len(set(np.asarray(which).tolist()))
    assert list(dict.fromkeys(codes.tolist())) == list(range(len(pairs)))


def as_object(values):
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def test_units_of_a_group_weigh_at_most_one():
    groups = np.array([3, 1, 3, 3, 2, 1])
    units = Units(6, groups)
    assert units.size == 3 and units.unit == "group"
    assert np.array_equal(units.index, [0, 1, 0, 0, 2, 1])
    per_group = np.bincount(units.index, units.weights)
    assert (per_group <= units.scale).all() and (per_group >= units.scale - 3).all()
    assert np.array_equal(units.spread(np.array([30, 10, 20])), [30, 10, 30, 30, 20, 10])
    assert aggregates.weighted_bincount(np.zeros(6, int), units, 1)[0] * units.step == (
        pytest.approx(3, abs=1e-5)
    )
    part = units.take(groups == 3)
    assert part.n_rows == 3 and part.weights.sum() == per_group[0]
    assert Units(4).take(np.array([0, 2])).n_rows == 2


@pytest.mark.parametrize(
    "container",
    [list, tuple, as_object, lambda v: pd.Series(as_object(v), dtype=object)],
    ids=["list", "tuple", "object array", "pandas"],
)
@pytest.mark.parametrize("name", PERSONS)
def test_unequal_ids_are_different_units(name, container):
    which, values = shuffled(PERSONS[name])
    assert_same_parts(code_groups(container(values)), which)


@pytest.mark.parametrize("values", SAME, ids=str)
def test_equal_ids_are_one_unit(values):
    for groups in (values, values[::-1], as_object(values)):
        assert set(code_groups(groups).tolist()) == {0}


def arrow_arrays(pa):
    """Distinct ids of many types of Arrow; some of them differ in the last bit only."""
    return [
        pa.array([2**53 + 1, 2**53]),
        pa.array([2**64 - 1, 2**63], pa.uint64()),
        pa.array([0.1, 0.2]),
        pa.array([True, False]),
        pa.array(["b", "", "a"]),
        pa.array(["b", "a"], pa.large_string()),
        pa.array([b"b", b"a"]),
        pa.array(["b", "a"]).dictionary_encode(),
        pa.array([Decimal(10**36 + 1), Decimal(10**36)], pa.decimal128(38, 0)),
        pa.array([1, 2], pa.timestamp("ns", "UTC")),
        pa.array([1, 2], pa.duration("ns")),
        pa.array([1, 2], pa.time64("us")),
        pa.array([1, 2], pa.date32()),
    ]


def arrow_containers(array):
    """An array of Arrow as pyarrow and pandas hold it."""
    pa, held = pytest.importorskip("pyarrow"), pd.arrays.ArrowExtensionArray(array)
    yield from (array, pa.chunked_array([array[:1], array[1:]]))
    yield from (held, pd.Series(held), pd.Index(held))


def test_ids_in_arrow():
    pa = pytest.importorskip("pyarrow", reason="optional: ids may come in columns of Arrow")
    for distinct in arrow_arrays(pa):
        which, _ = shuffled(range(len(distinct)))
        for groups in arrow_containers(distinct.take(pa.array(which))):
            assert_same_parts(code_groups(groups), which)
            assert unit_of(groups) == "group"
        assert_same_parts(code_groups(pd.Series(groups).astype("category")), which)


def test_missing_ids_in_arrow_are_refused():
    pa = pytest.importorskip("pyarrow", reason="optional: ids may come in columns of Arrow")
    for array in (pa.array([1, None]), pa.array(["a", None]), pa.array([1.0, np.nan]), pa.nulls(2)):
        for groups in arrow_containers(array):
            with pytest.raises(ValueError, match="groups must not contain missing"):
                code_groups(groups)


def test_ids_in_arrow_that_python_rounds_are_refused():
    """Both arrays hold two ids, of which Python makes one."""
    pa = pytest.importorskip("pyarrow", reason="optional: ids may come in columns of Arrow")
    day = 86_400_000  # milliseconds
    arrays = [pa.array([1, 2], pa.time64("ns")), pa.array([day, day + 1]).view(pa.date64())]
    arrays += [array.dictionary_encode() for array in arrays]
    for array in arrays:
        assert len(set(array.to_pylist())) == 1
        for groups in arrow_containers(array):
            for refuse in (code_groups, unit_of):
                with pytest.raises(TypeError, match="groups must not be of a type that loses"):
                    refuse(groups)


@pytest.mark.parametrize("name", MISSING)
def test_missing_ids_are_refused(name):
    for others in ([7], ["a"], [(1,)], []):
        values = [*others, MISSING[name], *others]
        for groups in (
            values,
            tuple(values),
            as_object(values),
            pd.Series(as_object(values), dtype=object),
        ):
            with pytest.raises(ValueError, match="groups must not contain missing"):
                code_groups(groups)


@pytest.mark.parametrize(
    "bad",
    [
        [1],
        [],
        {},
        {1},
        Person(),
        object(),
        print,
        np.ones(2),
        len,
        np.array([(1, 2)], "i4,i4")[0],
        slice(1),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_ids_without_an_equality_are_refused(bad):
    for groups in ([bad, bad], [1, bad], as_object([bad, "a"]), [("a", bad)]):
        with pytest.raises((TypeError, ValueError), match="groups must"):
            code_groups(groups)


@pytest.mark.parametrize(
    "mixed",
    [
        [np.datetime64("2020-01-01"), NS],
        [np.datetime64(1, "s"), np.timedelta64(1, "s")],
        [NS, 1],
        [NS, pd.Timestamp(NS)],
        [(NS,), (NS,)],
        [np.clongdouble(1)],
    ],
    ids=str,
)
def test_numpy_scalars_that_compare_unlike_python_are_refused(mixed):
    with pytest.raises(TypeError, match="groups must"):
        code_groups(mixed)


@pytest.mark.parametrize("groups", [[1, 2], np.arange(4), pl.Series([1] * 4)])
def test_groups_of_another_length_are_refused(groups):
    with pytest.raises(ValueError, match="groups must have one entry for each row"):
        Units(3, groups)


SCALARS = (
    st.integers()
    | st.integers(-(2**64), 2**64).map(lambda k: k >> 3 << 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.integers(0, 2**64 - 1).map(np.uint64)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32)
)
IDS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)


def python_equal(a, b):
    """Python's equality, with NumPy's numbers first made Python's."""
    return _python(a) == _python(b)


def _python(value):
    if isinstance(value, (tuple, frozenset)):
        return type(value)(map(_python, value))
    return value.item() if isinstance(value, np.generic) else value


@given(st.lists(IDS, min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=12))
def test_codes_are_equality_and_nothing_else(distinct, picks):
    values = [distinct[i % len(distinct)] for i in picks] + distinct
    codes = code_groups(values)
    for a, one in zip(codes, values, strict=True):
        for b, other in zip(codes, values, strict=True):
            assert (a == b) == python_equal(one, other)
    assert list(dict.fromkeys(codes.tolist())) == list(range(len(set(codes.tolist()))))
    assert np.array_equal(codes, code_groups(as_object(values)))


@given(st.lists(IDS, min_size=1, max_size=12), IDS)
def test_an_added_unit_leaves_the_others_alone(values, new):
    # Whatever id a person chooses, and whatever it would do to the type of an array.
    codes = code_groups([*values, new])
    assert_same_parts(codes[:-1], code_groups(values))


def test_a_point_weighs_what_the_rows_of_its_unit_do():
    weights, groups = np.array([1.0, 0.5, 1.0, 0.25]), ["ann", "ann", "bob", "bob"]
    points = units_of_points(Units.weighted(weights, 1.0, groups)[0])
    assert points.weights.tolist() == [3 * 2**18, 5 * 2**17] and points.index is None
    assert (points.scale, points.size, points.own_weights) == (2**20, 2, True)
    points = units_of_points(Units.weighted(weights, 2.0)[0])
    assert points.weights.tolist() == [2**19, 2**18, 2**19, 2**17] and points.unit_weight == 2.0
    for units in (Units(4, groups), Units(2)):  # without weights of rows all units are alike
        assert units_of_points(units).weights is None and units_of_points(units).n_rows == 2
    assert units_of_points(Units.weighted(np.zeros(3), 1.0)[0]).weights.shape == (0,)
