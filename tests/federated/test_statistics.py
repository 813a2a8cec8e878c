"""Statistics of rows: exact sensitivities, exact sums, one nearest point for each row."""

import numpy as np
import pytest
from federated_states import NASTY, ROW_STATES, D, all_kinds, data, states

from sklearn_dp._queries.client_rounds import (
    NORM_EDGES,
    STATISTICS,
    coarse_step,
    norm_of,
    row_bounds,
)
from sklearn_dp.federated import client_update
from sklearn_dp.federated._server import empty_message


@all_kinds(ROW_STATES)
def test_a_row_moves_an_answer_by_its_bound_at_most(state):
    """Removed from the data, whichever row it is; the bound is met up to 1% by some row."""
    kind, message = state.kind, state.message
    X = np.vstack([data(3, 20, scale=2.0), *NASTY.values()])
    whole, worst = client_update(kind, message, X), {}
    for i in range(len(X)):
        fewer = client_update(kind, message, np.delete(X, i, axis=0))
        for name, bound in row_bounds(kind, message).items():
            ratio = norm_of(name, whole[name] - fewer[name], message) / bound
            worst[name] = max(worst.get(name, 0.0), ratio)
    assert all(0.99 < ratio <= 1 for ratio in worst.values()), worst


def test_ties_count_once():
    """A row at equal distance of two points, and next to a point that is there twice."""
    (state,) = [state for state in states() if state.kind == "weights"]
    message = dict(
        state.message,
        points=np.array([[64.0, 0], [-64, 0], [64, 0]]),
        basis=np.empty((0, 0)),
        center=np.zeros(2),
    )
    message["radius"] = np.array([1.0])
    answer = client_update("weights", message, np.zeros((7, 2)))
    assert answer["weights"].tolist() == [7, 0, 0]


@all_kinds(ROW_STATES)
def test_statistics_of_blocks_add_up_to_that_of_all_rows(state):
    """Whatever is in the other block: integers, and each row's part is its own."""
    X = np.vstack([data(3, 30, scale=2.0), *NASTY.values()])
    statistic, message = STATISTICS[state.kind], state.message
    whole = statistic(message, X)
    rows = [statistic(message, X[i : i + 1]) for i in range(len(X))]
    for name, value in whole.items():
        assert np.issubdtype(value.dtype, np.integer)
        assert np.array_equal(sum(row[name] for row in rows), value)


def test_a_moment_is_the_upper_triangle_of_the_sum_of_products():
    """On the grid, in coarse steps: within the rounding of two entries of norm 2**15."""
    (state,) = [state for state in ROW_STATES if state.kind == "moment"][:1]
    message, X = state.message, data(3, 50)
    X = X[np.linalg.norm(X, axis=1) < 3.0]  # inside the domain
    limit = float(message["limit"][0])
    steps = message["radius"][0] / limit * coarse_step(limit)
    if message["origin"].size:
        pytest.fail("the first state has no origin")
    exact = (X / steps).T @ (X / steps)
    found = STATISTICS["moment"](message, X)["second moment"]
    assert found == pytest.approx(exact[np.triu_indices(D)], abs=len(X) * 2**16 * 1.1)


@pytest.mark.parametrize("limit", [1.0, 2.0**15, 2.0**15 + 1, 3e6, 2.0**24, 2.0**25])
def test_a_row_of_a_moment_has_a_norm_that_leaves_room_for_four_billion_rows(limit):
    coarse = coarse_step(limit)
    assert limit / coarse <= 2**15 and np.log2(coarse) % 1 == 0
    assert coarse == 1 or limit / coarse > 2**14  # no coarser than needed
    assert 2**32 * (limit / coarse) ** 2 < 2**63


def test_norms_are_binned_before_any_bound_is_known():
    """A row in one bin, the last one for whatever is beyond the edges."""
    message = empty_message(2, None)
    X = np.array([[3.0, 4.0], [0.0, 0.0], [5e-324, 0.0], [1e308, 1e308]])
    found = STATISTICS["bound"](message, X)["bound"]
    assert found.sum() == 4 and found[0] == 2 and found[-1] == 1
    (middle,) = np.flatnonzero(found[1:-1]) + 1
    assert NORM_EDGES[middle] <= 5.0 < NORM_EDGES[middle + 1]


def test_every_kind_of_round_has_bounds_for_the_vectors_of_its_answer():
    kinds = {state.kind: state for state in states() + states(server=False)}
    for kind, state in kinds.items():
        answer = STATISTICS[kind](state.message, data(1, 5))
        assert row_bounds(kind, state.message).keys() == answer.keys()
