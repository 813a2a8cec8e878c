"""Nearest centers of rows, and a noisy sum of the distances to them.

Labels are post-processing of released centers, and not private where the rows are. The sum is a
release: `BaseDPCenters.private_score` pays for it.
"""

from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from .._aggregate.shared.rows import ERROR_STEPS, Rows, nearest, square_sums
from .._aggregate.shared.single_rows import narrowed, row_guard
from .._aggregate.shared.sparse_rows import of_chunks
from .._aggregate.shared.table import Part
from .._privacy._domain import Domain
from .._privacy._grid import Grid

__all__ = ["labels_of_part", "nearest_point", "noisy_cost"]


@row_guard
def labels_of_part(part: Part, centers: np.ndarray) -> np.ndarray:
    """The nearest center of each row of a part."""
    return nearest_point(part.source.read(), centers)


def nearest_point(X: Any, points: np.ndarray) -> np.ndarray:
    """Index of the nearest of some released points for each row, none of no rows.

    Parameters
    ----------
    X : ndarray or SparseRows of float of shape (n, d), finite
    points : ndarray of shape (m, d)

    Returns
    -------
    index : ndarray of int32 of shape (n,)
    """
    if not len(X):  # scikit-learn's function refuses what a private fit must not
        return np.empty(0, dtype=np.int32)
    points = narrowed(points, X.dtype)
    return of_chunks(X, lambda rows: pairwise_distances_argmin(rows, points)).astype(np.int32)


def noisy_cost(session, X, units, centers, cap):
    """Noisy sum of squared distances to the nearest center, each at most cap squared.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds "score".
    X : ndarray of shape (n, d)
    units : Units
    centers : ndarray of shape (k, d)
        Released.
    cap : float
        Public or released.

    Returns
    -------
    cost : float
    """
    middle = centers.mean(axis=0)
    reach = float(np.linalg.norm(centers - middle, axis=1).max(initial=0.0)) + cap
    # Farther rows are moved to the sphere of that radius: there, too, no center is nearer than
    # cap, so what they count does not change.
    rows = Rows.quantise(X, Domain(middle, reach))
    unit = Grid.for_radius(reach).unit
    _, squared = nearest(rows, np.rint((centers - middle) / unit))
    labels = np.zeros(len(squared), dtype=np.int64)
    steps = square_sums(labels, squared, (cap / unit) ** 2, 1, units)
    # A row counts between 0 and `ERROR_STEPS` steps, and so does a unit.
    noisy = session.gaussian("score", steps, sensitivity=ERROR_STEPS, unit=cap**2 / ERROR_STEPS)
    return float(noisy[0])
