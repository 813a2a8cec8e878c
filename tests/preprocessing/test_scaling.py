"""What scalers make of rows: a function of each row alone, whatever the row is."""

import warnings

import numpy as np
import pytest

from sklearn_dp import DPRobustScaler, DPStandardScaler


@pytest.mark.parametrize("cls", [DPRobustScaler, DPStandardScaler])
def test_transformed_rows_depend_on_themselves_alone(cls):
    X = np.random.default_rng(0).normal(size=(2000, 3)) * [1, 1e9, 1e-9] + [0, 1e12, 5]
    model = cls(epsilon=5.0, random_state=0).fit(X)
    whole = model.transform(X)
    for place in (slice(0, 1), slice(7, 300)):
        assert model.transform(X[place]).tobytes() == whole[place].tobytes()
        assert model.transform(X[place].astype("f4")).dtype == "f4"
    for method in (model.transform, model.inverse_transform):
        assert np.isfinite(method(np.full((1, 3), 1.7e308))).all()
    np.testing.assert_allclose(model.inverse_transform(whole), X, rtol=1e-9, atol=1e-6)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    scaled = cls(epsilon=5.0, random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert list(scaled.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(scaled.to_numpy(), whole)
    # Centers have no names, and need none.
    named = cls(epsilon=5.0, random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = named.inverse_transform(whole)
    np.testing.assert_array_equal(back, model.inverse_transform(whole))
    assert list(named.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        named.inverse_transform(frame[["c", "b", "a"]])


@pytest.mark.parametrize("cls", [DPStandardScaler, DPRobustScaler])
@pytest.mark.filterwarnings("error::polars.exceptions.PerformanceWarning")
def test_a_lazy_frame_is_refused_without_looking_into_it(cls):
    polars = pytest.importorskip("polars")
    X = np.random.default_rng(0).normal(size=(2000, 3))
    scaler = cls(bounds=5.0, random_state=0).fit(X)
    with pytest.raises(TypeError, match="X must be in memory here, not LazyFrame"):
        scaler.inverse_transform(polars.DataFrame(X).lazy())
