"""Bounds of clients' vectors: from public data and releases, never from clients."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import CLIENT_STATES, D, all_kinds, states

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._queries.client_rounds import ANSWERS, CLIENT_STEPS, norm_of, row_bounds
from sklearn_dp.federated import _client_bounds, client_update
from sklearn_dp.federated._client_bounds import client_shares, learn_reach
from sklearn_dp.federated._messages import NOTHING, bound_anchors, message_of
from sklearn_dp.federated._state import Setup, State, begin

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

WITH_SERVER = [state for state in CLIENT_STATES if state.setup.server is not None]


def session(seed=0):
    plan = PrivacyPlan(PrivacyBudget(rho=1.0, delta=1e-6), (PlanEntry("counts", "gaussian", 1.0),))
    return PrivacySession(plan, random_state=seed)


@all_kinds(CLIENT_STATES)
def test_shares_are_of_the_vectors_of_the_round_and_at_most_one(state):
    shares = client_shares(state, message_of(state), session())
    assert tuple(shares) == ANSWERS[state.kind]
    assert all(1e-3 <= share <= 1 for share in shares.values())


@pytest.mark.quick("lift0", "lloyd0", "moment1", "weights2", "means")
@all_kinds(WITH_SERVER)
def test_half_of_the_clients_of_server_points_are_clipped(state, monkeypatch):
    """The bound is a median: other clients of the same making exceed it in about half of all
    cases. 300 clients against the median of 200: 99.9999% of them between 0.3 and 0.7.
    """
    monkeypatch.setattr(_client_bounds, "_SIMULATED", 200)
    message = message_of(state)
    shares = client_shares(state, message, session())
    if message["anchors"].size:
        message["anchors"] = bound_anchors(state, message["anchors"])
    whole = message | {"shares": np.ones(len(shares)), "most_rows": NOTHING}
    rng, longer = np.random.default_rng(5), dict.fromkeys(shares, 0)
    X = state.setup.server
    for _ in range(300):
        answer = client_update(state.kind, whole, X[rng.integers(len(X), size=50)])
        for name, value in answer.items():
            longer[name] += norm_of(name, value, whole) > shares[name] * CLIENT_STEPS * (1 + 1e-9)
    for name, number in longer.items():
        # A count, or a norm that all clients share, is not longer than its median.
        exact = {"lift counts", "lloyd counts", "weights", "client presence"}
        assert number <= 210 and (number >= 90 or name in exact), (name, number)


def test_they_come_from_public_randomness_and_not_from_that_of_the_noise():
    state = WITH_SERVER[0]
    message = message_of(state)
    used, fresh = session(3), session(3)
    used.gaussian("counts", np.zeros(3, dtype=int), sensitivity=1.0)
    assert client_shares(state, message, used) == client_shares(state, message, fresh)
    other = client_shares(state, message, session(4))
    assert other != client_shares(state, message, fresh)


def test_what_is_told_is_taken_and_the_rest_found_out():
    state = next(state for state in WITH_SERVER if state.kind == "lift")
    message = message_of(state)
    found = client_shares(state, message, session())
    told = replace(state, setup=replace(state.setup, shares={"lift sums": 0.25, "weights": 0.1}))
    assert client_shares(told, message, session()) == found | {"lift sums": 0.25}
    most = replace(state, setup=replace(state.setup, shares={"lift sums": 1 + 1e-13}))
    assert client_shares(most, message, session())["lift sums"] == 1.0


def test_without_server_data_they_are_what_clients_were_asked_for():
    """Constants where they were not asked; the lift's reach is for Lloyd rounds too."""
    sums = {"second moment": 0.3, "lift sums": 0.2, "lloyd sums": 0.2}
    for state in states(True, server=False):
        for reaches in (sums, {}):
            known = replace(state, reaches=reaches)
            shares = client_shares(known, message_of(known), session())
            constants = {name: reaches.get(name, 0.5) for name in sums}
            assert shares == {name: constants.get(name, 1.0) for name in ANSWERS[state.kind]}


def asked(kind, level, noise, number=50.0):
    """The reaches after a round that has released a mean level of so many clients."""
    state = next(state for state in states(True, server=False) if state.kind == kind)
    state = replace(state, number=number, reaches={})
    return learn_reach(state, None, {kind: np.array([level * number])}, {kind: noise * number})


def test_a_reach_is_that_of_the_clients_without_noise_and_a_half_without_budget():
    """Level -.5: 2^(2 * -1.5) = 1 / 8. With a noise of .5, variance 1 as between data sets: half
    of the way from 2^-1 to 2^-3.
    """
    assert asked("moment reach", -0.5, 1e-9).reaches == pytest.approx({"second moment": 1 / 8})
    assert asked("moment reach", -0.5, 0.5).reaches == pytest.approx({"second moment": 1 / 4})
    lift = asked("lift reach", 40.0, 1e3).reaches
    assert lift == pytest.approx({"lift sums": 0.5, "lloyd sums": 0.5}, rel=1e-3)
    for level, share in ((90.0, 1 / 2), (-90.0, 1 / 16)):
        assert asked("lift reach", level, 1e-9).reaches["lift sums"] == share


def test_clients_are_asked_where_nothing_public_can_say():
    ball, points = Domain.from_bounds(1.0, 9), np.zeros((5, 9))
    assert Setup(3, 9, ball, per_client=True).rounds == (
        *("center", "moment reach", "moment", "weights", "lift reach", "lift"),
    )
    for options in (
        {"server": points},
        {"per_client": False},
        {"shares": {"lift sums": 0.2}},
        {"residuals": False},
        {"local_means": True},
        {"margin": True},
    ):
        rounds = Setup(3, 9, ball, **{"per_client": True} | options).rounds
        assert not any("reach" in kind for kind in rounds)


def test_a_client_tells_the_logarithm_of_its_length():
    """A client of one row at the radius: a moment as long as may be, level 1. At half the radius a
    quarter of it: level 0. At the center, and of many rows that cancel: -1. Without rows: 0.
    """
    state = next(state for state in states(True, server=False) if state.kind == "moment reach")
    state = replace(state, origin=None)
    message = message_of(state) | {"shares": np.ones(1)}
    place = np.zeros((1, D))
    for length, level in ((3.0, 1.0), (1.5, 0.0), (1.5 / 2**0.5, -0.5), (0.0, -1.0), (1e9, 1.0)):
        place[0, 0] = length
        (found,) = client_update(state.kind, message, place)[state.kind]
        assert found / CLIENT_STEPS == pytest.approx(level, abs=1e-3)
    (found,) = client_update(state.kind, message, np.empty((0, D)))[state.kind]
    assert found == 0


def test_the_more_rows_a_client_has_the_shorter_is_its_mean_residual():
    """Residuals about the centers cancel; one alone is as long as the limit lets it be."""
    state, found = next(state for state in WITH_SERVER if state.kind == "lift"), []
    for most in (1, 4000):
        known = replace(state, setup=replace(state.setup, most_rows=most))
        found.append(client_shares(known, message_of(known), session())["lift sums"])
    assert found[1] < 0.7 * found[0] and found[0] > 0.9


def test_points_at_the_center_leave_a_bound_above_zero():
    domain = Domain.from_bounds(3.0, D)
    setup = Setup(1, D, domain, np.zeros((4, D)), per_client=True)
    state = begin(State(setup, domain=domain))
    shares = client_shares(state, message_of(state), session())
    assert shares == {"second moment": 1e-3}
    assert row_bounds("moment", message_of(state))["second moment"] > 0
