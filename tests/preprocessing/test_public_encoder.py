"""Mixed tables as rows of comparable numbers, by a public schema."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPKMeans
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


def test_distances_are_those_of_k_prototypes():
    """A range counts as 1, and so does another category: with a weight, its square."""
    table, weights = people(), {"work": 2.0, "age": 0.5}
    for given in (None, weights):
        Z = PublicEncoder(SCHEMA, weights=given).fit_transform(table)
        found = np.square(Z[:, None] - Z[None]).sum(axis=2)
        age = table["age"].to_numpy() / 80
        true = np.square(age[:, None] - age) * (1 if given is None else 0.25)
        for name, square in (("work", 4.0), ("code", 1.0)):
            values = table[name].astype(object).fillna("missing").astype(str).to_numpy()
            true = true + (values[:, None] != values) * (1 if given is None else square)
        np.testing.assert_allclose(found, true, atol=1e-12)


def test_all_rows_are_within_the_bounds_that_are_stated():
    encoder = PublicEncoder(SCHEMA, weights={"work": 3.0})
    far = pandas.DataFrame({"age": [1e300, -1e300, 95, 15], "work": WORK + ["x"], "code": 1})
    norms = np.linalg.norm(encoder.fit_transform(far), axis=1)
    assert norms.max() <= encoder.output_bounds
    assert norms.max() == pytest.approx(encoder.output_bounds)


def test_frames_and_arrays_give_the_same_rows():
    polars = pytest.importorskip("polars")
    table = people()
    encoder = PublicEncoder(SCHEMA).fit(table)
    rows = encoder.transform(table)
    columns = list(SCHEMA)
    for other in (
        polars.DataFrame({name: table[name].tolist() for name in table}),
        table[columns].to_numpy(),
        table[columns].to_numpy().tolist(),
        table[columns].astype({"work": "category"}),
    ):
        assert encoder.transform(other).tobytes() == rows.tobytes()
    numbers = PublicEncoder([(0, 1), [3, 4]]).fit_transform(np.array([[0.5, 3], [2.0, 4]]))
    np.testing.assert_allclose(numbers[:, 0], [0.0, 0.5])
    assert np.linalg.norm(numbers[0, 1:] - numbers[1, 1:]) == pytest.approx(1.0)


def test_centers_come_back_as_a_table():
    table = people()
    encoder = PublicEncoder(SCHEMA).fit(table)
    back = encoder.inverse_transform(encoder.transform(table).mean(axis=0, keepdims=True))
    assert list(back.columns) == list(encoder.get_feature_names_out())
    assert back["age"][0] == pytest.approx(table["age"].mean())
    for value in WORK:
        assert back[f"work_{value}"][0] == pytest.approx((table["work"] == value).mean())
    assert back["code_None"][0] == pytest.approx(table["code"].isna().mean())
    noisy = encoder.inverse_transform(np.full((1, 7), 9.0))
    # As far as a row can be: the range of a number ends, and shares that are alike add up to 1.
    assert noisy["age"][0] == 95
    np.testing.assert_allclose(noisy.iloc[0, 1:].tolist(), [1 / 3] * 6)
    shown = encoder.set_output(transform="pandas").transform(table)
    assert list(shown.columns) == list(back.columns)


def test_noisy_shares_add_up_and_are_nearer_to_the_true_ones():
    encoder = PublicEncoder({"work": WORK, "code": [1, 2, None]}).fit(people())
    rows = encoder.transform(people())
    true = encoder.inverse_transform(rows.mean(axis=0, keepdims=True)).to_numpy()
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=(500, 6))
    back = encoder.inverse_transform(rows.mean(axis=0) + noise).to_numpy()
    assert (back >= 0).all()
    np.testing.assert_allclose(back.reshape(500, 2, 3).sum(axis=2), 1.0)
    error = np.linalg.norm(back - true, axis=1)
    assert (error <= np.linalg.norm(noise, axis=1) * np.sqrt(2) + 1e-9).all()
    whole = encoder.inverse_transform(rows).to_numpy()
    np.testing.assert_allclose(rows[:, :3].argmax(axis=1), whole[:, :3].argmax(axis=1))
    np.testing.assert_allclose(np.sort(whole[:, :3], axis=1), np.tile([0, 0, 1.0], (len(rows), 1)))
    for far in (np.full((2, 6), 1.7e308), [[1.7e308, -1.7e308, 0, 1, 2, 3]]):
        shares = encoder.inverse_transform(far).to_numpy()
        np.testing.assert_allclose(shares.reshape(-1, 2, 3).sum(axis=2), 1.0)


def test_a_list_fits_a_data_frame_by_the_order_of_its_columns():
    table = people()[["age", "work"]]
    encoder = PublicEncoder([(15, 95), WORK])
    rows = encoder.fit_transform(table)
    named = PublicEncoder({"age": (15, 95), "work": WORK}).fit(table)
    assert rows.tobytes() == named.transform(table).tobytes()
    assert list(encoder.get_feature_names_out()) == list(named.get_feature_names_out())
    # From then on the names count, and without a data frame none do.
    assert encoder.transform(table[["work", "age"]]).tobytes() == rows.tobytes()
    with pytest.raises(ValueError, match="no column 'work'"):
        encoder.transform(table[["age"]])
    assert encoder.fit_transform(table.to_numpy()).tobytes() == rows.tobytes()
    assert list(encoder.get_feature_names_out())[0] == "0"
    with pytest.raises(ValueError, match="no column 0"):
        encoder.fit(people())


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
        np.testing.assert_array_equal(found[-1, :4], 0)


def test_clusters_of_a_mixed_table():
    """Three kinds of people, told apart by a number and two categories."""
    rng = np.random.default_rng(0)
    kind = np.arange(3000) % 3
    table = pandas.DataFrame(
        {
            "age": np.array([25, 45, 75])[kind] + rng.normal(0, 4, 3000),
            "work": np.array(["part", "full", "none"])[kind],
            "code": np.where(rng.random(3000) < 0.9, np.array([1, 2, 2])[kind], 1),
        }
    )
    encoder = PublicEncoder(SCHEMA)
    bounds = encoder.output_bounds
    model = make_pipeline(encoder, DPKMeans(3, epsilon=1.0, bounds=bounds, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    centers = encoder.inverse_transform(model[-1].cluster_centers_).sort_values("age")
    np.testing.assert_allclose(centers["age"], [25, 45, 75], atol=2)
    assert centers[["work_part", "work_full", "work_none"]].to_numpy().argmax(axis=1).tolist() == [
        0, 1, 2,
    ]  # fmt: skip


def test_copies_and_pickles():
    table = people()
    encoder = PublicEncoder(SCHEMA).fit(table)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.transform(table).tobytes() == encoder.transform(table).tobytes()
    assert clone(encoder).schema == SCHEMA and not hasattr(clone(encoder), "n_features_in_")
    assert list(encoder.feature_names_in_) == list(SCHEMA)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"schema": None}, TypeError, "schema must be a dict"),
        ({"schema": {}}, ValueError, "schema must have a column"),
        ({"schema": {"age": 3}}, TypeError, "column 'age' must be a pair"),
        ({"schema": {"age": (1, 2, 3)}}, TypeError, "column 'age' must be a pair"),
        ({"schema": {"age": (2, 1)}}, ValueError, "column 'age': bounds: low must not"),
        ({"schema": {"age": (0, np.inf)}}, ValueError, "column 'age': bounds: low and high"),
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
        (people(5)[["age", "work"]], ValueError, "no column 'code'"),
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


class Loud:
    """A value that warns whenever it is asked for something."""

    def __float__(self):
        warnings.warn("secret", stacklevel=1)
        return 3.0

    def __hash__(self):
        warnings.warn("secret", stacklevel=1)
        return 0

    def __eq__(self, other):
        warnings.warn("secret", stacklevel=1)
        return False


ODD = [np.complex128(3 + 2j), Loud(), [1], b"1", np.datetime64(5, "s"), pd.Timedelta(5), object()]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
def test_an_odd_value_moves_no_other_row_and_runs_no_code(odd):
    encoder = PublicEncoder({"a": (0, 10), "c": ["a", "b"]})
    rows = [[1.0, "a"], [2.0, "b"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = encoder.fit_transform(rows)
        found = encoder.transform([*rows, [odd, odd]])
    assert np.array_equal(found[:2], known) and not found[2].any()


@pytest.mark.parametrize("row", [[], [1.0], [1.0, "a", 2.0], 7.0, None, [[1.0], ["a"]]])
def test_a_row_of_another_length_moves_no_other_row(row):
    encoder = PublicEncoder({"a": (0, 10), "c": ["a", "b"]})
    known = encoder.fit_transform([[1.0, "a"]])
    found = encoder.transform([[1.0, "a"], row])
    assert np.array_equal(found[:1], known) and not found[1].any()


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([1, 2, 1], [[1, 2, 3], ["1", "2", "3"], [1.0, 2.0, 3.0]]),
        ([True, False, True], [[True, False]]),
        ([2**53 + 1, 2, 2], [[2**53 + 1, 2]]),
    ],
)
def test_the_type_of_a_column_decides_about_no_row(values, kinds):
    """A text, or a missing value, in one row gives the whole column another type."""
    for kind in kinds:
        encoder = PublicEncoder({"c": kind})
        known = encoder.fit_transform(pd.DataFrame({"c": values}))
        assert known.any(axis=1).all()
        for typed in (
            pd.Series([*map(str, values), "x"]),
            pd.Series([*values, None]),
            pd.Series([*values, "x"], dtype=object),
        ):
            found = encoder.transform(pd.DataFrame({"c": typed}))
            assert np.array_equal(found[:3], known) and not found[3].any()


def test_categories_that_are_compared_alike_are_refused():
    for kind in ([1, 1.0], [2**53, 2.0**53], [True, "True"]):
        with pytest.raises(ValueError, match="categories must be different"):
            PublicEncoder({"c": kind}).fit([["1"]])


def test_a_text_is_the_category_that_it_spells():
    encoder = PublicEncoder({"c": ["01", "1", 1, 2**53, 2**53 + 1]})
    found = encoder.fit_transform([["01"], ["1"], [1.0], [2**53], [2**53 + 1], ["001"]])
    assert found[:5].argmax(axis=1).tolist() == [0, 1, 2, 3, 4]
    assert found[5].argmax() == 2  # it is no category, and counts as the number that it reads as
