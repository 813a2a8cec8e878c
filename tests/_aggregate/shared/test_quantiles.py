"""Noisy ranks on bins, and the quantiles that are read off them."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared.quantiles import (
    fit_quantiles,
    quantile_entries,
)
from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import ranks
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp._rows.table import Table


@pytest.mark.parametrize(("n", "length"), [(50, 1.53), (1024, 1.81)])
def test_no_column_of_the_root_is_longer_than_the_first(n, length):
    """The sensitivity: columns are shifts of the first one, as they are released."""
    encode, decode = ranks._factors(n)
    root = np.array([np.convolve(unit, encode)[:n] for unit in np.eye(n, dtype=int)]).T
    lengths = np.square(root).sum(axis=0)
    assert lengths.max() == lengths[0] == int(np.square(encode).sum())
    np.testing.assert_allclose(decode @ root / 2**10, np.tril(np.ones((n, n))), atol=1e-9)
    assert np.sqrt(lengths[0]) / 2**10 < length
    assert np.linalg.norm(decode, axis=1).max() < length


LEVELS = (0.25, 0.5, 0.75)
LITTLE = 1e7  # rho with next to no noise


def found(X, rho, bounds=None, seed=0, levels=LEVELS, units=None):
    X = np.asarray(X, dtype=np.float64)
    session = open_session(*quantile_entries(rho), rho=rho, random_state=seed)
    table = TableRows(Table.in_memory(X, Units(len(X)) if units is None else units))
    return fit_quantiles(session, table, levels, domain_of(bounds, X.shape[1]))


def rank_errors(X, values, slack, levels=LEVELS):
    """How far values, give or take, are from the ranks that they stand for; 0 inside of a heap."""
    below = (X[None] < (values - slack)[:, None]).mean(axis=1)
    upto = (X[None] <= (values + slack)[:, None]).mean(axis=1)
    q = np.array(levels)[:, None]
    return len(X) * np.maximum(np.maximum(below - q, q - upto), 0.0)


# -- answers ---------------------------------------------------------------------------------------


def table(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    columns = [
        rng.lognormal(10.5, 0.7, n),  # salaries
        rng.choice([20.0, 35.0, 40.0, 40.0, 40.0], n),  # hours
        np.where(rng.random(n) < 0.8, 0.0, rng.exponential(5000, n)),  # mostly zero
        np.full(n, 7.0),  # constant
        2000 + rng.integers(0, 25, n),  # years
        rng.standard_t(2, n) * 1e-9,  # heavy tails, tiny units
    ]
    return np.column_stack(columns)


BOX = ([0, 0, 0, 0, 0, -1e-3], [1e9, 80, 1e6, 10, 4000, 1e-3])


@pytest.mark.parametrize("bounds", [None, BOX], ids=["none", "box"])
@pytest.mark.parametrize("rho", [LITTLE, 0.5])
def test_columns_of_all_kinds_in_their_own_units(bounds, rho):
    X = table()
    result = found(X, rho, bounds)
    # A heap is hit up to a bin: values a bin away count as equal.
    slack = 2 * result.resolution
    assert (
        rank_errors(X, result.values, slack).max() <= 5 * result.rank_errors.max() * result.size + 3
    )
    assert result.size == pytest.approx(4000, abs=6 * result.size_sd + 1)
    assert not (result.at_bound | result.hidden).any() and result.too_few < 1
    exact = np.quantile(X, LEVELS, axis=0)
    assert (np.abs(result.values - exact) <= 4 * result.errors + slack).all()
