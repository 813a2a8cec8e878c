"""Centers refined column by column."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared.column_means import (
    refined_centers,
    refinement_entry,
    unrefined_centers,
)
from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.coordinates import Columns
from sklearn_dp._queries.table_rows import TableRows

BOX = domain_of(([15, 0, 0], [95, 2e5, 80]), 3)
CENTERS = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]], dtype=float)


def persons(n, rng):
    """Four groups of ages, salaries and hours."""
    X = CENTERS[rng.integers(4, size=n)] + rng.normal(size=(n, 3)) * [5, 6e3, 4]
    return np.clip(X, BOX.low, BOX.high)


def refined(X, rho=0.05, box=BOX, columns=None, units=None, start=CENTERS, seed=0, **options):
    session = open_session(refinement_entry(rho), rho=rho, random_state=seed)
    table = TableRows.in_memory(X, Units(len(X)) if units is None else units)
    columns = Columns.of(box, 3) if columns is None else columns
    known = unrefined_centers(columns, start, np.full(len(start), 300.0))
    return refined_centers(session, table, columns, known, **options)


@pytest.mark.parametrize("released", [False, True])
def test_each_column_is_as_good_as_its_own_unit_allows(released):
    """300 is the error of each coordinate before: of a salary little, of an age all."""
    X = persons(20_000, np.random.default_rng(0))
    columns = Columns(np.array([45.0, 5e4, 28.0]), np.array([17.0, 2.7e4, 16.0]), True)
    found = refined(X, columns=columns if released else None)
    labels = np.linalg.norm(X[:, None] - CENTERS, axis=2).argmin(axis=1)
    means = np.array([X[labels == j].mean(axis=0) for j in range(4)])
    off = (found.centers - means) / found.std_error
    # 12 standardized errors: their root mean square exceeds 2 with probability below 1e-6.
    assert np.sqrt(np.mean(np.square(off))) < 2 and np.all(np.isfinite(off))
    assert np.all(found.std_error < [2.0, 310, 2.0])
    within = np.sqrt(np.mean(np.square(X - means[labels]), axis=0))
    assert np.all(np.abs(found.within / within - 1)[[0, 2]] < 0.3)  # of salaries it is noise
