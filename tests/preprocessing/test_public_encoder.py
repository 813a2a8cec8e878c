"""Mixed tables as rows of comparable numbers, by a public schema."""

import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._status import Message, Status
from sklearn_dp.preprocessing import PublicEncoder

pandas = pytest.importorskip("pandas")

WORK = ["none", "part", "full"]
SCHEMA = {"age": (15, 95), "work": WORK, "code": [1, 2, None]}


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.uniform(15, 95, n),
            "work": rng.choice(WORK, n),
            "code": rng.choice([1.0, 2.0, np.nan], n),
        }
    )


def test_all_rows_are_within_the_bounds_that_are_stated():
    encoder = PublicEncoder(SCHEMA, weights={"work": 3.0})
    far = pandas.DataFrame({"age": [1e300, -1e300, 95, 15], "work": WORK + ["x"], "code": 1})
    norms = np.linalg.norm(encoder.fit_transform(far), axis=1)
    assert norms.max() <= encoder.output_bounds
    assert norms.max() == pytest.approx(encoder.output_bounds)


def unknown(encoder, rows):
    """The shares of values that are not known, which are the same in all of these rows."""
    table = encoder.inverse_transform(rows).round(9)
    names = [name for name in table if name.endswith(("_missing", "_unlisted"))]
    return {name: table[name].iloc[0] for name in names if table[name].nunique() == 1}


class Odd:
    """A value that fails at whatever it is asked."""

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    "value", ["typo", None, np.nan, pandas.NA, [1], {}, 1e308, np.inf, Odd(), "12", b"x", 10**400]
)
def test_what_the_schema_does_not_know_shows_in_its_own_row_only(value):
    table = people(40)[list(SCHEMA)].astype(object)
    encoder = PublicEncoder(SCHEMA).fit(table)
    rows = encoder.transform(table)
    more = table.copy()
    more.loc[len(more)] = [None, None, None]
    for name in SCHEMA:
        more.at[len(table), name] = value
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = encoder.transform(more)
    assert found[:-1].tobytes() == rows.tobytes()
    assert np.linalg.norm(found[-1]) <= encoder.output_bounds
    if not isinstance(value, float | int | str):
        assert unknown(encoder, found[-1:])["age_missing"] == 1
        assert unknown(encoder, found[-1:])["work_unlisted"] == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"schema": None}, TypeError, "schema must be a dict"),
        ({"schema": {}}, ValueError, "schema must have a column"),
        ({"schema": {"age": 3}}, TypeError, "column 'age' must be a pair"),
        ({"schema": {"age": (1, 2, 3)}}, TypeError, "column 'age' must be a pair"),
        ({"schema": {"age": (2, 1)}}, ValueError, "column 'age': in its range, low must not"),
        ({"schema": {"age": (0, np.inf)}}, ValueError, "column 'age': in its range, low and high"),
        ({"schema": {"age": []}}, TypeError, "column 'age' must be a pair"),
        ({"schema": {"age": ["a", "a"]}}, ValueError, "column 'age': categories"),
        ({"schema": {"age": [[1]]}}, ValueError, "column 'age': categories"),
        ({"schema": SCHEMA, "weights": {"x": 1}}, ValueError, "weights: a column"),
        ({"schema": SCHEMA, "weights": {"age": 0}}, ValueError, "weights must be greater"),
        ({"schema": SCHEMA, "weights": 3}, TypeError, "weights must be a dict"),
    ],
)
def test_bad_parameters_are_named(options, error, words):
    with pytest.raises(error, match=words):
        PublicEncoder(**options).fit(people(5))


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (people(5)[["age", "work"]], ValueError, "no column 'code', .* It has 'age', 'work'"),
        (people(5).assign(age=pd.Timestamp(0)), ValueError, "'age' holds dates .*: .* into days"),
        (np.zeros((5, 2)), ValueError, r"\(n_samples, 3\)"),
        (np.zeros(3), ValueError, "2D"),
        (None, ValueError, "2D"),
        (people(5).set_axis(["age", "age", "work", "code"], axis=1), ValueError, "must differ"),
        ([np.zeros((5, 3)), np.zeros((5, 3))], TypeError, "in memory"),
    ],
)
def test_bad_tables_are_refused_without_a_word_about_values(X, error, words):
    with pytest.raises(error, match=words) as told:
        PublicEncoder(SCHEMA).fit(X)
    assert told.value.__context__ is None and told.value.__cause__ is None


def patients(n=20_000, seed=0, **changed):
    """Complete rows that fit the schema, but for what is `changed` in a column."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n).clip(18, 90),
            "job": rng.choice(["clerk", "farmer", "nurse"], n, p=[0.7, 0.2, 0.1]),
            "sex": rng.choice(["Male", "Female"], n, p=[0.67, 0.33]),
            "glucose": rng.normal(82, 15, n),
            "height": rng.normal(170, 9, n),
        }
    )
    table["glucose"] += 60 * (table["job"] == "nurse")
    for name, change in changed.items():
        table[name] = change(table[name])
    return table


RANGES = {
    "age": (0, 100),
    "job": ["clerk", "farmer", "nurse"],
    "sex": ["Male", "Female"],
    "glucose": (40, 400),
    "height": (100, 220),
}


def fitted(table, schema=RANGES, made=DPKMeans, **options):
    encoder = PublicEncoder(schema)
    model = made(4, bounds=encoder.output_bounds, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return encoder, model.fit(encoder.fit_transform(table))


def spaced(values):
    return " " + values.astype(str)


@pytest.mark.quick("changed[0-4]-*", "changed11-*")
@pytest.mark.parametrize(
    ("changed", "schema", "words"),
    [
        ({}, {}, None),
        ({"job": spaced}, {}, "no row had a known value of job; check spelling and spaces"),
        ({}, {"age": [0, 120]}, "no row had a known value of age; write a range in parentheses"),
        ({"job": lambda v: v.str.upper()}, {}, "no row had a known value of job; check spelling"),
        ({"sex": lambda v: v.map({"Male": 1, "Female": 2})}, {}, "no row had a known value of sex"),
        ({}, {"job": ["Klerk"]}, "no row had a known value of job"),
        ({"glucose": spaced}, {}, None),  # which reads as a number
        ({"glucose": lambda v: v.astype(str) + " mg"}, {}, "no row had a known value of glucose; "),
        ({"glucose": lambda v: v * np.nan}, {}, "no row had a known value of glucose; check its"),
        ({"job": lambda v: v.where(v == "farmer")}, {}, "80% of the rows have no known value of j"),
        ({"height": lambda v: v / 100}, {}, "height is at its bound in every row; check the unit"),
        ({}, {"height": (1.0, 2.2)}, "height is at its bound in every row; check the unit"),
        ({"age": lambda v: v * 365}, {}, "age is at its bound in every row; check the unit"),
    ],
)
def test_a_schema_that_does_not_fit_is_told_from_what_was_released(changed, schema, words):
    for seed in range(3):
        _, model = fitted(patients(seed=seed, **changed), {**RANGES, **schema})
        assert model.trustworthy_ == (words is None)
        if words is not None:
            assert str(model.messages_).startswith(words)
            wrong, *others = model.messages_  # no other remedy for a column of the wrong unit
            assert not any(set(wrong.columns) & set(each.columns) for each in others)


@pytest.mark.parametrize("severity", ["note", "part"])
def test_no_mean_in_far_too_wide_a_range_is_ok_whatever_else_is_wrong(severity):
    """Hours of 0 to 50 in a range of 3,000: codes stayed "ok" where clusters were missing, too."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"ward": rng.choice(list("abc"), 15_000), "hours": rng.normal(12, 5, 15_000)}
    )
    encoder = PublicEncoder({"ward": list("abc"), "hours": (0, 3_000)})
    rows = encoder.fit_transform(table)
    model = DPKMeans(3, bounds=encoder.output_bounds, random_state=0).fit(rows)
    model.cluster_centers_status_[:] = "ok"
    model.messages_ = Status(
        [Message("missing_clusters", "clusters may be missing", (), "", severity)]
    )
    model.bounds.note_fit(model)
    assert set(model.cluster_centers_status_[:, -1]) == {"unknown"}
    assert {each.code for each in model.messages_} == {"missing_clusters", "noisy_columns"}
