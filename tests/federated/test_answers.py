"""Answers that are refused, and those that saturate."""

import numpy as np
import pytest
from federated_states import CLIENT_STATES, ROW_STATES, all_kinds, data

from sklearn_dp._queries.client_rounds import CLIENT_STEPS
from sklearn_dp.federated import client_update
from sklearn_dp.federated._clients import check_answer, total_of


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
        for number in (2**62, 2**63 - 1, 2**64 - 1, -(2**63)):
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


def test_a_client_that_exceeds_its_norm_is_refused():
    for state in CLIENT_STATES:
        good = client_update(state.kind, state.message, data(2, 10))
        name = next(iter(good))
        with pytest.raises(ValueError, match="range"):
            check_answer(
                state.kind,
                state.message,
                {
                    **good,
                    name: np.full(good[name].shape, CLIENT_STEPS)
                    if len(good[name]) > 1
                    else np.array([CLIENT_STEPS + 1]),
                },
            )
