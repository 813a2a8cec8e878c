"""What is read off fitted estimators, targets in parts, and methods of the released estimator."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import RobustScaler

from sklearn_dp import SampleAndAggregate
from sklearn_dp._partitions import engine_of
from sklearn_dp._partitions._rowwise import _released
from sklearn_dp.ensemble._aggregation import WithTarget, probe
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "transform",
    "fit_transform",
    "score",
)


@pytest.mark.parametrize(
    "inner, there",
    [
        (Ridge(), {"predict", "score"}),
        (LogisticRegression(), {"predict", "predict_proba", "decision_function", "score"}),
        (RobustScaler(), {"transform", "fit_transform"}),
        (PCA(1), {"transform", "fit_transform", "score", "score_samples"}),
    ],
    ids=lambda value: "" if isinstance(value, set) else type(value).__name__,
)
def test_a_method_is_there_if_the_inner_estimator_has_it(inner, there):
    model = SampleAndAggregate(inner)
    assert {name for name in METHODS if hasattr(model, name)} == there


def test_answers_are_those_of_the_released_estimator_and_finite_for_huge_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    model = SampleAndAggregate(
        Ridge(),
        output=("coef_", "intercept_"),
        output_bounds=10.0,
        n_blocks=60,
        epsilon=20.0,
        random_state=0,
    ).fit(X, X @ [1.0, -2.0])
    np.testing.assert_allclose(model.predict(X), model.estimator_.predict(X), rtol=1e-12)
    assert model.score(X, X @ [1.0, -2.0]) == model.estimator_.score(X, X @ [1.0, -2.0])
    assert np.isfinite(model.predict(np.array([[1e300, -1e300]]))).all()


ROWS = np.random.default_rng(0).normal(size=(90, 2))
PARTS = [ROWS[:7], ROWS[7:7], ROWS[7:40], ROWS[40:]]
IN_PARTS = {
    "labels": (
        LogisticRegression(),
        ("coef_", "intercept_"),
        ("predict", "predict_proba", "decision_function"),
    ),
    "line": (Ridge(), ("coef_", "intercept_"), ("predict",)),
    "axes": (
        PCA(1),
        ("mean_", "components_", "explained_variance_", "noise_variance_"),
        ("transform", "score_samples"),
    ),
}


@cache
def released(name):
    inner, output, _ = IN_PARTS[name]
    model = SampleAndAggregate(inner, output=output, output_bounds=5.0, aggregator="mean")
    model.set_params(n_blocks=4, epsilon=50.0, random_state=0, classes=["no", "yes"])
    model.set_params(ledger=PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(
            ROWS, np.where(ROWS[:, 0] > 0, "yes", "no") if name == "labels" else ROWS[:, 0]
        )


def same(found, expected):
    """But for the last bits, which products of matrices of other sizes may have otherwise."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        return np.allclose(found, expected, rtol=1e-12, atol=1e-12)
    return np.array_equal(found, expected)


@pytest.mark.parametrize("name", IN_PARTS)
def test_parts_have_the_answers_of_one_table(name):
    model, methods = released(name), IN_PARTS[name][2]
    for method in methods:
        assert same(getattr(model, method)(PARTS), getattr(model, method)(ROWS))
        assert not len(getattr(model, method)([ROWS[:0]]))
    with pytest.raises(ValueError, match="X has 1 features, but SampleAndAggregate"):
        getattr(model, methods[0])([ROWS[:, :1]])
    with pytest.raises(TypeError, match="^X must be in memory here"):
        model.score(PARTS, ROWS[:, 0])  # of which kind, a mean or not, nobody knows


def test_copies_that_travel_hold_what_was_released():
    model = released("labels")
    copied = _released(model, engine_of(PARTS), "predict")
    assert copied.ledger is None and copied.random_state is None and model.ledger is not None
    assert vars(copied).keys() <= set(model.get_params(deep=False)) | set(model.__getstate__())
    assert ROWS[3:4].tobytes() not in pickle.dumps(copied)


NAMES = ("coef_", "intercept_")


def linear_rows(n=200):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return np.column_stack([X, X @ [1.0, -2.0] + 0.5])


def test_a_probe_knows_the_shapes_before_any_data_and_a_vector_makes_the_round_trip():
    output = probe(WithTarget(Ridge()), 3, NAMES, ())
    assert (output.names, output.shapes, output.size) == (NAMES, ((2,), ()), 3)
    vector = output.read(WithTarget(Ridge(1e-9)).fit(linear_rows()))
    assert vector == pytest.approx([1, -2, 0.5], abs=1e-6)
    fresh = Ridge()
    output.write(fresh, vector)
    assert np.array_equal(fresh.coef_, vector[:2])
    assert (type(fresh.intercept_), fresh.intercept_) == (float, vector[2])


def test_signs_are_fixed_by_a_public_direction():
    X = np.random.default_rng(1).normal(size=(300, 3)) * [5.0, 2.0, 1.0]
    output = probe(PCA(2), 3, ("components_",), ("components_",))
    fitted = PCA(2).fit(X)
    vector = output.read(fitted)
    fitted.components_ = -fitted.components_
    assert np.array_equal(output.read(fitted), vector)
    plain = probe(PCA(2), 3, ("components_",), ())
    assert np.array_equal(plain.read(fitted), fitted.components_.ravel())


RNG = np.random.default_rng(0)
X = RNG.normal(size=(301, 3))
Y = X @ [1.0, -2.0, 0.0] + 3
LABELS = np.where(Y > 3, "a", "b")
GROUPS = RNG.integers(0, 90, len(X))
SETTINGS = {"epsilon": 50.0, "n_blocks": 12, "aggregator": "mean", "output_bounds": 5.0}
MODELS = {
    "median": (SampleAndAggregate(**SETTINGS, random_state=0), None),
    "ball": (SampleAndAggregate(epsilon=50.0, n_blocks=12, random_state=0), None),
    "copies": (
        SampleAndAggregate(**SETTINGS, bounds=2.0, sampling="with_replacement", random_state=0),
        None,
    ),
    "line": (
        SampleAndAggregate(Ridge(), output=("coef_", "intercept_"), **SETTINGS, random_state=0),
        Y,
    ),
    "labels": (
        SampleAndAggregate(
            LogisticRegression(), output=("coef_",), classes=["a", "b"], **SETTINGS, random_state=0
        ),
        LABELS,
    ),
}


def cut(values, n_parts):
    """Uneven parts, some of them empty."""
    if values is None:
        return None
    ends = np.sort(np.random.default_rng(n_parts).integers(0, len(X) + 1, n_parts - 1))
    return np.split(values, ends)


def fitted_bits(name, rows, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(MODELS[name][0]).fit(rows, y, **options)
    return {key: pickle.dumps(value) for key, value in found.__getstate__().items()}


@pytest.mark.parametrize("name", MODELS)
def test_parts_have_the_bits_of_one_array(name):
    y = MODELS[name][1]
    known = fitted_bits(name, X, y)
    assert fitted_bits(name, cut(X, 7), cut(y, 7)) == known
    known = fitted_bits(name, X.astype(np.float32), y, groups=GROUPS)
    assert known == fitted_bits(
        name, cut(X.astype(np.float32), 7), cut(y, 7), groups=cut(GROUPS, 7)
    )


def test_targets_are_refused_by_name_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-4))
    model, before = clone(MODELS["line"][0]).set_params(ledger=ledger), ledger.remaining
    for bad, kind, words in (
        (None, ValueError, "^y must be given"),
        (Y, TypeError, "^y must be a list .* not ndarray"),
        (3.0, TypeError, "^y must be a list .* not float"),
        (cut(Y, 3), ValueError, "^y must be a list .* number differs"),
    ):
        with pytest.raises(kind, match=words):
            model.fit(cut(X, 2), bad)
    with pytest.raises(ValueError, match="^y must be given"):
        model.fit_partitions(iter(cut(X, 2)))
    with pytest.raises(TypeError, match="^y must be a list .* not ndarray"):
        model.fit_partitions(cut(X, 2), y=Y)
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit_partitions(cut(X, 2), y=cut(Y, 2), sample_weight=cut(Y, 2))
    assert ledger.remaining == before


@pytest.mark.parametrize(
    "spoiled", [lambda y: y[1:], lambda y: np.where(y == y[-1], np.nan, y), lambda y: ["7319"] * 7]
)
def test_a_bad_target_of_a_part_is_told_by_its_number(spoiled):
    parts = cut(X, 2)
    y = [part @ [1.0, -2.0, 0.0] for part in parts]
    y[1] = spoiled(y[1])
    with pytest.raises(PartError, match="^y, part 1: it must") as caught:
        clone(MODELS["line"][0]).fit(parts, y)
    error = caught.value
    assert "7319" not in str(error) and error.__cause__ is None and error.__context__ is None
