"""What scalers make of rows: a function of each row alone, whatever the row is."""

import numpy as np
import pytest

from sklearn_dp import DPRobustScaler, DPStandardScaler


@pytest.mark.parametrize("cls", [DPStandardScaler, DPRobustScaler])
@pytest.mark.filterwarnings("error::polars.exceptions.PerformanceWarning")
def test_a_lazy_frame_is_refused_without_looking_into_it(cls):
    polars = pytest.importorskip("polars")
    X = np.random.default_rng(0).normal(size=(2000, 3))
    scaler = cls(bounds=5.0, random_state=0).fit(X)
    with pytest.raises(TypeError, match="X must be in memory here, not LazyFrame"):
        scaler.inverse_transform(polars.DataFrame(X).lazy())
