"""The points of a mean: of units, in parts, and a sample of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import open_session

from sklearn_dp._aggregate.friendly.refine import Points
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._units import Units, exact_of
from sklearn_dp._queries import samples
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.columns import Columns
from sklearn_dp._queries.group_points import unit_points
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table

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


def test_only_the_sample_is_collected(monkeypatch):
    """No draw and no point besides it; draws are made in pieces."""
    monkeypatch.setattr(samples, "_DRAWS", 1000)
    points = points_of(X[:9000], X[9000:])
    sample = sample_of(points, 20_000.0)
    assert len(sample.points) == len(sample.numbers) < 4600
    assert np.array_equal(sample.numbers, sample_of(points_of(X), 20_000.0).numbers)
    assert points.pairs(session(1), 20_000.0) is points.pairs(session(), 20_000.0)
    assert points.pairs(session(), 1.0).compared.shape == ()
