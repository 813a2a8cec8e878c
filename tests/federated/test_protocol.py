"""What clients compute: exact sensitivities, invariances, and answers that are refused."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.federated import _server, client_update, first_message, server_update
from sklearn_dp.federated._engines import total_of
from sklearn_dp.federated._plan import entries_of
from sklearn_dp.federated._protocol import (
    ANSWERS,
    CLIENT_STEPS,
    check_answer,
    is_count,
    norm_of,
    project,
    row_bounds,
)
from sklearn_dp.federated._server import Setup

D, K = 5, 3


def data(seed, n, d=D, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n, d))


def server_points():
    """With duplicates, and points in the middle between others."""
    points = data(1, 12)
    return np.vstack([points, points[:3], (points[:2] + points[2:4]) / 2, np.zeros((1, D))])


def states(per_client=False, laplace=False, local_means=False, server=True, n_lloyd=1):
    """The states of all the rounds of a small fit, with the session that made them."""
    domain = Domain.from_bounds(3.0, D)
    setup = Setup(K, D, domain, server_points() if server else None, None, n_lloyd, per_client,
                  laplace=laplace, local_means=local_means)
    budget = PrivacyBudget(epsilon=20.0, delta=1e-6)
    entries = entries_of(setup.rounds, budget, "group" if per_client else "row", laplace=laplace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = PrivacySession(PrivacyPlan(budget, entries), random_state=0)
    state, found = first_message(setup, session), []
    while state.message is not None:
        found.append(state)
        total, _ = total_of(state.kind, state.message, [
            (client_update(state.kind, state.message, data(seed, 40)), None) for seed in range(4)])
        state = server_update(state, total, session)
    return found


ROW_STATES = states() + states(server=False)[:2]
OPTIONS = [{}, {"laplace": True}, {"local_means": True, "laplace": True}, {"server": False}]
CLIENT_STATES = [state for options in OPTIONS for state in states(True, **options)]
NASTY = {"far": np.full(D, 1e9), "zero": np.zeros(D), "tiny": np.full(D, 5e-324),
         "server": server_points()[0], "between": server_points()[-2], "huge": np.full(D, 1e300),
         "edge": 3.0 * np.eye(D)[0], "corner": np.full(D, 3.0 / np.sqrt(D))}


def all_kinds(found):
    return pytest.mark.parametrize("state", found, ids=lambda state: state.kind)


@all_kinds(ROW_STATES)
def test_a_row_moves_an_answer_by_its_bound_at_most(state):
    """Removed from the data, whichever row it is; the bound is met up to 1 % by some row."""
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
    message = dict(state.message, points=np.array([[64.0, 0], [-64, 0], [64, 0]]),
                   basis=np.empty((0, 0)), center=np.zeros(2))
    message["radius"] = np.array([1.0])
    answer = client_update("weights", message, np.zeros((7, 2)))
    assert answer["weights"].tolist() == [7, 0, 0]


def clients():
    """Every kind of client that must not be able to move a sum by more than its bound."""
    yield data(5, 30)
    yield data(6, 1)
    yield np.tile(NASTY["huge"], (1000, 1))
    yield 1e6 * data(7, 20_000)
    yield np.full((4, D), np.nan)
    yield np.vstack([np.full((1, D), np.inf), data(8, 3)])
    yield np.empty((0, D))
    yield np.repeat(server_points(), 50, axis=0)


@all_kinds(CLIENT_STATES)
def test_a_client_sends_a_vector_of_bounded_norm(state):
    largest = dict.fromkeys(ANSWERS[state.kind], 0.0)
    for rows in clients():
        answer = check_answer(state.kind, state.message,
                              client_update(state.kind, state.message, rows))
        for name, value in answer.items():
            largest[name] = max(largest[name], norm_of(name, value, state.message))
    assert all(0.5 * CLIENT_STEPS < norm <= CLIENT_STEPS for norm in largest.values()), largest


@all_kinds(CLIENT_STATES)
def test_a_client_without_usable_rows_sends_zeros(state):
    for rows in (np.empty((0, D)), np.full((4, D), np.nan)):
        for value in client_update(state.kind, state.message, rows).values():
            assert not value.any()


@all_kinds(ROW_STATES)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 99))
def test_it_does_not_matter_which_client_holds_a_row(state, cuts, seed):
    X = data(4, 60, scale=2.0)[np.random.default_rng(seed).permutation(60)]
    answers = [(client_update(state.kind, state.message, part), None)
               for part in np.split(X, sorted(cuts))]
    total, failed = total_of(state.kind, state.message, answers)
    pooled = client_update(state.kind, state.message, data(4, 60, scale=2.0))
    assert not failed
    for name, value in pooled.items():
        assert np.array_equal(total[name], value)


@all_kinds(ROW_STATES)
def test_blocks_of_rows_change_nothing(state, monkeypatch):
    X = data(4, 60, scale=2.0)
    whole = client_update(state.kind, state.message, X)
    monkeypatch.setattr("sklearn_dp.federated._protocol._BLOCK", 7)
    for name, value in client_update(state.kind, state.message, X).items():
        assert np.array_equal(value, whole[name])


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


def test_public_proxies_stay_where_the_nearest_one_is_found_exactly():
    """Products with rows are exact for norms up to 2**25, however wide the released spread is."""
    points = _server._public_proxies(np.full(400, 2.0**24), 4, 2.0**24, np.random.default_rng(0))
    assert len(points) == 200 and np.array_equal(points, np.rint(points))
    assert 0.999 * 2**25 < np.linalg.norm(points, axis=1).max() <= 2**25
    narrow = _server._public_proxies(np.array([9.0, 3.0]), 4, 2.0**24, np.random.default_rng(0))
    assert np.std(narrow, axis=0) == pytest.approx([10.8, 3.6], rel=0.4)


def test_a_subspace_is_known_up_to_rotation():
    """Another orthonormal basis of the same plane changes no nearest point."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, 2)))[0]
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    state = next(state for state in states() if state.kind == "weights")
    points = np.rint(1e5 * rng.normal(size=(9, D)))
    counts = []
    for axes in (basis, basis @ turn, basis[:, ::-1]):
        message = dict(state.message, basis=np.rint(axes * 2.0**20))
        message["points"] = project(message, points)
        counts.append(client_update("weights", message, data(9, 500))["weights"])
    assert np.array_equal(counts[0], counts[1]) and np.array_equal(counts[0], counts[2])
    assert np.count_nonzero(counts[0]) > 3


# -- one in the place of another ------------------------------------------------------------------


def claims_of(state):
    """What is claimed where a unit is replaced by another, with the shares that are in force."""
    return _server._claims(replace(state, setup=replace(state.setup, swap=True)))


def distance(name, before, after, claim, laplace):
    """How far a vector moves, over the claim."""
    bound, pattern, _ = claim
    moved = (after - before).astype(np.float64) / (bound * pattern)
    counts = laplace and is_count(name)
    return float(np.abs(moved).sum() if counts else np.linalg.norm(moved))


@all_kinds(ROW_STATES)
def test_a_row_in_the_place_of_another_moves_an_answer_by_its_bound_at_most(state):
    """Every pair of nasty rows and their mirror images; sums of opposite rows attain it."""
    rows = np.vstack([*NASTY.values(), data(3, 6, scale=2.0), 9.0 * np.eye(D)])
    rows = np.vstack([rows, -rows])
    answers = [client_update(state.kind, state.message, row[None]) for row in rows]
    for name, claim in claims_of(state).items():
        worst = max(distance(name, a[name], b[name], claim, False)
                    for a in answers for b in answers)
        assert worst <= 1
        # A single count does not move at all, and a sum only if opposite rows are in a cluster.
        assert worst > 0.69 or name == "center count", name


@all_kinds(CLIENT_STATES)
def test_a_client_in_the_place_of_another_moves_an_answer_by_its_bound_at_most(state):
    kinds = [*clients(), *(-rows for rows in clients()), *(9.0 * np.eye(D)[i:i + 1]
                                                          for i in range(D))]
    answers = [client_update(state.kind, state.message, rows) for rows in kinds]
    for name, claim in claims_of(state).items():
        worst = max(distance(name, a[name], b[name], claim, state.setup.laplace)
                    for a in answers for b in answers)
        assert worst <= 1
        assert worst > 0.4 or name == "center count", name


def test_moments_of_clients_need_more_than_the_root_of_two_by_their_rounding_alone():
    (state,) = [s for s in CLIENT_STATES[:4] if s.kind == "moment"]
    (bound, _, _), = claims_of(state).values()
    assert math.sqrt(2) < bound / 2**20 < math.sqrt(2) * 1.001


# -- answers that are refused ----------------------------------------------------------------------


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
        for number in (2**62, 2**63 - 1, 2**64 - 1, -2**63):
            yield "range", {**good, name: np.full(good[name].shape, number)}


@all_kinds(ROW_STATES + CLIENT_STATES)
def test_wrong_answers_are_refused_with_words(state):
    good = client_update(state.kind, state.message, data(2, 10))
    wrong = list(wrong_answers(good, bool(state.message["shares"].size)))
    for word, answer in wrong:
        with pytest.raises(ValueError, match=word):
            check_answer(state.kind, state.message, answer)
    total, failed = total_of(state.kind, state.message, [
        (good, None), *((answer, None) for _, answer in wrong),
        (None, RuntimeError("secret 17")), (None, ValueError("row 17 is secret")), (good, None)])
    assert [number for number, _ in failed] == list(range(1, len(wrong) + 3))
    assert not any("17" in reason for _, reason in failed)
    assert all(np.array_equal(total[name], 2 * good[name]) for name in good)


@all_kinds(ROW_STATES)
def test_what_has_no_bound_saturates_and_never_wraps(state):
    """However large the answers are, the total moves by no more than the one that changes."""
    good = client_update(state.kind, state.message, data(2, 10))
    for number in (2**61 - 1, 2**62, 2**63 - 1, 2**64 - 1, -2**61, -2**63):
        flood = {name: np.full(value.shape, number) for name, value in good.items()}
        for answers in ([good] + 9 * [flood], 9 * [flood] + [good], 5 * [flood] + [good, flood]):
            with_it, _ = total_of(state.kind, state.message, [(a, None) for a in answers])
            without, _ = total_of(state.kind, state.message,
                                  [(a, None) for a in answers if a is not good])
            for name, value in good.items():
                moved = [int(a) - int(b) for a, b in zip(with_it[name], without[name], strict=True)]
                assert all(abs(m) <= abs(int(v)) for m, v in zip(moved, value, strict=True))
                assert np.abs(with_it[name]).max() <= 2**61


def test_a_client_that_exceeds_its_norm_is_refused():
    for state in CLIENT_STATES:
        good = client_update(state.kind, state.message, data(2, 10))
        name = next(iter(good))
        with pytest.raises(ValueError, match="range"):
            check_answer(state.kind, state.message,
                         {**good, name: np.full(good[name].shape, CLIENT_STEPS)
                          if len(good[name]) > 1 else np.array([CLIENT_STEPS + 1])})


def test_a_client_with_other_columns_fails():
    with pytest.raises(ValueError, match="columns"):
        client_update("moment", ROW_STATES[0].message, np.zeros((3, D + 1)))
