"""Noisy means of bounded vectors: what a row becomes, the clip, and what one row may add."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.columns.vectors import clipped_mean
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.vectors import Vectors

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
    # Of rows beyond released ends nothing is counted.
    half = replace(vectors, outer=np.array([[-np.inf] * 3, [10.0, 5.0, 2.0]]))
    assert half.outside(rows).tolist() == [[0] * 6, [0, 0, 0, 1023, 0, 0], [0] * 5 + [1023]]


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
