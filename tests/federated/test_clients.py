"""What clients compute: exact sensitivities and invariances, rows that count, refused answers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from federated_states import CLIENT_STATES, ROW_STATES, D, all_kinds, clients, data, states

from sklearn_dp._queries.client_rounds import (
    CLIENT_STEPS,
    NORM_EDGES,
    STATISTICS,
    _clip_whole,
    coarse_step,
    is_count,
    norm_of,
    row_bounds,
)
from sklearn_dp.federated import client_update
from sklearn_dp.federated._clients import AnswerError, check_answer, total_of, usable_rows
from sklearn_dp.federated._server import empty_message, round_of


def test_no_share_makes_a_vector_longer_than_the_noise_covers():
    """Down to the least that the options take; of 5e-324 it was longer by a fifth."""
    rng = np.random.default_rng(0)
    message = {"l1": np.zeros(1), "center": np.zeros(3)}
    for share in (1.01e-6, 1e-3, 0.3, 1.0):
        for size in 10.0 ** rng.uniform(0, 3, 50):
            value = rng.integers(-(2**24), 2**24, 3) * int(size)
            sent = _clip_whole("sums", value, 1000, 2.0**24 * 1.7321, share, message)
            assert 0 < norm_of("sums", sent, message) <= CLIENT_STEPS


@all_kinds(CLIENT_STATES)
def test_a_client_without_usable_rows_sends_zeros(state):
    for rows in (np.empty((0, D)), np.full((4, D), np.nan)):
        for value in client_update(state.kind, state.message, rows).values():
            assert not value.any()


@all_kinds(CLIENT_STATES)
def test_a_client_uses_its_first_rows_only(state):
    message, rows = state.message | {"most_rows": np.array([9.0])}, data(5, 30)
    most, first, all_rows = (
        client_update(state.kind, asked, some)
        for asked, some in ((message, rows), (state.message, rows[:9]), (state.message, rows))
    )
    assert all(np.array_equal(most[name], first[name]) for name in first)
    assert any(not np.array_equal(most[name], all_rows[name]) for name in first)


def test_rows_with_nan_are_left_out_one_by_one_and_the_input_is_untouched():
    state = ROW_STATES[0]
    X = data(4, 9)
    X[3, 1], X[5, 0] = np.nan, np.inf
    before = X.copy()
    answer = client_update(state.kind, state.message, X)
    np.testing.assert_array_equal(X, before)
    finite = client_update(state.kind, state.message, np.delete(X, [3, 5], axis=0))
    assert all(np.array_equal(answer[name], finite[name]) for name in finite)


@all_kinds(ROW_STATES + CLIENT_STATES)
def test_whatever_numpy_is_told_to_raise_a_row_does_not_take_its_client_with_it(state):
    """It underflows when it is scaled: without care that is an error, and its client drops out."""
    X = np.vstack([data(2, 10), [1.7e308, 5e-324, -1e-310, 0.0, 1.0]])
    quiet = client_update(state.kind, state.message, X)
    with np.errstate(all="raise"):
        found = client_update(state.kind, state.message, X)
    assert all(np.array_equal(found[name], quiet[name]) for name in quiet)


ROWS = data(3, 8)


@pytest.mark.parametrize(
    "rows",
    [ROWS[:, 1:], ROWS[0], ROWS[None], None, 3.0, ROWS[:, 1:].astype(object), ROWS + 0j],
    ids=["array", "one row", "three axes", "none", "number", "objects", "complex"],
)
def test_types_and_shapes_of_arrays_are_public(rows):
    with pytest.raises(AnswerError, match="a client's rows must be"):
        usable_rows(rows, D)


def wrong_answers(good, bounded):
    name = next(iter(good))
    yield "exactly", {}
    yield "exactly", {**good, "more": np.zeros(1, dtype=int)}
    yield "exactly", None
    yield "integers", {**good, name: good[name].astype(float)}
    yield "integers", {**good, name: np.full(good[name].shape, np.nan)}
    yield "shape", {**good, name: good[name][:-1]}
    yield "shape", {**good, name: good[name][None]}
    yield "integers", {**good, name: np.full(good[name].shape, 2**70)}  # of objects
    yield "integers", {**good, name: good[name] > 0}
    if bounded:
        for number in (CLIENT_STEPS + 1, 2**62, 2**63 - 1, 2**64 - 1, -(2**63)):
            yield "range", {**good, name: np.full(good[name].shape, number)}


@all_kinds(ROW_STATES + CLIENT_STATES)
def test_wrong_answers_are_refused_with_words(state):
    good = client_update(state.kind, state.message, data(2, 10))
    wrong = list(wrong_answers(good, bool(state.message["shares"].size)))
    for word, answer in wrong:
        with pytest.raises(ValueError, match=word):
            check_answer(state.kind, state.message, answer)
    total, failed = total_of(
        state.kind,
        state.message,
        [
            (good, None),
            *((answer, None) for _, answer in wrong),
            (None, RuntimeError("secret 17")),
            (None, ValueError("row 17 is secret")),
            (good, None),
        ],
    )
    assert [number for number, _ in failed] == list(range(1, len(wrong) + 3))
    assert not any("17" in reason for _, reason in failed)
    assert all(np.array_equal(total[name], 2 * good[name]) for name in good)


@all_kinds(ROW_STATES)
def test_what_has_no_bound_saturates_and_never_wraps(state):
    """However large the answers are, the total moves by no more than the one that changes."""
    good = client_update(state.kind, state.message, data(2, 10))
    for number in (2**61 - 1, 2**62, 2**63 - 1, 2**64 - 1, -(2**61), -(2**63)):
        flood = {name: np.full(value.shape, number) for name, value in good.items()}
        for answers in ([good] + 9 * [flood], 9 * [flood] + [good], 5 * [flood] + [good, flood]):
            with_it, _ = total_of(state.kind, state.message, [(a, None) for a in answers])
            without, _ = total_of(
                state.kind, state.message, [(a, None) for a in answers if a is not good]
            )
            for name, value in good.items():
                moved = [int(a) - int(b) for a, b in zip(with_it[name], without[name], strict=True)]
                assert all(abs(m) <= abs(int(v)) for m, v in zip(moved, value, strict=True))
                assert np.abs(with_it[name]).max() <= 2**61


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


def swap_claims(state):
    """What is claimed where a unit is replaced by another, with the shares that are in force."""
    return round_of(replace(state, setup=replace(state.setup, swap=True))).bounds()


def distance(name, before, after, claim, laplace):
    """How far a vector moves, over the claim."""
    moved = (after - before).astype(np.float64) / (claim.bound * claim.pattern)
    counts = laplace and is_count(name)
    return float(np.abs(moved).sum() if counts else np.linalg.norm(moved))


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
