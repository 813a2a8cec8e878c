"""What is read off fitted estimators: public shapes, fixed signs, and back onto a fresh one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from sklearn_dp.ensemble._output import WithTarget, probe, target_column

NAMES = ("coef_", "intercept_")


def linear_rows(n=200):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return np.column_stack([X, X @ [1.0, -2.0] + 0.5])


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
