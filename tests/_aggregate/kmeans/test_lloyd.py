"""Lloyd's iterations from a released start: their budget, what they release, how many there are."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from grid_tools import quantized
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import TUNING, Context
from sklearn_dp._aggregate.kmeans.lloyd import (
    Gains,
    lloyd,
    lloyd_budget,
    lloyd_entries,
    merge_and_split,
)
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._costs.plan import PlanEntry

RHO = 1.0
CENTERS = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.6]])
X = CENTERS[np.arange(3000) % 3] + 0.03 * np.random.default_rng(0).normal(size=(3000, 2))


def session(early=(), later=(), *, rho=RHO, cap=RHO):
    entries = (*early, *lloyd_entries(rho, cap), *later)
    return open_session(*entries, rho=RHO)


def run(money, start, callback=None):
    rows = quantized(X, 1.0)
    size = Size(float(len(X)), math.sqrt(2 * RHO))
    context = Context(
        session=money,
        rows=rows,
        n_clusters=len(start),
        size=size,
        radius=rows.limit,
        callback=callback,
    )
    return lloyd(context, np.rint(start / rows.unit)), rows.unit


def test_the_iterations_may_take_what_is_free_and_leave_later_entries_theirs():
    early, later = [PlanEntry("early", "gaussian", 0.25)], [PlanEntry("later", "gaussian", 0.25)]
    assert lloyd_budget(session(early, later, rho=0.5)) == pytest.approx(0.75)
    assert lloyd_budget(session(early, later, rho=0.5, cap=0.6)) == pytest.approx(0.6)


def test_all_the_budget_goes_into_centers_that_find_the_clusters():
    names, money = [], session()
    found, unit = run(money, 0.5 * CENTERS, names.append)
    error = np.linalg.norm(found.centers * unit - CENTERS, axis=1)
    assert error.max() < 0.02
    assert money.remaining() < 1e-9 * RHO
    assert 2 <= found.n_iterations == len(names) <= TUNING.most_iterations
    assert np.allclose(found.counts, 1000, atol=6 * found.counts_sd.max())


def test_the_reach_of_a_cluster_holds_nearly_all_of_its_rows():
    found, unit = run(session(), CENTERS)
    farthest = np.linalg.norm(X - CENTERS[np.arange(3000) % 3], axis=1).max()
    assert (found.reach * unit > 0.8 * farthest).all() and (found.reach * unit < 0.5).all()


@pytest.mark.parametrize("sd", [0.1, 10.0])
def test_a_move_by_hand(sd):
    """Of counts 30 and 10, two apart: 30 * 10 / 40 * 4. Where noise may be all of a count, it is
    next to nothing. The halves of the third cluster are 5 away, of 10 that are believed."""
    state, costs = LloydState(np.array([[0.0, 0], [2, 0], [100, 0]])), []
    state.counts, state.counts_sd = np.array([30.0, 10, 100]), np.array([0.1, sd, 0.1])
    state.likely, state.likely_sd, state.variance = state.counts, state.counts_sd, np.ones(3)
    gain = Gains(np.array([0.0, 0, 1e6]), np.ones(3), np.zeros(3))
    halves = SimpleNamespace(offset=lambda j: np.array([0.0, 5]), part=0.5)
    assert merge_and_split(state, gain, lambda c: costs.append(c) or 2.5, halves, TUNING, most=1)
    n = 10.0 if sd < 1 else TUNING.least_count * sd
    assert costs == pytest.approx([30 * n / (30 + n) * 4] * len(costs))
    assert state.centers == pytest.approx(np.array([[0.5, 0], [100, -5], [100, 5]]))
    assert state.counts == pytest.approx([40, 50, 50])
    assert state.variance == pytest.approx([0.75**2 + 0.25**2, 50, 50])
