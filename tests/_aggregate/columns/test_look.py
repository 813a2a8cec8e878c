"""Where the rows of columns are: centers, spreads and ends, whatever the units and laws."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.columns.look import column_entries, columns_of, look_at_columns
from sklearn_dp._costs.accounting import gaussian_mu
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.table_rows import TableRows

RHO = gaussian_mu(1.0, 1e-6) ** 2 / 2


def look(X, rho=RHO / 4, size=None, seed=0, units=None, ends=None):
    """At a known size, which is what most callers have."""
    session = open_session(*column_entries(rho), rho=max(rho, RHO), random_state=seed)
    table = TableRows.in_memory(X, Units(len(X)) if units is None else units)
    return look_at_columns(session, table, len(X) if size is None else size, ends)


def in_spreads(found, X):
    """How far the centers are off, and the ratios of spreads."""
    return np.abs(found.center - X.mean(axis=0)) / X.std(axis=0), found.spread / X.std(axis=0)


@pytest.mark.parametrize("offset", [0.0, 1.0, 2023.0, 1e6])
def test_any_units_and_offsets(offset):
    rng = np.random.default_rng(0)
    unit = 10.0 ** rng.uniform(-6, 6, 4)
    Y = np.column_stack([rng.normal(size=(20_000, 2)), rng.gamma(2, size=(20_000, 2))])
    X = unit * (Y + offset)
    found = look(X)
    off, ratio = in_spreads(found, X)
    assert found.known.all() and not found.single.any()
    assert np.all(off < 0.5) and np.all((ratio > 0.5) & (ratio < 2))
    low, high, beyond = found.ends(RHO / 2)
    wide = (high - low) / X.std(axis=0)
    assert np.all((wide > 5) & (wide < 120)) and np.all(beyond < 0.01 * len(X))
    assert np.all((low < X).mean(axis=0) > 0.98) and np.all((high > X).mean(axis=0) > 0.98)


@pytest.mark.parametrize(("bound", "value"), [(0.0, 0.0), (5.0, 5.0), (-1e9, -1e9)])
def test_constant_mostly_zero_and_two_values(bound, value):
    rng, n = np.random.default_rng(0), 20_000
    X = np.column_stack(
        [
            np.full(n, value),
            rng.exponential(100.0, n) * (rng.random(n) < 0.2),
            np.where(rng.random(n) < 0.5, -1e6, 1.0),
        ]
    )
    ends = np.array([[bound, 0.0, -np.inf], [np.inf, np.inf, 1e6]])
    for found in (look(X), look(X, ends=ends)):
        assert found.single.tolist() == [True, False, False] and found.known.all()
        assert abs(found.center[0] - value) <= 1e-9 * abs(value)
        assert 20 < found.spread[1] < 150 and found.spread[2] == pytest.approx(5e5, rel=0.5)


def test_too_few_rows_spend_nothing_or_give_nothing():
    X = np.random.default_rng(0).normal(size=(40, 3))
    session = open_session(*column_entries(RHO), rho=RHO)
    table = TableRows.in_memory(X, Units(40))
    assert not look_at_columns(session, table, 40.0).known.any()
    assert session.spent == 0.0
    assert not look(X, size=1e5).known.any()  # a wrong size: the first histogram shows nothing
    session = open_session(*column_entries(RHO), rho=RHO)
    assert columns_of(session, table, None).plain


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_noisy_size_of_zero_is_no_error(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    for seed in range(60):
        session = open_session(*column_entries(25.0), rho=25.0, random_state=seed)
        found = look_at_columns(session, TableRows.in_memory(X, Units(n)))
        assert np.isfinite(found.center).all() and np.isfinite(found.ends(1.0)).all()
