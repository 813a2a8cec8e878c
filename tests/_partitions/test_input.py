"""What a fit knows of a table before it reads it."""

import numpy as np

from sklearn_dp._partitions._steps import Columns, EngineInput


def test_nothing_starts_before_the_engine_is_asked_for():
    started = []

    def start(n_jobs):
        started.append(1)
        return "engine"

    columns = Columns(2, ("a", "b"), np.dtype(np.float32))
    found = EngineInput("pieces", columns, start, lambda function, example: None)
    assert (found.n_features, found.dtype, found.feature_names.tolist()) == (
        2,
        np.float32,
        ["a", "b"],
    )
    assert found.feature_names.dtype == object and not started
    assert found.engine == "engine" and found.engine == "engine" and started == [1]


def test_columns_without_names():
    found = EngineInput("pieces", Columns(1, None, np.dtype(np.float64)), list, list)
    assert found.shape[1] == 1 and np.isnan(found.shape[0])
    assert found.feature_names is None
