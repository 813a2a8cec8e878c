"""Columns scaled by private means and standard deviations."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from sklearn_dp import DPStandardScaler
from sklearn_dp.exceptions import UtilityWarning

MEAN, STD = [45.0, 43_471.0, 36.0], [15.0, 28_580.0, 9.0]


def people(n=20_000, seed=0):
    """Ages, salaries and hours; of the laws that `MEAN` and `STD` are of."""
    rng = np.random.default_rng(seed)
    pay = rng.lognormal(10.5, 0.6, n)
    return np.column_stack([rng.normal(45, 15, n), pay, rng.normal(36, 9, n)])


@pytest.mark.parametrize(
    "options", [{}, {"with_mean": False}, {"with_std": False}, {"with_mean": False, "with_std": 0}]
)
@pytest.mark.parametrize("bounds", [None, ([-40, 0, -20], [130, 4e5, 90])])
def test_it_is_the_scaler_of_scikit_learn(options, bounds):
    X = people()
    theirs = StandardScaler(**{name: bool(value) for name, value in options.items()}).fit(X)
    ours = DPStandardScaler.from_sklearn(theirs, epsilon=8.0, bounds=bounds, random_state=0).fit(X)
    assert ours.status_ == "ok" and ours.trustworthy_ and set(ours.column_status_) == {"ok"}
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), rtol=0.02)
    if theirs.with_std:
        np.testing.assert_allclose(ours.scale_, X.std(axis=0), rtol=0.05)
        np.testing.assert_allclose(ours.var_, ours.scale_**2)
        np.testing.assert_allclose(ours.var_std_error_, 2 * ours.scale_ * ours.scale_std_error_)
    else:
        assert ours.scale_ is ours.var_ is ours.scale_std_error_ is ours.var_std_error_ is None
    scaled = ours.transform(X)
    np.testing.assert_allclose(ours.inverse_transform(scaled), X, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(ours.to_sklearn().transform(X), scaled)
    assert abs(ours.size_ - len(X)) < 5 * ours.size_std_error_


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sparse_rows_are_scaled_and_stay_sparse(dtype):
    """The bits of the dense copy; centers would make them dense."""
    rng = np.random.default_rng(0)
    X = (rng.exponential(9, (6000, 3)) * (rng.random((6000, 3)) < 0.3)).astype(dtype)
    model = DPStandardScaler(with_mean=False, random_state=0)
    dense, sparse = clone(model).fit(X), clone(model).fit(csr_matrix(X))
    assert np.array_equal(sparse.scale_, dense.scale_)
    assert np.array_equal(sparse.mean_, dense.mean_)
    scaled = sparse.transform(csr_matrix(X))
    assert issparse(scaled) and scaled.dtype == X.dtype
    np.testing.assert_allclose(scaled.toarray(), dense.transform(X), rtol=1e-6)
    np.testing.assert_allclose(sparse.inverse_transform(scaled).toarray(), X, rtol=1e-6)
    with pytest.raises(TypeError, match="[Ss]parse"):
        DPStandardScaler().fit(csr_matrix(X))


def test_a_column_lost_in_the_noise_is_named():
    """In a box a million times too wide, where the rows are too few to find a narrower one."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(people(300), columns=["age", "pay", "hours"])
    wide = ([15, 0, 10], [75, 1e12, 60])
    with pytest.warns(UtilityWarning, match="mostly noise: pay|many times the spread of these"):
        model = DPStandardScaler(bounds=wide, random_state=0).fit(X)
    assert model.column_status_[1] in ("noise", "scale") and not model.trustworthy_
    assert model.scale_[1] > people(300)[:, 1].std()  # noise: an upper bound
    with pytest.warns(UtilityWarning, match="no spread found in these columns: age, pay, hours"):
        nothing = DPStandardScaler(random_state=0).fit(X[:50])
    assert nothing.mean_.tolist() == [0] * 3 and np.isinf(nothing.scale_std_error_).all()
    with pytest.warns(UtilityWarning, match="noise|too few"):
        assert not DPStandardScaler(bounds=1.0, epsilon=0.1).fit(np.ones((3, 2))).trustworthy_
