"""Bounds of clients' vectors: from public data and releases, never from clients."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import CLIENT_STATES, D, all_kinds, states

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._queries.client_rounds import ANSWERS, CLIENT_STEPS, norm_of
from sklearn_dp.federated import _server, client_update
from sklearn_dp.federated._learn import _learn_reach as learn_reach
from sklearn_dp.federated._server import (
    NOTHING,
    bound_anchors,
    client_shares,
    message_of,
)

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
    monkeypatch.setattr(_server, "_SIMULATED", 200)
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
