"""Each mechanism against a hand-computed statistic, and its sensitivity against neighbors."""

import math

import numpy as np
import pytest
import toy_releases

from sklearn_dp._aggregate.shared.noisy_norms import (
    private_radius,
)
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy import _domain as aggregates
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.places import NormCounts
from sklearn_dp._queries.samples import UnitNumbers, released_numbers
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp._rows.table import Table
from sklearn_dp.audit._replay import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
RHO = 0.5
HUGE = 1e12  # practically no noise


def session(rho=RHO, mechanism="gaussian", delta=0.0):
    plan = PrivacyPlan(
        PrivacyBudget(rho=rho, delta=1e-6),
        (PlanEntry("e", mechanism, rho, delta=delta, uses=None),),
    )
    return PrivacySession(plan, random_state=0)


def exact_value(release):
    """The statistic that a release is about."""
    with trace(Trace()) as recording:
        release(session())
    return [event for event in recording.events if event.kind != "seed"][0].value


def data(rng, n=40, d=3, radius=1.0):
    grid = Grid.for_radius(radius)
    return grid.quantize(rng.normal(size=(n, d)) * 0.7, radius), grid


def test_numbers_and_weights_are_released_together():
    """By hand: three rows, of weight 1, 1/4 and over the bound, and one that is not there."""
    units, _ = Units.weighted(np.array([1.0, 0.25, 7.0, 0.0]), 1.0)

    def released(session, units):
        numbers = UnitNumbers(units.size, units.totals, {})
        return released_numbers(session, "e", numbers, units.facts)

    value = exact_value(lambda s: released(s, units))
    assert value.tolist() == [3, 2.25 * 2**20, (2 + 1 / 16) * 2**20, 2**20]
    number, totals = released(session(HUGE), units)
    assert [number, *totals] == pytest.approx([3, 2.25, 2 + 1 / 16, 1], abs=1e-4)
    # One row more, of twice the largest weight: exactly as far as is claimed.
    more, _ = Units.weighted(np.array([1.0, 0.25, 7.0, 2.0]), 1.0)
    with trace(Trace()) as recording:
        released(session(), units)
    moved = exact_value(lambda s: released(s, more)) - value
    claimed = [event for event in recording.events if event.kind != "seed"][0].sensitivity
    assert np.linalg.norm(moved / claimed) == pytest.approx(1, abs=1e-9)
    assert np.linalg.norm(moved / claimed) <= 1
    for plain in (Units(9), Units(9, [0, 1, 1, 2, 2, 2, 3, 3, 3])):
        number, (weight,) = released(session(), plain)
        assert number == weight == toy_releases.count(session(), "e", plain)


def radius(session, X, units):
    counts = TableRows(Table.in_memory(X, units)).ask(NormCounts())
    return private_radius(session, "e", counts)[0]


def histogram(session, cells, n_cells, units):
    counts = aggregates.weighted_bincount(cells, units, n_cells)
    return toy_releases.noisy_counts(session, "e", counts, units)


RELEASES = {
    "count": lambda s, rows, units, limit: toy_releases.count(s, "e", units),
    "histogram": lambda s, rows, units, limit: histogram(
        s, (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0), 3, units
    ),
    "sum": lambda s, rows, units, limit: toy_releases.vector_sum(s, "e", rows, limit, units),
    "clipped sum": lambda s, rows, units, limit: toy_releases.vector_sum(
        s, "e", rows, limit / 3, units
    ),
}


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("grouped", [False, True])
def test_neighbors_stay_within_the_claimed_sensitivity(name, grouped):
    """Exact distances of 60 neighboring pairs, far rows on the sphere among them."""
    rng = np.random.default_rng(1)
    release, worst = RELEASES[name], 0.0
    for trial in range(60):
        rows, grid = data(rng)
        rows[0] = grid.quantize(np.array([[1e9, 1e9 * (trial % 2), 0]]), 1.0)[0]
        groups = rng.integers(0, 12, len(rows)) if grouped else np.arange(len(rows))
        keep = groups != groups[0]

        def run(rows, groups, grid=grid):
            units = Units(len(rows), groups if grouped else None)
            release(session(), rows, units, grid.steps(1.0))

        with trace(Trace()) as recording:
            run(rows, groups)
        mapping = np.flatnonzero(np.unique(groups) != groups[0])
        with trace(Replay(recording.events, mapping)) as replay:
            run(rows[keep], groups[keep])
        assert replay.finish() == []
        worst = max(worst, replay.ratios["e"])
    assert worst > (0.2 if grouped else 0.99)  # the claim is nearly attained: it is tight


def test_sums_are_exact_for_any_order_and_chunk():
    rng = np.random.default_rng(3)
    rows, _ = data(rng, n=1000, d=3)
    labels = rng.integers(0, 4, 1000)
    order = rng.permutation(1000)
    assert np.array_equal(
        aggregates.label_sums(rows, labels, 4), aggregates.label_sums(rows[order], labels[order], 4)
    )
    original = aggregates._CHUNK
    aggregates._CHUNK = 37
    try:
        chunked = aggregates.label_sums(rows, labels, 4)
    finally:
        aggregates._CHUNK = original
    assert np.array_equal(chunked, aggregates.label_sums(rows, labels, 4))


def norm_by_hand(row):
    """One number after the other, in Python."""
    row = [float(x) for x in row]
    largest = max(map(abs, row))
    total = 0.0
    for x in row:
        total += (x / (largest or 1.0)) ** 2
    return min(largest, 1e308 / math.sqrt(len(row))) * math.sqrt(total)


@pytest.mark.parametrize("d", [1, 2, 9, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_norm_of_a_row_depends_on_that_row_alone(d, dtype, monkeypatch):
    """However rows are cut into chunks, down to one row: lines of one number are not pairwise."""
    X = np.random.default_rng(d).normal(size=(40, d)).astype(dtype)
    X[3], X[4] = 0, X[4] * (1e30 if dtype == np.float32 else 1e200)
    expected = [norm_by_hand(row) for row in X]
    for entries in (2**18, 7 * d, 2 * d, 1):
        monkeypatch.setattr(aggregates, "_CHUNK_ENTRIES", entries)
        for rows in (X, np.asfortranarray(X)):
            assert aggregates.safe_norms(rows).tolist() == expected
    assert aggregates.safe_norms(X[:0]).shape == (0,)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_of_norms_are_those_of_safe_norms(side, dtype):
    """On edges, a last bit from one, and where squares overflow or vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 7))
    X *= (2.0 ** (rng.integers(-8, 8, size=4000) / 2) / aggregates.safe_norms(X))[:, None]
    X[:40] *= 10.0 ** np.linspace(-37, 37, 40)[:, None]
    X[40:80] = 0
    X[60:80, 0] = 2.0 ** np.arange(-10, 10)
    X = X.astype(dtype)
    norms = aggregates.safe_norms(X)
    if dtype == np.float64:
        X[:20], X[20:40] = X[:20] * 1e-140, X[20:40] * 1e130
        norms = aggregates.safe_norms(X)
    for edges in (aggregates.NORM_EDGES[1:-1], norms[90:91], np.unique(norms[80:]), norms[:40]):
        found = aggregates.norm_places(X, np.unique(edges), side)
        assert np.array_equal(found, np.searchsorted(np.unique(edges), norms, side))
    # Whatever is guessed, no place is wrong.
    edges = aggregates.NORM_EDGES[1:-1]
    for guess in (aggregates._octave_halves, lambda squares: np.arange(len(squares)) % 401):
        found = aggregates.norm_places(X, edges, side, guess)
        assert np.array_equal(found, np.searchsorted(edges, norms, side))


def test_guessed_bins_of_norms_are_right_off_the_edges():
    norms = 10.0 ** np.random.default_rng(0).uniform(-35, 35, size=10_000)
    expected = np.searchsorted(aggregates.NORM_EDGES[1:-1], norms)
    assert np.array_equal(aggregates._octave_halves(np.square(norms)), expected)
