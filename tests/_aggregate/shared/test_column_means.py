"""Centers refined column by column."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp._aggregate.shared import column_means
from sklearn_dp._aggregate.shared.column_means import refined_centers, refinement_entry, unequal
from sklearn_dp._aggregate.shared.columns import Columns
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit._player import Replay

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

BOX = Domain.from_bounds(([15, 0, 0], [95, 2e5, 80]), 3)
CENTERS = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]], dtype=float)


def persons(n, rng):
    """Four groups of ages, salaries and hours."""
    X = CENTERS[rng.integers(4, size=n)] + rng.normal(size=(n, 3)) * [5, 6e3, 4]
    return np.clip(X, BOX.low, BOX.high)


def refined(X, rho=0.05, box=BOX, columns=None, units=None, start=CENTERS, **options):
    session = open_session(refinement_entry(rho), rho=rho, random_state=0)
    table = Table.in_memory(X, Units(len(X)) if units is None else units)
    columns = Columns.of(box, 3) if columns is None else columns
    return refined_centers(session, table, columns, start, np.full(len(start), 300.0), **options)


def test_sides_of_a_box_that_differ():
    assert unequal(BOX) and not unequal(None)
    assert not unequal(Domain.from_bounds(5.0, 3))
    assert not unequal(Domain.from_bounds(([0, 0, 7], [1, 3, 7]), 3))  # one is known


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
    assert np.all(np.abs(found.spread / within - 1)[[0, 2]] < 0.3)  # of salaries it is noise


def test_clusters_without_rows_keep_their_centers():
    X = persons(4000, np.random.default_rng(0))
    start = np.vstack([CENTERS, [90, 1.9e5, 70]])
    found = refined(X, start=start)
    assert np.array_equal(found.centers[4], start[4]) and np.all(found.std_error[4] == 300)


def test_columns_lost_in_the_noise_are_named():
    X = persons(60, np.random.default_rng(0))
    model = DPKMeans(4, epsilon=0.1, bounds=(BOX.low, BOX.high), random_state=0).fit(X)
    assert not model.trustworthy_ and not model.status_.startswith("ok")


@pytest.mark.parametrize("bounded", [True, False])
def test_ages_of_a_table_are_known(bounded):
    """The age of each center to a year; without this, to 300 years."""
    X = persons(20_000, np.random.default_rng(1))
    bounds = (BOX.low, BOX.high) if bounded else None
    mean = DPPCA(2, bounds=bounds, random_state=0).fit(X).mean_
    assert np.all(np.abs(mean - X.mean(axis=0)) < [1.5, 1500, 1.5])
    if bounded:
        model = DPKMeans(4, bounds=bounds, random_state=0).fit(X)
        means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(4)])
        off = np.abs(model.cluster_centers_ - means)
        assert model.trustworthy_ and np.all(off[:, [0, 2]] < 1.5)
        assert np.all(model.cluster_centers_std_error_[:, [0, 2]] < 1)


ROWS = [[15, 0, 0], [95, 2e5, 80], [1e300, -1e300, 0], [25, 2e4, 20]]


def replayed(X, other, **options):
    with trace(Trace()) as recorder:
        first = refined(X, rho=50.0, **options)
    with trace(Replay(recorder.events, np.array([], dtype=np.int64))) as replay:
        second = refined(other, rho=50.0, **options)
    return first, second, replay


@pytest.mark.parametrize("row", ROWS)
def test_one_row_more_moves_all_by_its_claim(row):
    X = persons(300, np.random.default_rng(0))
    first, second, replay = replayed(X, np.vstack([X, row]))
    assert np.array_equal(first.centers, second.centers) and not replay.finish()
    assert max(replay.ratios.values()) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_one_group_more_moves_all_by_its_claim(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([persons(200, rng), np.array(ROWS * 5, dtype=float)])
    groups = np.append(np.arange(200) // 2, np.full(20, 1000))
    with trace(Trace()) as recorder:
        refined(X, rho=50.0, units=Units(len(X), groups))
    with trace(Replay(recorder.events, np.array([], dtype=np.int64))) as replay:
        refined(X[:200], rho=50.0, units=Units(200, groups[:200]))
    assert not replay.finish()


def test_half_of_a_claim_is_seen(monkeypatch):
    monkeypatch.setattr(column_means, "round_up", lambda value: value / 2)
    X = persons(300, np.random.default_rng(0))
    _, _, replay = replayed(X, np.vstack([X, ROWS[0]]))
    assert replay.finish() and max(replay.ratios.values()) > 1.2
