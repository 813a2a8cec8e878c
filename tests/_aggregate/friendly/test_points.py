"""The points of a mean: of units, in parts, and a sample of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import open_session
from test_partitions import Elsewhere, Piece

from sklearn_dp._aggregate.friendly.mean_facts import most_pairs
from sklearn_dp._aggregate.friendly.points import Points
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._sealed import exact_of
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._queries import samples
from sklearn_dp._queries.coordinates import Columns
from sklearn_dp._queries.group_points import group_points, unit_points, units_of_points
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table
from sklearn_dp._rows.table_units import open_units

X = np.random.default_rng(0).normal(size=(20_000, 2))


def session(seed=0):
    return open_session(PlanEntry("size", "gaussian", 0.5), random_state=seed)


def points_of(*pieces, domain=None, in_turn=slice(None)):
    parts = [Part(ArraySource(piece, i), Units(len(piece))) for i, piece in enumerate(pieces)]
    table = Table(LocalEngine(parts[in_turn]), 2, np.float64, Units(0).facts)
    return Points(TableRows(table), Columns.of(domain, 2, scaled=False))


def sample_of(points, size):
    return exact_of(points.pairs(session(), size).compared)


@given(st.integers(0, 10**6))
def test_points_of_units_depend_on_their_rows_only(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-5, 9)
    groups = rng.integers(0, 6, size=30)
    points = unit_points(rows, Units(30, groups))
    whole = dict(zip(dict.fromkeys(groups.tolist()), points, strict=True))
    for group, point in whole.items():
        alone = rows[groups == group]
        assert np.array_equal(unit_points(alone, Units(len(alone), np.zeros(len(alone))))[0], point)
        assert np.allclose(point, alone.mean(axis=0))


def test_samples_of_neighbors_are_neighbors():
    """The coins of a point do not depend on which points come after it."""
    whole = sample_of(points_of(X), 20_000.0)
    fewer = sample_of(points_of(X[:-1]), 20_000.0)
    assert np.array_equal(fewer.numbers, whole.numbers[whole.numbers < len(X) - 1])
    assert np.array_equal(whole.points, X[whole.numbers])
    # 4096 on average: seven standard deviations.
    assert abs(len(whole.points) - most_pairs(2)) < 7 * np.sqrt(4096)
    everything = sample_of(points_of(X[:4000]), 4000.0)
    assert everything.numbers is None and np.array_equal(everything.points, X[:4000])


def test_only_the_sample_is_collected(monkeypatch):
    """No draw and no point besides it; draws are made in pieces."""
    monkeypatch.setattr(samples, "_DRAWS", 1000)
    points = points_of(X[:9000], X[9000:])
    sample = sample_of(points, 20_000.0)
    assert len(sample.points) == len(sample.numbers) < 4600
    assert np.array_equal(sample.numbers, sample_of(points_of(X), 20_000.0).numbers)
    assert points.pairs(session(1), 20_000.0) is points.pairs(session(), 20_000.0)
    assert points.pairs(session(), 1.0).compared.shape == ()


N = 400
RNG = np.random.default_rng(0)
SPREAD = RNG.normal(size=(N, 3)) * 10.0 ** RNG.integers(-5, 9, size=(N, 1))
GROUPS = RNG.integers(0, 90, N)
WEIGHTS = np.where(RNG.random(N) < 0.4, 0.0, RNG.uniform(0, 2, N))
CUTS = ([], [0, 1, 1, 300], range(20, N, 20))


def table_of(cuts, weights=None, engine=LocalEngine, groups=GROUPS, dtype=float):
    pieces = [
        Piece(
            number,
            SPREAD[rows].astype(dtype),
            None if groups is None else groups[rows],
            None if weights is None else weights[rows],
        )
        for number, rows in enumerate(np.split(np.arange(N), cuts))
    ]
    table = Table(engine(pieces), 3, np.dtype(dtype), UnitFacts())
    open_units(table, grouped=groups is not None, largest=None if weights is None else 1.5)
    return table


def read_points(part):
    assert len(part.source.read()) == part.units.n_rows and part.units.index is None
    return part.source.read()


def weights_of(part):
    weights = part.units.weights
    return np.ones(part.units.n_rows, dtype=np.int64) if weights is None else weights


def known_points(weights, dtype=float):
    """The same in memory, and their weights."""
    if weights is None:
        units, rows = Units(N, GROUPS), SPREAD.astype(dtype)
    else:
        units, there = Units.weighted(weights, 1.5, GROUPS)
        rows = SPREAD.astype(dtype)[there]
    alone = units_of_points(units)
    return unit_points(rows, units), alone, weights_of(Part(None, alone))


@pytest.mark.parametrize("engine", [LocalEngine, Elsewhere])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_points_are_those_in_memory(weights, dtype, engine):
    expected, units, expected_weights = known_points(weights, dtype)
    for cuts in CUTS:
        table = group_points(table_of(cuts, weights, engine, dtype=dtype))
        assert table.engine.n_parts == len(cuts) + 1 and table.dtype == np.float64
        assert table.units == units.facts and not table.units.grouped
        assert np.array_equal(table.rows(weights_of), expected_weights)
        found = table.rows(read_points)
        assert found.tobytes() == expected.tobytes()
