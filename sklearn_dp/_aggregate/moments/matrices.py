"""Released axes and scales as the matrices that scikit-learn has.

Post-processing. A shape travels through this package as orthonormal axes and standard deviations,
of which a covariance, its inverse and a factor of that follow without a matrix being inverted, at
any condition number.
"""

import numpy as np
from scipy.linalg import rq


def as_matrices(
    axes: np.ndarray, scales: np.ndarray, form: str
) -> tuple[np.ndarray | float, np.ndarray | float, np.ndarray | float]:
    """Covariance, precision, and a factor of the precision, in the shapes of a form of `FORMS`.

    Matrices (d, d); for "diag" their diagonals, for "spherical" one number. The factor P has
    P P^T = precision and, as scikit-learn wants it, is upper triangular. The axes are orthonormal
    columns, the scales the standard deviations along them.

    >>> as_matrices(np.eye(2), np.array([2.0, 2.0]), "spherical")
    (np.float64(4.0), np.float64(0.25), np.float64(0.5))
    """
    if form == "spherical":
        return scales[0] ** 2, scales[0] ** -2.0, 1 / scales[0]
    if form == "diag":
        return scales**2, scales**-2.0, 1 / scales
    factor, inverse = axes * scales, axes / scales
    # Upper triangular, of positive diagonal: P P^T is the precision.
    upper, _ = rq(inverse)
    return (
        symmetric(factor @ factor.T),
        symmetric(inverse @ inverse.T),
        upper * np.where(np.diag(upper) < 0, -1.0, 1.0),
    )


def matrix_errors(
    covariance: np.ndarray | float, second: np.ndarray, form: str
) -> np.ndarray | float:
    """Standard errors of a covariance, of the shape of it, from those of the variances.

    `second` has those of the columns, in parts of them, of shape (d,). With rows a_i of a factor,
    C = A A^T and a symmetric error E of variance s^2 on the diagonal and s^2 / 2 off it, the error
    of C_ij is a_i^T E a_j, of variance s^2 (C_ii C_jj + C_ij^2) / 2; s_i s_j takes the place of s^2
    where the columns differ.

    >>> matrix_errors(np.diag([1.0, 4.0]), np.full(2, 0.1), "full").round(3).tolist()
    [[0.1, 0.141], [0.141, 0.4]]
    """
    unknown = np.isinf(second)
    if unknown.all():
        return np.full_like(covariance, np.inf)
    if unknown.any() and form in ("full", "tied"):
        known = matrix_errors(covariance, np.where(unknown, 0.0, second), form)
        return np.where(unknown[:, None] | unknown, np.inf, known)
    if form in ("diag", "spherical"):
        return covariance * (second if form == "diag" else second[0])
    spread, both = np.diag(covariance), np.sqrt(np.outer(second, second))
    return both * np.sqrt((np.outer(spread, spread) + covariance**2) / 2)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The symmetric matrix next to one that is symmetric but for rounding."""
    return (matrix + matrix.T) / 2
