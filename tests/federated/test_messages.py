"""What the server sends: public facts and releases, in copies that nobody can change."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import CLIENT_STATES, ROW_STATES, D, K, all_kinds, data, server_points, states

from sklearn_dp._bounds import domain_of
from sklearn_dp.federated import client_update
from sklearn_dp.federated._clients import total_of
from sklearn_dp.federated._server import _residual_limit, empty_message, message_of
from sklearn_dp.federated._state import SealedMessage, Setup, State, begin

FIELDS = {
    "center", "radius", "low", "high", "origin", "round", "limit", "basis", "points", "anchors",
    "most_rows", "shares", "l1", "noise",
}  # fmt: skip
USED = {
    "center": {"limit"},
    "moment": {"limit"},
    "moment reach": {"limit"},
    "lift reach": {"basis", "points", "anchors", "limit"},
    "weights": {"basis", "points"},
    "lift": {"basis", "points", "anchors", "limit"},
    "means": {"basis", "points", "anchors", "limit"},
    "lloyd": {"points", "anchors", "limit"},
}


@all_kinds(ROW_STATES + CLIENT_STATES)
def test_a_message_has_all_fields_and_fills_those_that_its_round_needs(state):
    message = state.message
    assert message.keys() == FIELDS
    assert all(isinstance(value, np.ndarray) for value in message.values())
    filled = {name for name in ("limit", "basis", "points", "anchors") if message[name].size}
    assert filled == USED[state.kind]
    assert bool(message["shares"].size) is state.setup.per_client
    assert bool(message["l1"].size) is state.setup.laplace
    assert message["round"].tolist() == [state.round] and not message["noise"].size


@pytest.mark.parametrize("per_client", [False, True])
def test_rows_of_a_client_are_bounded_where_clients_are_the_unit(per_client):
    """A bound on the rows of a client would take single rows away, where these are the unit."""
    domain = domain_of(3.0, D)
    setup = Setup(K, D, domain, server_points(), per_client=per_client, most_rows=9)
    message = message_of(begin(State(setup, domain=domain)))
    assert message["most_rows"].tolist() == ([9.0] if per_client else [])


def test_two_data_sets_with_the_same_releases_get_the_same_messages():
    """Nothing gets into a message but through the releases."""
    (first, second), seen = states()[:2], []
    for seed in (0, 1):
        total, _ = total_of(
            first.kind,
            first.message,
            [(client_update(first.kind, first.message, data(seed, 40)), None)],
        )
        assert total is not None
        seen.append(message_of(second))
    assert all(np.array_equal(seen[0][name], seen[1][name]) for name in FIELDS)


# -- the limit of residuals ------------------------------------------------------------------------


def limited(far, weights=None, **options):
    """The limit with server points at distances `far` of one anchor."""
    domain = domain_of(8.0, 2)
    state = begin(State(Setup(1, 2, domain, np.zeros((1, 2)), **options), domain=domain))
    proxy = np.stack([np.asarray(far), np.zeros(len(far))], axis=1)
    state = replace(state, proxy=proxy, weights=None if weights is None else np.array(weights))
    origin = np.zeros((1, 2))
    return _residual_limit(state, empty_message(2, domain), origin, origin), state


def test_residuals_are_clipped_at_a_weighted_quantile_of_the_servers():
    far = 1e5 * np.arange(1.0, 9.0)
    assert limited(far)[0] == 6e5
    assert limited(far, [1, 0, 0, 0, 0, 0, 0, 0])[0] == 1e5
    assert limited(far, [1, 1, 0, 0, 0, 0, 0, 2])[0] == 8e5
    assert limited(far, [1, 1, 1, -5.0, -5, -5, 0, 0])[0] == 3e5  # noise below zero is nothing


# -- nobody can change what others get -------------------------------------------------------------


def test_a_sealed_message_is_a_copy_of_its_own_in_both_directions():
    source = {"limit": np.array([3.0, 4.0]), "points": np.eye(2, dtype=np.int64)}
    sealed = SealedMessage(source)
    source["limit"][0] = -1.0
    one, other = sealed.open(), sealed.open()
    assert one["limit"].tolist() == [3.0, 4.0] and one["points"].dtype == np.int64
    one.clear()
    assert other.keys() == {"limit", "points"}
    for value in other.values():
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            value.flags.writeable = True
