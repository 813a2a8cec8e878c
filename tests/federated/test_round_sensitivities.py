"""What is claimed of sums, where a unit is replaced by another; sums and their releases."""

import math
from dataclasses import replace

import numpy as np
from federated_states import CLIENT_STATES, NASTY, ROW_STATES, D, all_kinds, clients, data

from sklearn_dp._queries.client_rounds import is_count
from sklearn_dp.federated import client_update
from sklearn_dp.federated._server import round_of


def swap_claims(state):
    """What is claimed where a unit is replaced by another, with the shares that are in force."""
    return round_of(replace(state, setup=replace(state.setup, swap=True))).bounds()


def distance(name, before, after, claim, laplace):
    """How far a vector moves, over the claim."""
    moved = (after - before).astype(np.float64) / (claim.bound * claim.pattern)
    counts = laplace and is_count(name)
    return float(np.abs(moved).sum() if counts else np.linalg.norm(moved))


@all_kinds(ROW_STATES)
def test_a_row_in_the_place_of_another_moves_an_answer_by_its_bound_at_most(state):
    """Every pair of nasty rows and their mirror images; sums of opposite rows attain it."""
    rows = np.vstack([*NASTY.values(), data(3, 6, scale=2.0), 9.0 * np.eye(D)])
    rows = np.vstack([rows, -rows])
    answers = [client_update(state.kind, state.message, row[None]) for row in rows]
    for name, claim in swap_claims(state).items():
        worst = max(
            distance(name, a[name], b[name], claim, False) for a in answers for b in answers
        )
        assert worst <= 1
        # A single count does not move at all, and a sum only if opposite rows are in a cluster.
        assert worst > 0.69 or name == "center count", name


@all_kinds(CLIENT_STATES)
def test_a_client_in_the_place_of_another_moves_an_answer_by_its_bound_at_most(state):
    kinds = [
        *clients(),
        *(-rows for rows in clients()),
        *(9.0 * np.eye(D)[i : i + 1] for i in range(D)),
    ]
    answers = [client_update(state.kind, state.message, rows) for rows in kinds]
    for name, claim in swap_claims(state).items():
        worst = max(
            distance(name, a[name], b[name], claim, state.setup.laplace)
            for a in answers
            for b in answers
        )
        assert worst <= 1
        assert worst > 0.4 or name == "center count", name


def test_moments_of_clients_need_more_than_the_root_of_two_by_their_rounding_alone():
    (state,) = [s for s in CLIENT_STATES[:4] if s.kind == "moment"]
    (claim,) = swap_claims(state).values()
    # Each entry may lose a whole step: D steps in Frobenius norm.
    assert math.sqrt(2) * (2**20 + D) < claim.bound < math.sqrt(2) * 1.001 * 2**20
