"""Noisy ranks on bins, and the quantiles that are read off them."""

import numpy as np
import pytest
from kernel_tools import laplace, open_session

from sklearn_dp import DPQuantiles, PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import ranks
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.ranks import prefix_of_blocks
from sklearn_dp._rows.table import Table
from sklearn_dp.preprocessing import _dp_quantiles as module
from sklearn_dp.preprocessing._dp_quantiles import fit_quantiles, quantile_entries


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


# -- released -------------------------------------------------------------------------------------


def test_ranks_without_a_delta_have_the_noise_that_is_stated():
    """Sums of bins, by least squares, without noise and with that of Laplace: 160 columns. The mean
    square of so many ranks, which move together in a column, is off by 35% with a chance below
    1e-6; sums of the bins alone would have four times of it."""
    counts = np.random.default_rng(0).integers(0, 9, (160, 1024))
    both = np.concatenate([counts.reshape(160, -1, 64).sum(axis=2), counts], axis=1)
    assert prefix_of_blocks(both.astype(float)) == pytest.approx(counts.cumsum(axis=1))
    entry = PlanEntry.of_epsilon("it", 320.0, "1")
    session = PrivacySession(PrivacyPlan(PrivacyBudget(320.0, 0.0), (entry,)), random_state=0)
    noisy = laplace(session, "it", both, sensitivity=320.0, epsilon=320.0)
    off = prefix_of_blocks(noisy) - counts.cumsum(axis=1)
    decode = module._decode(True)
    stated = np.sqrt(2 + 1 / 12) * np.linalg.norm(decode, axis=1)  # rounded
    assert 0.65 < np.square(off / stated).mean() < 1.35
    assert np.sqrt(np.square(stated).mean()) < 6.4  # a count with half of epsilon each has 2.9


@pytest.mark.parametrize("bounds", [None, (0.0, 1e6)])
def test_quantiles_need_no_delta(bounds):
    X = np.random.default_rng(0).lognormal(10.5, 0.7, (10_000, 2))
    model = DPQuantiles(delta=0, epsilon=2.0, bounds=bounds, random_state=0).fit(X)
    report = model.privacy_report_
    assert (report.epsilon, report.delta) == (2.0, 0.0)
    assert {line["mechanism"] for line in report.releases} == {"laplace"}
    off = model.quantiles_ / np.quantile(X, LEVELS, axis=0) - 1
    assert np.abs(off).max() < 0.03 and model.status_ == "ok"
    assert (np.abs(off * model.quantiles_) < 4 * model.quantiles_std_error_).all()


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
