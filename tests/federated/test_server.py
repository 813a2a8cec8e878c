"""What the server does between two rounds: releases, claims, the next message."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import D, K, data, server_points

from sklearn_dp._bounds import domain_of
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries.client_rounds import ANSWERS
from sklearn_dp.federated import client_update, first_message, server_update
from sklearn_dp.federated._parameters import entries_of
from sklearn_dp.federated._state import Setup

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

BALL = domain_of(3.0, D)


def opened(domain=BALL, n_honest=None, **options):
    """A setup, and a session with the plan of its rounds."""
    setup = Setup(K, D, domain, n_honest=n_honest, clients_add=n_honest is not None, **options)
    budget = PrivacyBudget(epsilon=9.0, delta=1e-6)
    unit = "group" if setup.per_client else "row"
    entries = entries_of(setup.rounds, budget, unit, shared=n_honest is not None)
    return setup, PrivacySession(PrivacyPlan(budget, entries), random_state=0)


def rounds(setup, session, n=40):
    """The states of a fit to one client, and the last one, without a message."""
    state = first_message(setup, session)
    while state.kind:
        yield state
        total = client_update(state.kind, state.message, data(0, n))
        state = server_update(state, total, session, 1)
    yield state


@pytest.mark.parametrize(
    ("domain", "server"), [(BALL, None), (None, None), (BALL, server_points())]
)
def test_a_fit_goes_through_its_rounds_and_ends_with_centers(domain, server):
    setup, session = opened(domain, server=server, n_lloyd=1)
    *found, last = rounds(setup, session)
    assert tuple(state.kind for state in found) == setup.rounds
    assert [state.round for state in found] == list(range(len(setup.rounds)))
    assert not last.kind and last.message is None and last.sealed is None
    assert last.claims == {} == last.shares
    assert last.centers.shape == (K, D) and np.isfinite(last.centers).all()


def test_every_vector_of_a_round_is_released_once_in_its_order():
    with trace(Trace()) as recorder:
        setup, session = opened(server=server_points(), n_lloyd=2)
        list(rounds(setup, session))
    released = [event.entry for event in recorder.events if event.kind == "gaussian"]
    assert released == [name for kind in setup.rounds for name in ANSWERS[kind]]


def test_a_round_cannot_be_released_twice():
    setup, session = opened(server=server_points())
    state = first_message(setup, session)
    total = client_update(state.kind, state.message, data(0, 9))
    server_update(state, total, session)
    with pytest.raises(PlanError):
        server_update(state, total, session)


def test_the_next_state_is_a_function_of_releases():
    """Other data with the same outputs forced: the same next message, to the bit."""
    messages = []
    for seed in (0, 1):
        setup, session = opened(server=server_points())
        state = first_message(setup, session)
        session.gaussian = lambda name, total, **known: np.full(total.shape, 2.0**-10)
        total = client_update(state.kind, state.message, data(seed, 50))
        messages.append(server_update(state, total, session).message)
    for name, value in messages[0].items():
        assert np.array_equal(value, messages[1][name])


def test_what_is_claimed_does_not_follow_a_message_that_was_rewritten():
    setup, session = opened(server=server_points())
    state = first_message(setup, session)
    before = state.claims["second moment"].bound
    message = state.message
    message["limit"] = np.array([1e-9])
    assert state.claims["second moment"].bound == before


def test_clients_that_add_noise_are_told_how_much():
    setup, session = opened(server=server_points(), n_honest=3)
    state = first_message(setup, session)
    assert state.message["noise"].shape == (1, 3)
    sigma, off, bits = state.message["noise"][0]
    assert 256 <= off < sigma and bits == int(bits) >= 0
    simulated = replace(setup, clients_add=False)
    assert not first_message(simulated, session).message["noise"].size


def test_too_few_answers_end_the_fit_where_clients_add_the_noise():
    setup, session = opened(server=server_points(), n_honest=3)
    state = first_message(setup, session)
    total = client_update(state.kind, state.message, data(0, 9))
    with pytest.raises(RuntimeError, match="only 3 clients"):
        server_update(state, total, session, 3)
    assert server_update(state, total, session, 4).kind == "weights"
