"""What the server sends: public facts and releases, in copies that nobody can change."""

from dataclasses import replace

import numpy as np
import pytest
from federated_states import CLIENT_STATES, ROW_STATES, D, K, all_kinds, data, server_points, states

from sklearn_dp._privacy._domain import Domain
from sklearn_dp.federated import client_update
from sklearn_dp.federated._engines import total_of
from sklearn_dp.federated._messages import (
    _residual_limit,
    bound_anchors,
    empty_message,
    message_of,
)
from sklearn_dp.federated._state import Sealed, Setup, State, begin

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


def test_before_there_are_bounds_a_message_asks_for_norms_alone():
    message = message_of(State(Setup(2, 3, None)))
    filled = {name for name, value in message.items() if value.size}
    assert filled == {"center", "round"} and not message["center"].any()


@pytest.mark.parametrize("domain", [Domain.from_bounds(2.0, 3), Domain.from_bounds((-1, 2), 3)])
def test_the_public_region_is_told_as_it_is(domain):
    message = empty_message(3, domain, 7)
    assert message["radius"].tolist() == [domain.radius] and message["round"].tolist() == [7.0]
    assert np.array_equal(message["center"], domain.center)
    assert message["low"].size == (0 if domain.low is None else 3)


@pytest.mark.parametrize("per_client", [False, True])
def test_rows_of_a_client_are_bounded_where_clients_are_the_unit(per_client):
    """A bound on the rows of a client would take single rows away, where these are the unit."""
    domain = Domain.from_bounds(3.0, D)
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
    domain = Domain.from_bounds(8.0, 2)
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


def test_the_limit_is_never_nothing_and_never_more_than_the_public_radius():
    least, state = limited([0.0, 0.0])
    assert least == pytest.approx(1e-3 * state.ball)
    assert limited([1e9, 1e9])[0] == state.ball


def test_bounds_of_clients_are_about_the_part_of_the_start_inside_the_subspace():
    """What the server's points have across it is what clients do not confirm."""
    domain = Domain.from_bounds(8.0, 3)
    anchors = np.array([[4e6, 3e6, -5e6], [1.0, 2e6, 0.0]])
    axis = np.array([[2.0**20], [0.0], [0.0]])
    for per_client, trust, basis, expected in (
        (True, 1.0, axis, anchors * [1, 0, 0]),
        (True, 0.5, axis, anchors * [1, 0.5, 0.5]),
        (True, 0.0, axis, anchors),
        (False, 1.0, axis, anchors),
        (True, 1.0, None, anchors),
    ):
        setup = Setup(2, 3, domain, np.eye(3), per_client=per_client, n_lloyd=1)
        state = replace(State(setup, domain=domain), basis=basis, trust=trust)
        kinds = [replace(state, round=number).kind for number in range(4)]
        lift, lloyd = (replace(state, round=kinds.index(kind)) for kind in ("lift", "lloyd"))
        assert np.array_equal(bound_anchors(lift, anchors), expected)
        assert np.array_equal(bound_anchors(lloyd, anchors), anchors)


def test_without_server_data_the_limit_is_of_the_released_spread():
    domain = Domain.from_bounds(8.0, 2)
    state = State(Setup(1, 2, domain), domain=domain, spread=np.array([3e5, 4e5]))
    anchors = np.zeros((1, 2))
    assert _residual_limit(state, empty_message(2, domain), anchors, anchors) == 7.5e5
    unknown = replace(state, spread=None)
    assert _residual_limit(unknown, empty_message(2, domain), anchors, anchors) == state.ball


# -- nobody can change what others get -------------------------------------------------------------


def test_a_sealed_message_is_a_copy_of_its_own_in_both_directions():
    source = {"limit": np.array([3.0, 4.0]), "points": np.eye(2, dtype=np.int64)}
    sealed = Sealed(source)
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
