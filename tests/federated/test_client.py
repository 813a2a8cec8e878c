"""What clients compute: exact sensitivities and invariances."""

import numpy as np
import pytest
from federated_states import (
    CLIENT_STATES,
    ROW_STATES,
    D,
    all_kinds,
    clients,
    data,
)
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._queries.client_rounds import ANSWERS, CLIENT_STEPS, _clip_whole, norm_of
from sklearn_dp.federated import client_update
from sklearn_dp.federated._clients import check_answer, total_of


@all_kinds(CLIENT_STATES)
def test_a_client_sends_a_vector_of_bounded_norm(state):
    largest = dict.fromkeys(ANSWERS[state.kind], 0.0)
    for rows in clients():
        answer = check_answer(
            state.kind, state.message, client_update(state.kind, state.message, rows)
        )
        for name, value in answer.items():
            largest[name] = max(largest[name], norm_of(name, value, state.message))
    assert all(0.5 * CLIENT_STEPS < norm <= CLIENT_STEPS for norm in largest.values()), largest


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


@pytest.mark.quick("moment0", "lift", "lloyd")
@all_kinds(ROW_STATES)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 99))
def test_it_does_not_matter_which_client_holds_a_row(state, cuts, seed):
    X = data(4, 60, scale=2.0)[np.random.default_rng(seed).permutation(60)]
    answers = [
        (client_update(state.kind, state.message, part), None) for part in np.split(X, sorted(cuts))
    ]
    total, failed = total_of(state.kind, state.message, answers)
    pooled = client_update(state.kind, state.message, data(4, 60, scale=2.0))
    assert not failed
    for name, value in pooled.items():
        assert np.array_equal(total[name], value)


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


def test_a_client_with_other_columns_fails():
    with pytest.raises(ValueError, match="columns"):
        client_update("moment", ROW_STATES[0].message, np.zeros((3, D + 1)))
