"""Matrices of released axes and scales."""

import numpy as np
import pytest
from sklearn.datasets import make_spd_matrix

from sklearn_dp._aggregate.moments.matrices import as_matrices, symmetric


def axes_of(matrix):
    values, axes = np.linalg.eigh(matrix)
    return axes, np.sqrt(values)


@pytest.mark.parametrize("form", ["full", "tied"])
def test_a_full_matrix_comes_back_with_its_inverse_and_a_triangular_factor(form):
    matrix = make_spd_matrix(4, random_state=0)
    covariance, precision, factor = as_matrices(*axes_of(matrix), form)
    assert covariance == pytest.approx(matrix)
    assert precision @ matrix == pytest.approx(np.eye(4), abs=1e-12)
    assert factor @ factor.T == pytest.approx(precision)
    assert (np.diag(factor) > 0).all()
    assert (np.tril(factor, -1) == 0).all()
    assert np.array_equal(covariance, covariance.T)
    assert np.array_equal(precision, precision.T)


def test_simpler_forms_have_simpler_shapes():
    scales = np.array([2.0, 2.0])
    assert as_matrices(np.eye(2), scales, "spherical") == (4.0, 0.25, 0.5)
    for found, expected in zip(
        as_matrices(np.eye(2), scales, "diag"), (4.0, 0.25, 0.5), strict=True
    ):
        assert found.tolist() == [expected] * 2


def test_symmetric_is_the_mean_with_the_transpose():
    assert symmetric(np.array([[1.0, 2.0], [4.0, 5.0]])).tolist() == [[1.0, 3.0], [3.0, 5.0]]
