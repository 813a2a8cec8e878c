"""Noisy means of bounded vectors: what a row becomes, the clip, and what one row may add."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.columns.vectors import clipped_mean
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp._queries.vectors import Vectors
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table

BOX = np.array([0.0, -5.0, 2.0]), np.array([10.0, 5.0, 2.0])


def of_box(**options):
    low, high = BOX
    return Vectors(np.arange(3), low, high, np.array([2.0, 0.0, 2.0]), **options)


def clipped(X, vectors, rho=1e6, seed=0, units=None, likely=1.0):
    entries = PlanEntry.gaussian("distances", rho, ""), PlanEntry.gaussian("mean", rho, "")
    session = open_session(*entries, rho=2 * rho, random_state=seed)
    table = TableRows.in_memory(X, Units(len(X)) if units is None else units)
    rest = {"counts": rho, "likely": likely}
    return clipped_mean(session, table, vectors, float(len(X)), "mean", rho=rho, **rest)


def test_what_a_row_becomes():
    vectors = of_box(powers=((2, 0.5),), shifts=(0.25,))
    assert vectors.half.tolist() == [8.0, 5.0, 1.0] and vectors.weights == [1.0, 0.5]
    rows = np.array([[2.0, 0.0, 2.0], [14.0, -2.5, 2.0], [-1.0, 5.0, 3.0]])
    expected = [
        [0, 0, 0, -0.125, -0.125, -0.125],
        [1, -0.5, 0, 0.375, 0, -0.125],
        [-0.25, 1, 0, -0.09375, 0.375, -0.125],
    ]
    np.testing.assert_allclose(vectors(rows), expected, atol=1e-15)
    assert np.linalg.norm(vectors(np.full((1, 3), 1e300))) <= vectors.most
    assert vectors.outside(rows).tolist() == [
        [0] * 6,
        [0, 0, 0, 1023, 0, 0],
        [724, 0, 0, 0, 0, 724],
    ]
    # Where a row is beyond public ends makes no difference to released ones next to them.
    inner = Vectors(
        np.arange(1),
        np.array([2.0]),
        np.array([9.99999]),
        np.array([3.0]),
        outer=np.array([[-np.inf], [10.0]]),
    )
    assert inner.outside(np.array([[1.0], [10.0], [1e9]])).tolist() == [[1023, 0], [0, 0], [0, 0]]


def test_where_a_row_is_beyond_the_ends_changes_no_sum():
    X = np.random.default_rng(0).uniform(-2, 12, size=(300, 3))
    inside, vectors = np.clip(X, *BOX), of_box(beyond=0.1)
    one, two = (clipped(rows, vectors, rho=2.0) for rows in (X, inside))
    assert np.array_equal(one.parts, two.parts) and one.radius == two.radius
    assert one.beyond.sum() > two.beyond.sum() + 5 * two.beyond_sd


def test_the_radius_is_where_noise_and_loss_are_least_together():
    """Forty rows of 4,000 are far out in one column: noise alone decides whether they count."""
    X = np.full((4000, 3), [2.0, 0.0, 2.0])
    X[:40, 0] = 10.0
    vectors = of_box()
    assert clipped(X, vectors, rho=0.5).radius == pytest.approx(1.03, rel=0.01)
    # Beside rows of one place they are not given up; beside others, of norms up to .4, they are.
    assert clipped(X, vectors, rho=1e-4).radius >= 1.0
    X[:, 1] = np.random.default_rng(0).uniform(-2, 2, 4000)
    small = [clipped(X, vectors, rho=1e-4, seed=seed).radius for seed in range(20)]
    assert np.median(small) < 0.6
    # What noise adds to sampling next to nothing, no row pays for.
    assert clipped(X, vectors, rho=1e3).radius == pytest.approx(vectors.most)


def test_noise_is_what_it_says():
    """2,000 numbers: their spread is right to 1.6%, so 8% off has probability 5e-7."""
    X = np.full((50, 3), [2.0, 0.0, 2.0])
    vectors, off = of_box(powers=((2, 0.4),), shifts=(0.0,), beyond=0.36), []
    for seed in range(335):
        found = clipped(X, vectors, rho=2.0, seed=seed)
        off.append(np.concatenate([found.parts[0] / found.sds[0], found.parts[1] / found.sds[1]]))
    assert np.std(off) == pytest.approx(1.0, abs=0.08)
    assert found.sds[0] == pytest.approx(found.radius / 0.8 / 2 / 50, rel=1e-6)
    assert found.beyond_sd == pytest.approx(1 / 0.6 / 2 / 50, rel=1e-6)


def test_groups_weigh_one_and_parts_add_up():
    rng = np.random.default_rng(0)
    X, groups = rng.uniform(0, 5, size=(900, 3)), np.repeat(np.arange(300), 3)
    units = Units(900, groups)
    whole = clipped(X, of_box(), units=units)
    expected = of_box()(X).sum(axis=0) / 3 / 900
    np.testing.assert_allclose(whole.parts[0], expected, atol=1e-3)
    entries = PlanEntry.gaussian("distances", 1e6, ""), PlanEntry.gaussian("mean", 1e6, "")
    session = open_session(*entries, rho=2e6, random_state=0)
    parts = [
        Part(ArraySource(X[:299], 0), units.take(slice(0, 299))),
        Part(ArraySource(X[299:], 1), units.take(slice(299, 900))),
    ]
    table = TableRows(Table(LocalEngine(parts), 3, np.float64, units.facts))
    rest = {"counts": 1e6, "likely": 1.0}
    found = clipped_mean(session, table, of_box(), 900.0, "mean", rho=1e6, **rest)
    assert np.array_equal(found.parts[0], whole.parts[0])
