"""Origins and scales of columns: of boxes, and released."""

import math

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared import columns as _columns
from sklearn_dp._aggregate.shared.columns import (
    Columns,
    column_entries,
    look_at_columns,
)
from sklearn_dp._aggregate.shared.table import ArraySource, LocalEngine, Part, Table
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._gaussian_dp import gaussian_mu
from sklearn_dp._privacy._plan import Mechanism, PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit._player import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

RHO = gaussian_mu(1.0, 1e-6) ** 2 / 2


def released(X, rho=RHO, size=None, seed=0, units=None):
    """At a known size, which is what most callers have."""
    session = open_session(*column_entries(rho), rho=rho, random_state=seed)
    table = Table.in_memory(X, Units(len(X)) if units is None else units)
    return all_of(look_at_columns(session, table, len(X) if size is None else size))


def all_of(found):
    """Columns, if all of them are known."""
    return found.columns if found is not None and found.known.all() else None


def look(X, size):
    session = open_session(*column_entries(RHO / 4), rho=RHO, random_state=0)
    return look_at_columns(session, Table.in_memory(X, Units(len(X))), size)


def table_of_persons(n, rng):
    return np.column_stack([rng.normal(45, 15, n), rng.lognormal(10.3, 0.6, n), rng.gamma(4, 9, n)])


# -- public ----------------------------------------------------------------------------------------


def test_a_box_is_the_unit_cube():
    domain = Domain.from_bounds(([15, 0, 7], [95, 2e5, 7]), 3)
    columns = Columns.of(domain, 3)
    assert columns.scaled and columns.domain.radius == pytest.approx(math.sqrt(2))
    rows = np.array([[15.0, 1e5, 7.0], [95.0, 9e9, -3.0]])
    assert columns.of_table(rows).tolist() == [[-1, 0, 0], [1, 1, 0]]
    assert columns.to_table(columns.of_table(rows)).tolist() == [[15, 1e5, 7], [95, 2e5, 7]]


def test_powers_of_two_change_no_bit():
    rng, unit = np.random.default_rng(0), 2.0 ** np.array([-7, 0, 12])
    low, high, X = np.zeros(3), rng.uniform(1, 9, 3), rng.uniform(0, 9, (50, 3))
    plain = Columns.of(Domain.from_bounds((low, high), 3), 3)
    other = Columns.of(Domain.from_bounds((low * unit, high * unit), 3), 3)
    assert np.array_equal(plain.of_table(X), other.of_table(X * unit))


@pytest.mark.parametrize("bounds", [None, 5.0, (3.0, 3.0)])
def test_a_ball_keeps_the_units_of_the_table(bounds):
    columns = Columns.of(Domain.from_bounds(bounds, 2), 2)
    assert columns.plain and not columns.scaled
    assert not Columns.of(Domain.from_bounds((0.0, 4.0), 2), 2, scaled=False).scaled


# -- released --------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_any_units_and_offsets(offset):
    """A standard error of .05 of a scale or so; a wrong octave is a factor of two."""
    rng = np.random.default_rng(0)
    unit = 10.0 ** rng.uniform(-6, 6, 4)
    Y = np.column_stack([rng.normal(size=(20_000, 2)), rng.gamma(2, size=(20_000, 2))])
    X = unit * (Y + offset)
    found = released(X)
    assert found.scaled and found.box is None
    assert np.all(np.abs(found.origin - X.mean(axis=0)) < 0.3 * X.std(axis=0))
    ratio = found.scale / X.std(axis=0)
    assert np.all((ratio > 0.75) & (ratio < 1.35))


def test_ages_incomes_and_hours():
    X = table_of_persons(3000, np.random.default_rng(0))
    found = released(X)
    assert np.all(np.abs(found.origin - X.mean(axis=0)) < 0.3 * X.std(axis=0))
    assert np.all(np.abs(np.log(found.scale / X.std(axis=0))) < 0.5)


def test_constant_mostly_zero_and_two_values():
    rng, n = np.random.default_rng(0), 20_000
    X = np.column_stack(
        [
            np.full(n, 37.5),
            rng.exponential(100.0, n) * (rng.random(n) < 0.2),
            np.where(rng.random(n) < 0.5, -1e6, 1.0),
            np.zeros(n),
        ]
    )
    found = released(X)
    assert abs(found.origin[0] - 37.5) < 1e-6 and found.scale[0] < 1e-6
    assert 20 < found.scale[1] < 100 and found.scale[2] == pytest.approx(5e5, rel=0.3)
    assert abs(found.origin[3]) < 1e-20 and found.scale[3] < 1e-20


def test_too_few_rows_spend_nothing_or_give_nothing():
    X = np.random.default_rng(0).normal(size=(40, 3))
    session = open_session(*column_entries(RHO), rho=RHO)
    assert all_of(look_at_columns(session, Table.in_memory(X, Units(40)), 40.0)) is None
    assert session.spent == 0.0
    assert released(X, size=1e5) is None  # a wrong size: the first histogram shows nothing


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_noisy_size_of_zero_is_no_error(n):
    """Some of these noisy histograms add up to exactly 0, with bins that stand out."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    for seed in range(60):
        session = open_session(*column_entries(25.0), rho=25.0, random_state=seed)
        found = look_at_columns(session, Table.in_memory(X, Units(n)))
        assert found is None or np.isfinite(found.columns.origin).all()


def test_narrow_columns_far_off_are_found_without_a_known_size():
    """The noise of four hundred bins, added up, is as large as the number of rows: a size that it
    is in either hides rows that are there, or has others missing."""
    sd = np.array([1.0, 0.02, 0.03, 7.5e5, 1.0, 20.0, 0.2, 3.0, 1e4])
    far = np.array([0.0, 52.5, 13.4, 1.7e9, 0.0, 60.0, 0.3, 0.0, 1e4])
    found = []
    for seed in range(20):
        X = far + sd * np.random.default_rng(seed).normal(size=(3000, 9))
        session = open_session(*column_entries(0.03 * RHO), rho=RHO, random_state=seed)
        seen = look_at_columns(session, Table.in_memory(X, Units(3000)))
        found.append(np.abs(np.log2(seen.columns.scale / sd)))
    assert np.max(found) < 4  # octaves; up to eleven with such a size


def test_rows_hidden_beside_many_zeros_are_no_constant_column():
    """A fifth of 600 rows is spread over octaves that the noise hides, until they are looked at
    with all that is left: the column has its scale, or is not told, but is never constant."""
    rng = np.random.default_rng(0)
    X = (rng.exponential(size=600) * (rng.random(600) < 0.2))[:, None]
    found = [released(X, seed=seed) for seed in range(10)]
    told = [each.scale[0] for each in found if each is not None]
    assert len(told) > 5 and min(told) > 0.08 and max(told) < 4
    assert released(X, 0.1 * RHO) is None


@pytest.mark.parametrize("value", [0.0, 37.5, -1e9])
def test_what_is_beside_one_value_is_looked_for_about_it(value):
    """Of 4,000 rows 92 % are one value: at the first look it is all there is, in the noise."""
    rng, n = np.random.default_rng(0), 4000
    X = np.column_stack([np.where(rng.random(n) < 0.08, rng.normal(0, 1e3, n), 0), np.zeros(n)])
    rest = PlanEntry("rest", Mechanism.GAUSSIAN, 0.89 * RHO, max_rho=RHO)
    session = open_session(*column_entries(0.1 * RHO, RHO), rest, rho=RHO)
    found = look_at_columns(session, Table.in_memory(X + value, Units(n)), float(n))
    assert found.known.all() and found.single.tolist() == [False, True]
    np.testing.assert_allclose(found.columns.scale[0], X[:, 0].std(), rtol=0.5)
    assert found.columns.scale[1] <= 1e-3 * max(abs(value), 1e-9)
    inside, without = (
        found.coordinates(box).scale
        for box in (Domain.from_bounds((value - 1e5, value + 1e5), 2), None)
    )
    assert inside[0] == without[0] < 1e3 and inside[1] == 1e5 and np.isinf(without[1])


def test_a_few_gifts_of_many_sizes_are_no_constant_column():
    """A tenth of the rows, over so many octaves that no single one stands clear, has the scale.

    The fullest octave holds about 540 rows, four of them about 1,750, in noise of a standard
    deviation of 95 for one: five of it are clear.
    """
    rng, n = np.random.default_rng(0), 20_000
    gifts = np.where(rng.random(n) < 0.1, rng.lognormal(5, 1, n), 0.0)
    X = np.column_stack([table_of_persons(n, rng), gifts, np.zeros(n)])
    for found in (released(X, 0.07 * RHO, seed=seed) for seed in range(10)):
        assert 0.2 < found.scale[3] / gifts.std() < 3
        assert found.scale[4] < 1e-20


def test_weights_and_groups_count_as_units():
    """A unit of many rows far away is one unit: it does not widen the scale."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(50, 5, size=(4000, 1)), np.full((4000, 1), 1e9)])
    groups = np.concatenate([np.arange(4000), np.full(4000, 4000)])
    units = Units(8000, groups)
    found = released(X, units=units, size=4001)
    assert 3 < found.scale[0] < 8 and abs(found.origin[0] - 50) < 2


def test_parts_add_up():
    X = table_of_persons(3000, np.random.default_rng(1))
    parts = [Part(ArraySource(X[:17], 0), Units(17)), Part(ArraySource(X[17:], 1), Units(2983))]
    session = open_session(*column_entries(RHO), rho=RHO, random_state=0)
    table = Table(LocalEngine(parts), 3, np.float64, Units(0).facts)
    found = all_of(look_at_columns(session, table, 3000))
    assert np.array_equal(found.scale, released(X).scale)


def changed(X, rows):
    """A recording of the columns of X, and its replay on other rows."""
    with trace(Trace()) as recorder:
        first = released(X, rho=50.0, size=len(X))
    survivors = np.array([], dtype=np.int64)
    with trace(Replay(recorder.events, survivors)) as replay:
        second = released(rows, rho=50.0, size=len(X))
    return first, second, replay


@pytest.mark.parametrize("row", [[0.0, 0.0], [1e300, -1e-300], [-1e6, 1e6], [1.0, 1.0]])
def test_one_row_more_moves_each_histogram_by_its_claim(row):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1, 1e5] + [1e3, 0]
    first, second, replay = changed(X, np.vstack([X, row]))
    assert np.array_equal(first.scale, second.scale) and not replay.finish()
    assert max(replay.ratios.values()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_column_too_many_in_the_claim_is_seen(columns, monkeypatch):
    """Half of the claim: a replay tells."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, columns))
    monkeypatch.setattr(_columns, "round_up", lambda value: value / 2)
    _, _, replay = changed(X, X[:-1])
    assert replay.finish() and max(replay.ratios.values()) > 1.9


@pytest.mark.parametrize(("n", "heap"), [(1000, 0.6), (1000, 0.75), (4000, 0.9)])
def test_a_heap_of_one_value_is_not_all_of_a_column(n, heap):
    """Most people work 40 hours: it was a column of one value, with a scale of 1e-6 at times."""
    rng = np.random.default_rng(0)
    hours = np.where(rng.random(n) < heap, 40.0, np.round(rng.normal(35, 12, n))).clip(0)
    others = table_of_persons(n, rng)[:, :2]
    found = look(np.column_stack([others, hours]), size=n)
    assert found.known.all() and not found.single.any()
    assert 0.5 < found.columns.scale[2] / hours.std() < 4.0
    found = look(np.column_stack([others, np.full(n, 40.0)]), size=n)
    assert found.single.tolist() == [False, False, True] and found.columns.scale[2] < 0.1


def test_a_last_look_about_one_value_finds_no_scale_of_its_last_digits():
    """At 90 % of 2,000 rows it was told as 40.0 +- 5e-5, with neither code nor status."""
    rng, n = np.random.default_rng(0), 2000
    hours = np.where(rng.random(n) < 0.9, 40.0, np.round(rng.normal(35, 12, n))).clip(0)
    found = look(np.column_stack([table_of_persons(n, rng)[:, :2], hours]), size=n)
    assert found.single[2] or found.columns.scale[2] > 1
