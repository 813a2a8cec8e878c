"""Where the data are and how far they reach, at any scale."""

import math

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared import adaptive_center
from sklearn_dp._aggregate.shared.adaptive_center import (
    _least,
    about_origin,
    adaptive_center_radius,
    center_radius_entries,
)
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def located(X, domain=None, *, rho=100.0, **options):
    session = open_session(*center_radius_entries(rho, 0.5), rho=rho)
    return adaptive_center_radius(session, Table.in_memory(X, Units(len(X))), domain, **options)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_a_ball_holds_most_rows_at_any_scale_and_place(scale, shift):
    X = scale * (np.random.default_rng(0).normal(size=(4000, 3)) + shift)
    found = located(X, wider=1.5)
    radius = found.radius * found.rows.unit
    distance = np.linalg.norm(X - found.domain.center, axis=1)
    assert found.status == "ok" and 0.98 <= np.mean(distance <= radius) <= 1
    assert radius < 8 * scale and found.domain.radius == pytest.approx(1.5 * radius)
    assert found.size == pytest.approx(4000, abs=40)


def test_public_bounds_hold():
    """All rows are far outside: they count as what they are clipped to."""
    X = np.full((4000, 2), 1e6)
    found = located(X, Domain.from_bounds((0.0, 1.0), 2))
    assert np.abs(found.domain.center - 1).max() < 0.1 and found.domain.radius < 1


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_have_an_answer_and_a_status(n):
    found = located(np.ones((n, 2)), rho=0.1)
    assert found.status.startswith("too few rows") and found.size >= 1
    assert np.isfinite(found.domain.center).all() and found.domain.radius > 0


def test_about_the_origin_only_the_reach_is_released():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    session = open_session(*center_radius_entries(10.0, 0.5, centered=True), rho=10.0)
    found = about_origin(session, Table.in_memory(X, Units(4000)), None, wider=2.0)
    radius = found.radius * found.rows.unit
    assert not found.domain.center.any() and found.size == math.inf
    assert np.mean(np.linalg.norm(X, axis=1) <= radius) > 0.97 and radius < 10
    assert found.domain.radius == pytest.approx(2 * radius)
    assert [row["release"] for row in session.report().releases] == ["reach"]


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("rho", [1e-6, 0.3, 100.0])
def test_entries_keep_to_their_share(rho, centered):
    entries = center_radius_entries(rho, 0.05, centered=centered)
    total = math.fsum(entry.rho for entry in entries)
    assert 0.05 * rho * (1 - 1e-9) < total <= 0.05 * rho
    names = ["reach"] if centered else ["bound", "location", "reach"]
    assert [entry.name for entry in entries] == names


def test_far_rows_go_to_the_border_and_near_ones_stay():
    X = np.array([[3.0, 4.0], [30.0, 40.0], [3e300, 4e300], [0.0, 0.0]])
    ball = Domain(np.zeros(2), 10.0)
    assert np.allclose(ball.move_rows(X), [[3, 4], [6, 8], [6, 8], [0, 0]])
    assert np.array_equal(X[1], [30, 40])  # the user's own rows are not changed
    assert ball.move_rows(X[:1]) is not None and np.array_equal(ball.move_rows(X[:1]), X[:1])
    box = Domain.from_bounds((0.0, 5.0), 2)
    assert box.move_rows(X).tolist() == [[3, 4], [5, 5], [5, 5], [0, 0]]


@pytest.mark.parametrize("entry", ["bound", "reach"])
def test_a_radius_that_rows_lie_beyond_leaves_the_ball_as_it_was(entry, monkeypatch):
    """Noise was taken for rows, once in 700 tables of few rows, and all rows were clipped to it."""

    def radius_about(session, name, *args, **options):
        radius, norms = original(session, name, *args, **options)
        return (1e-12 if name == entry else radius), norms

    original = adaptive_center.radius_about
    monkeypatch.setattr(adaptive_center, "radius_about", radius_about)
    X, domain = np.random.default_rng(0).normal(size=(4000, 2)), Domain.from_bounds(8.0, 2)
    found = located(X, domain)
    assert 2 < found.domain.radius <= 8
    assert (found.status == "ok") == (entry == "reach")
    session = open_session(*center_radius_entries(10.0, 0.5, centered=True), rho=10.0)
    about = about_origin(session, Table.in_memory(X, Units(4000)), domain)
    assert 2 < about.domain.radius <= 8


def test_the_smaller_radius_counts():
    assert _least(2.0, 5.0) == 2 and _least(7.0, 5.0) == 5
    assert _least(None, 5.0) == 5 and _least(None, math.inf) == 1
