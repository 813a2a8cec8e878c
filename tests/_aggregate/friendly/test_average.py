"""The friendly average, and the search for a radius."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import open_session

from sklearn_dp._aggregate.friendly import refine as _radius
from sklearn_dp._costs import accounting
from sklearn_dp._costs.numbers import sum_up
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._noise import gaussian_tail
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import averages
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.averages import average_lattice
from sklearn_dp._queries.point_pairs import PointPairs

DELTA = 1e-8


def session_of(entries, seed=0, delta=DELTA):
    rho = sum_up([entry.rho for entry in entries])
    return open_session(*entries, rho=rho, delta=delta, random_state=seed)


def average_session(seed=0):
    return session_of(
        [PlanEntry("size", "friendly average", 0.1), PlanEntry("mean", "friendly average", 0.9)],
        seed,
    )


def average(rows, radius, seed=0, delta=1e-6):
    return averages.friendly_average(
        average_session(seed), "size", "mean", rows, radius, rho_size=0.1, rho_mean=0.9, delta=delta
    )


def recorded(run, *arguments):
    with trace(Trace()) as recorder:
        result = run(*arguments)
    return recorder.events, result


# -- the average in exact integers ------------------------------------------------------------


def test_the_release_is_one_of_a_public_lattice():
    """No low-order bits of the data: all outputs are multiples of a step set by the radius."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3)) * 1e-3 + math.pi * 1e4
    events, found = recorded(average, rows, 1.0)
    unit = events[-1].public["unit"]
    assert math.frexp(unit)[0] == 0.5  # a power of two
    assert all(type(v) is int for v in events[-1].output.tolist())
    assert np.array_equal(found.mean, np.rint(found.mean / unit) * unit)
    # Moving everything by a multiple of the coarse step moves the release by just that.
    moved = average(rows + 2.0**20, 1.0)
    assert np.array_equal(moved.mean - 2.0**20, found.mean)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 4))
def test_friendly_sets_keep_the_sensitivity(seed, n, p):
    """Points with pairwise common friends: any one added, removed or replaced."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n + 1, p))
    norms = np.linalg.norm(direction, axis=1, keepdims=True)
    X = direction / norms * rng.choice([0.3, 1.0], size=(n + 1, 1)) + 1e6 / 3
    for rows, other in ((X, X[:-1]), (X[:-1], X[1:])):
        size = min(len(rows), len(other)) + (len(rows) != len(other))
        value, _, sensitivity = averages._rounded_average(rows, 1.0, size)
        neighbor, _, _ = averages._rounded_average(other, 1.0, size)
        assert np.linalg.norm((value - neighbor).astype(float)) <= sensitivity


def test_weighted_averages_by_hand_and_their_sensitivity():
    steps, weights = np.array([[0.0, 8.0], [10.0, 0.0]]), np.array([3, 1])
    assert averages._exact_average(steps, 2, weights).tolist() == [10, 24]  # 4 times 2.5 and 6
    assert averages._exact_average(steps, 2, 0 * weights).tolist() == [0, 0]
    assert averages._exact_average(steps, 5, np.array([7, 7])).tolist() == (
        averages._exact_average(steps, 5).tolist()
    )
    # A row of the largest weight, 2 radii away from all the others, and one of a part of it.
    X = np.zeros((6, 1))
    X[-1] = 2.0
    for last in (2**20, 2**18):
        weights = np.array([2**20, 2**18, 2**19, 2**20, 2**20, last])
        size = weights.sum() / 2**20 - 1  # as large as it may come out
        value, _, sensitivity = averages._rounded_average(X, 1.0, size, weights)
        other, _, _ = averages._rounded_average(X[:-1], 1.0, size, weights[:-1])
        moved = float(abs(value - other)[0]) / sensitivity
        part = last / 2**20 * size / (size + 1)  # of the claim, 2 radii over the size
        assert part * 0.999 < moved < 1


def worst_pair(n):
    """n - 1 points and one 2 radii away, which they reach over a common friend."""
    X = np.zeros((n, 1))
    X[-1] = 2.0
    size = n - 1.0
    value, _, sensitivity = averages._rounded_average(X, 1.0, size)
    neighbor, _, _ = averages._rounded_average(X[:-1], 1.0, size)
    return float(abs(value - neighbor)[0]) / sensitivity


def test_sensitivity_is_sharp():
    """r/n instead of 2r/n, or n instead of its lower bound, would not do."""
    for n in (10, 1000):
        assert (n - 1) / n - 1e-3 < worst_pair(n) <= 1


def test_size_is_a_lower_bound_but_for_delta():
    """P[size > m - 1] <= delta exactly: the law of the shift, and where it is sharp."""
    for rho in (0.01, 0.1, 2.0):
        sd = 1 / math.sqrt(2 * rho)
        for delta in (0.05, 1e-9):
            entries = [
                PlanEntry("size", "friendly average", rho),
                PlanEntry("mean", "friendly average", 1.0),
            ]
            events, found = recorded(
                lambda e=entries, d=delta, r=rho: averages.friendly_average(
                    session_of(e),
                    "size",
                    "mean",
                    np.zeros((500, 1)),
                    1.0,
                    rho_size=r,
                    rho_mean=1.0,
                    delta=d,
                )
            )
            noise = events[-2].output - 500
            shift = 500 + noise - found.size
            # size <= m - 1 iff noise <= shift - 1: rounded noise exceeds that within delta.
            assert gaussian_tail(sd, math.floor(shift - 1) + 1) <= delta
            assert gaussian_tail(sd, math.floor(shift - 1) - 1) > delta


# -- the radius -------------------------------------------------------------------------------


def far_pairs(X, radii):
    return TableRows.in_memory(X, Units(len(X))).ask(PointPairs(radii)).far


def radius_of(X, rho, seed=0, slack=0.0, low=1e-6, high=1e12):
    radii = _radius.radius_grid(low, high)
    events, found = recorded(
        lambda: _radius.find_radius(
            session_of([PlanEntry("radius", "gaussian", rho, uses=None)], seed),
            "radius",
            far_pairs(X, radii),
            radii,
            rho=rho,
            slack=slack,
        )
    )
    return found, len(events) - 1, radii  # the first event is the seed


@pytest.mark.parametrize(
    "low, high, size, calls",
    [(1.0, 1.0, 1, 0), (1.0, 1.5, 2, 1), (1e-6, 1e12, 104, 7), (0.1, 1e4, 30, 5)],
)
def test_grid_and_number_of_steps(low, high, size, calls):
    radii = _radius.radius_grid(low, high)
    assert len(radii) == size and radii[0] == low and radii[-1] >= high * (1 - 1e-9)
    worst = max(
        radius_of(X, 10.0, low=low, high=high)[1]
        for X in (np.zeros((9, 1)), np.arange(9.0)[:, None] * 1e15)
    )
    assert calls - 1 <= worst <= max(1, (size - 1).bit_length())


# -- budgets and accuracy -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_basic_budget_composes_to_its_target(epsilon):
    """From the inner budget up, by the theorem, without the rounding of the code."""
    delta = 1e-7
    rho, delta_inner, cost = averages.basic_average_budget(epsilon, delta)
    inner = accounting.gaussian_epsilon(accounting.mu_from_rho(rho), delta_inner)
    whole = 2 * math.expm1(inner)
    assert 0.99 * epsilon < whole <= epsilon
    total = 4 * delta_inner * math.exp(inner + whole)
    assert 0.99 * delta < total <= delta
    assert cost >= epsilon * math.tanh(epsilon / 2)


def test_the_sensitivity_is_that_of_a_mean_and_of_its_rounding():
    """Two radii over the size, in fine steps; nearly all of it is that."""
    unit, fine, sensitivity = average_lattice(4, 1.0, 100.0)
    needed = 2 / 100 / math.ldexp(unit, -fine)
    assert needed < sensitivity < needed * (1 + 2.0**-13)
