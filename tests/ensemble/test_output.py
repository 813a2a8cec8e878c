"""What is read off fitted estimators: public shapes, fixed signs, and back onto a fresh one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import RobustScaler, StandardScaler

from sklearn_dp import SampleAndAggregate
from sklearn_dp.ensemble._output import Output, WithTarget, probe, target_column

NAMES = ("coef_", "intercept_")


def linear_rows(n=200):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return np.column_stack([X, X @ [1.0, -2.0] + 0.5])


def test_the_target_is_the_last_column():
    fitted = WithTarget(Ridge(1e-9)).fit(linear_rows()).fitted_
    assert fitted.coef_ == pytest.approx([1, -2], abs=1e-6)
    rows = np.column_stack([linear_rows()[:, :2], np.arange(200) % 2])
    fitted = WithTarget(LogisticRegression(), classes=["no", "yes"]).fit(rows).fitted_
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_rows_with_other_labels_are_left_out():
    rows = np.column_stack([linear_rows()[:, :2], np.arange(200) % 2])
    other = np.vstack([rows, np.column_stack([np.full((50, 2), 9.0), np.full(50, -1.0)])])
    first, second = (
        WithTarget(LogisticRegression(), classes=["no", "yes"]).fit(each).fitted_
        for each in (rows, other)
    )
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.intercept_, second.intercept_)


class Unhashable:
    def __hash__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "odd",
    ["x", b"x", None, np.nan, 0.5, 2**70, pd.NA, (), [1, 2], [], {}, np.ones(2), Unhashable()],
    ids=lambda odd: type(odd).__name__,
)
def test_the_label_of_one_row_does_not_change_those_of_others(odd):
    """NumPy makes texts of all entries of a list for the sake of one."""
    labels = np.array([2**53 + 1, 3])
    found = target_column([2**53 + 1, 3, 3, odd, [3], True], 6, labels)
    assert found.tolist() == [0, 1, 1, -1, 1, -1]
    numbers = target_column([np.float32(0.1), 1, "2.5"], 3)
    assert numbers.tolist() == [float(np.float32(0.1)), 1.0, 2.5]


def test_a_matrix_of_labels_is_refused_and_a_list_in_a_list_is_no_label():
    with pytest.raises(ValueError, match="^y must be a vector"):
        target_column(np.eye(2), 2, np.array([0, 1]))
    assert target_column([[0, 1], [1], 0], 3, np.array([0, 1])).tolist() == [-1, 1, 0]


def test_a_probe_knows_the_shapes_before_any_data_and_a_vector_makes_the_round_trip():
    output = probe(WithTarget(Ridge()), 3, NAMES, ())
    assert (output.names, output.shapes, output.size) == (NAMES, ((2,), ()), 3)
    vector = output.read(WithTarget(Ridge(1e-9)).fit(linear_rows()))
    assert vector == pytest.approx([1, -2, 0.5], abs=1e-6)
    fresh = Ridge()
    output.write(fresh, vector)
    assert np.array_equal(fresh.coef_, vector[:2])
    assert (type(fresh.intercept_), fresh.intercept_) == (float, vector[2])


def test_another_shape_is_refused():
    output = probe(RobustScaler(with_scaling=False), 4, ("center_",), ())
    with pytest.raises(ValueError, match="another shape"):
        output.read(RobustScaler(with_scaling=False).fit(np.zeros((5, 3))))


def test_signs_are_fixed_by_a_public_direction():
    X = np.random.default_rng(1).normal(size=(300, 3)) * [5.0, 2.0, 1.0]
    output = probe(PCA(2), 3, ("components_",), ("components_",))
    fitted = PCA(2).fit(X)
    vector = output.read(fitted)
    fitted.components_ = -fitted.components_
    assert np.array_equal(output.read(fitted), vector)
    plain = probe(PCA(2), 3, ("components_",), ())
    assert np.array_equal(plain.read(fitted), fitted.components_.ravel())


class Nothing(BaseEstimator):
    """Learns nothing, and has a property that asks for what is not there."""

    def fit(self, rows):
        return self

    @property
    def lost_(self):
        raise RuntimeError(f"my rows are {self.rows}")


class Refuses(BaseEstimator):
    """Says what its rows are."""

    def fit(self, rows):
        raise RuntimeError(f"my rows are {rows}")


@pytest.mark.parametrize(
    "estimator, names, words",
    [
        (Refuses(), ("center_",), "^estimator: it could not be fitted to dummy data.$"),
        (WithTarget(Ridge()), ("center_",), "not center_ as numbers, but has coef_, intercept_"),
        (RobustScaler(with_centering=False), ("center_",), "not center_ .*but has scale_.$"),
        (PCA(2), None, "none of the usual attributes as numbers, but has components_, "),
        (Nothing(), None, "but has none at all.$"),
        (KMeans(2), None, "cluster_centers_, .*order: use DPKTupleKMeans.$"),
    ],
    ids=str,
)
def test_an_estimator_without_these_numbers_is_refused_in_our_words(estimator, names, words):
    with pytest.raises(ValueError, match=words) as error:
        probe(estimator, 3, names, ())
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    "estimator, names",
    [
        (WithTarget(LinearRegression()), ("coef_", "intercept_")),
        (RobustScaler(), ("center_", "scale_")),
        (RobustScaler(with_scaling=False), ("center_",)),
        (StandardScaler(), ("mean_", "scale_")),
        (EmpiricalCovariance(), ("location_", "covariance_")),
    ],
    ids=str,
)
def test_what_is_read_by_default(estimator, names):
    assert probe(estimator, 3, None, ()).names == names


def test_rows_too_wide_for_a_probe_are_refused_before_any_are_made():
    """128 rows of ten million columns would take ten gigabytes."""
    with pytest.raises(ValueError, match="n_features, the columns of X, must be at most 524,288"):
        probe(PCA(2), 10**7, ("components_",), ())


def test_coefficients_that_may_all_be_zero_are_named():
    output, error = Output(("intercept_", "coef_"), ((), (2, 2)), ()), np.ones(5)
    assert output.hidden(np.array([0.0, 9.0, -9.0, 1.0, 1.0]), error) == "ok"
    words = output.hidden(np.array([9.0, 9.0, -1.0, 1.0, 1.0]), error)
    assert "3 of the 4 coefficients" in words and "(coef_[0, 1], coef_[1, 0], coef_[1, 1])" in words
    assert Output(("center_",), ((2,),), ()).hidden(np.zeros(2), np.ones(2)) == "ok"


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
def test_a_regression_whose_coefficients_are_noise_is_not_called_ok():
    """Columns that say next to nothing of the target: predictions are far worse than its mean."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(9000, 6)), rng.normal(size=9000)
    for weight, ok in ((0.0, False), (1.0, True)):
        model = SampleAndAggregate(LinearRegression(), epsilon=4.0, random_state=0)
        model.fit(X, weight * X.sum(axis=1) + noise + 5)
        assert model.trustworthy_ == ok
        assert ok or "coefficients cannot be told from zero" in model.status_
