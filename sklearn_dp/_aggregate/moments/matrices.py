"""Released axes and scales as the matrices that scikit-learn has.

Post-processing. A shape travels through this package as orthonormal axes and standard deviations,
of which a covariance, its inverse and a factor of that follow without a matrix being inverted, at
any condition number.
"""

import numpy as np
from scipy.linalg import rq

__all__ = ["as_matrices", "symmetric"]


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


def symmetric(matrix):
    """The symmetric matrix next to one that is symmetric but for rounding."""
    return (matrix + matrix.T) / 2
