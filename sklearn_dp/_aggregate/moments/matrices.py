"""Released axes and scales as the matrices that scikit-learn has.

Post-processing. A shape travels through this package as orthonormal axes and standard deviations,
of which a covariance, its inverse and a factor of that follow without a matrix being inverted, at
any condition number.
"""

import numpy as np
from scipy.linalg import rq

__all__ = ["as_matrices", "matrix_errors", "symmetric"]


def as_matrices(axes, scales, form):
    """Covariance, precision, and a factor of the precision, in the shapes of a form.

    Parameters
    ----------
    axes : ndarray of shape (d, d)
        Orthonormal columns.
    scales : ndarray of shape (d,)
        Standard deviations along them.
    form : str, one of `FORMS`

    Returns
    -------
    covariance, precision, factor : ndarray or float
        Matrices of shape (d, d); for "diag" their diagonals, for "spherical" one number. The
        factor P has P P^T = precision and, as scikit-learn wants it, is upper triangular.

    Examples
    --------
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


def matrix_errors(covariance, second, form):
    """Standard errors of a covariance, of those of the second moment where it is whitened.

    With rows a_i of a factor, C = A A^T and a symmetric error E of variance s^2 on the diagonal and
    s^2 / 2 off it, the error of C_ij is a_i^T E a_j, of variance s^2 (C_ii C_jj + C_ij^2) / 2.

    Parameters
    ----------
    covariance : ndarray or float
        As :func:`as_matrices` gives it.
    second : float
        Of an entry of the whitened second moment, on the diagonal.
    form : str, one of `FORMS`

    Returns
    -------
    errors : ndarray or float
        Of the shape of `covariance`.

    Examples
    --------
    >>> matrix_errors(np.diag([1.0, 4.0]), 0.1, "full").round(3).tolist()
    [[0.1, 0.141], [0.141, 0.4]]
    """
    if form in ("diag", "spherical"):
        return covariance * second
    spread = np.diag(covariance)
    return second * np.sqrt((np.outer(spread, spread) + covariance**2) / 2)


def symmetric(matrix):
    """The symmetric matrix next to one that is symmetric but for rounding."""
    return (matrix + matrix.T) / 2
