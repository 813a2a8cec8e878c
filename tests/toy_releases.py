"""Releases of raw arrays, for estimators that are written to be audited."""

import numpy as np

from sklearn_dp._privacy import _grid
from sklearn_dp._privacy._grid import label_sums


def count(session, entry, units, rho=None):
    """A noisy number of units, of shape ()."""
    # One unit adds between 0 and `scale` steps of weight.
    weight = int(units.totals[0])
    return float(session.gaussian(entry, weight, sensitivity=units.scale, unit=units.step, rho=rho))


def noisy_counts(session, entry, counts, units, rho=None):
    """Noisy weights (n_cells,) of disjoint cells.

    `counts` are those of :func:`weighted_bincount`, of one part of the rows or added up over parts.
    """
    # A row is in at most one cell, so a unit adds a non-negative vector of l1 norm at most
    # `scale`, and the l2 norm is no larger.
    return session.gaussian(entry, counts, sensitivity=units.scale, unit=units.step, rho=rho)


def vector_sum(session, entry, rows, limit, units, unit=1.0):
    """Noisy sum (d,) of integer rows, clipped here to norm `limit`.

    `limit` is in steps of length `unit`, public or released.
    """
    rows = units.weigh(_grid.clip_integer_rows(rows, limit))
    # A row has norm at most limit; a unit is a combination of rows with weights of sum at most one,
    # so the sum moves by at most limit.
    total = label_sums(rows, np.zeros(len(rows), dtype=np.int64), 1)[0]
    return session.gaussian(entry, total, sensitivity=float(limit), unit=unit)
