"""Where the data are and how far they reach, at any scale."""

import math

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.shared.adaptive_center import (
    adaptive_center_radius,
    center_radius_entries,
)
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.table_rows import TableRows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def located(X, domain=None, *, rho=100.0, **options):
    session = open_session(*center_radius_entries(rho, 0.5), rho=rho)
    return adaptive_center_radius(session, TableRows.in_memory(X, Units(len(X))), domain, **options)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_a_ball_holds_most_rows_at_any_scale_and_place(scale, shift):
    X = scale * (np.random.default_rng(0).normal(size=(4000, 3)) + shift)
    found = located(X, wider=1.5)
    radius = found.radius * found.rows.unit
    distance = np.linalg.norm(X - found.domain.center, axis=1)
    assert not found.status and 0.98 <= np.mean(distance <= radius) <= 1
    assert radius < 8 * scale and found.domain.radius == pytest.approx(1.5 * radius)
    assert found.size == pytest.approx(4000, abs=40)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_have_an_answer_and_a_status(n):
    found = located(np.ones((n, 2)), rho=0.1)
    assert str(found.status).startswith("too few rows") and found.size >= 1
    assert np.isfinite(found.domain.center).all() and found.domain.radius > 0


@pytest.mark.parametrize("rho", [1e-6, 0.3, 100.0])
def test_entries_keep_to_their_share(rho):
    entries = center_radius_entries(rho, 0.05)
    total = math.fsum(entry.rho for entry in entries)
    assert 0.05 * rho * (1 - 1e-9) < total <= 0.05 * rho
    assert [entry.name for entry in entries] == ["bound", "location", "reach"]
