"""Columns scaled by public bounds: a MinMaxScaler that looks at no value."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_dp import DPKMeans
from sklearn_dp.audit import replay_audit
from sklearn_dp.preprocessing import PublicScaler

LOW, HIGH = np.array([15.0, 0.0, -3.0]), np.array([95.0, 2e5, -3.0])


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(15, 95, n), rng.uniform(0, 2e5, n), np.full(n, -3.0)])


@parametrize_with_checks([PublicScaler((-3.0, 3.0)), PublicScaler((0, 1), clip=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("target", [(0, 1), (-2.0, 5.0)])
def test_it_is_the_scaler_of_scikit_learn_fitted_to_the_bounds(target):
    X = people()
    ours = PublicScaler((LOW, HIGH), feature_range=target).fit(X)
    theirs = MinMaxScaler(target).fit([LOW, HIGH])
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    np.testing.assert_allclose(ours.scale_, theirs.scale_)
    np.testing.assert_allclose(ours.min_, theirs.min_)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, rtol=1e-12)
    assert ours.transform(X.astype("f4")).dtype == "f4"
    outside = np.array([[1e300, -5.0, 0.0]])
    inside = PublicScaler((LOW, HIGH), feature_range=target, clip=True).fit(X).transform(outside)
    np.testing.assert_array_equal(inside[0, :2], [target[1], target[0]])


def test_tables_in_parts_and_named_columns():
    pandas = pytest.importorskip("pandas")
    X = people()
    scaler = PublicScaler((LOW, HIGH)).fit([X[:100], X[100:]])
    assert scaler.n_features_in_ == 3
    parts = scaler.transform([X[:100], X[100:]])
    assert np.vstack(parts).tobytes() == scaler.transform(X).tobytes()
    frame = pandas.DataFrame(X, columns=["age", "salary", "constant"])
    scaled = PublicScaler((LOW, HIGH)).set_output(transform="pandas").fit_transform(frame)
    assert list(scaled.columns) == list(frame.columns)
    named = PublicScaler((LOW, HIGH)).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = named.inverse_transform(scaled.to_numpy())
    np.testing.assert_allclose(back, X)


def test_a_private_step_behind_it_keeps_its_guarantee():
    X = people(60)
    model = make_pipeline(PublicScaler((LOW, HIGH)), DPKMeans(2, epsilon=50.0, bounds=(0, 1)))
    inner = model[0].fit_transform(X)
    assert replay_audit(DPKMeans(2, epsilon=50.0, bounds=(0, 1)), inner).violations == []
    centers = model[0].inverse_transform(model.fit(X)[-1].cluster_centers_)
    assert (centers >= LOW - 1e-9).all() and (centers <= HIGH + 1e-9)[:, :2].all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bounds": 3.0}, TypeError, "bounds must be a pair"),
        ({"bounds": None}, TypeError, "bounds must be a pair"),
        ({"bounds": (1, 0)}, ValueError, "low must not exceed high"),
        ({"bounds": ([0, 1], 2)}, ValueError, "bounds: low and high"),
        ({"bounds": (0, 1), "feature_range": (1, 1)}, ValueError, "feature_range"),
        ({"bounds": (0, 1), "feature_range": 3}, ValueError, "feature_range"),
        ({"bounds": (0, 1), "clip": "yes"}, TypeError, "clip"),
    ],
)
def test_bad_parameters_are_named(options, error, words):
    with pytest.raises(error, match=words):
        PublicScaler(**options).fit(people(5))
