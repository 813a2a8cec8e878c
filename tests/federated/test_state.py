"""What is public about a fit and what has been released: rounds, units, places on the grid."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._grid import Grid
from sklearn_dp.federated._state import Setup, State, begin

BALL = Domain(np.array([1.0, -2.0, 0.5]), 3.0)
SERVER = np.array([[1.0, -2.0, 0.5], [2.0, -1.0, 0.5], [1.0, -2.0, 0.5], [90.0, 0.0, 0.0]])


def fresh(domain=BALL, **options):
    return State(Setup(2, 3, domain, **options), domain=domain)


ROUNDS = [
    ({"server": SERVER}, ("moment", "weights", "lift")),
    ({"server": SERVER, "n_lloyd": 2}, ("moment", "weights", "lift", "lloyd", "lloyd")),
    ({"server": SERVER, "local_means": True}, ("moment", "weights", "means")),
    ({}, ("center", "moment", "weights", "lift")),
    ({"start": np.zeros, "n_lloyd": 2}, ("lloyd", "lloyd")),
]


@pytest.mark.parametrize(("options", "rounds"), ROUNDS)
def test_rounds_follow_from_public_facts(options, rounds):
    """A radius is looked for first where none is known; server data always give one."""
    assert Setup(2, 3, BALL, **options).rounds == rounds
    if "server" not in options:
        assert Setup(2, 3, None, **options).rounds == ("bound", *rounds)


def test_nothing_can_be_put_into_a_state_in_passing():
    state = fresh()
    for name in ("weights", "status", "secret"):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(state, name, np.zeros(3))


def test_server_points_come_to_the_grid_once_each_and_inside_the_ball():
    state = begin(fresh(server=SERVER))
    assert state.unit == Grid.for_radius(3.0).unit and state.ball * state.unit == 3.0
    assert len(state.proxy) == 3 and state.points is state.proxy
    assert np.array_equal(state.proxy, np.rint(state.proxy))
    places = state.proxy * state.unit + BALL.center
    for point in SERVER[:2]:
        assert np.linalg.norm(places - point, axis=1).min() < 2 * state.unit
    assert np.linalg.norm(places - BALL.center, axis=1).max() == pytest.approx(3.0)
    assert begin(fresh()).proxy is None


def test_a_public_start_is_made_for_the_domain_and_put_on_the_grid():
    start = lambda domain: domain.center + np.array([[1.0, 0.0, 0.0], [0.0, 50.0, 0.0]])  # noqa: E731
    state = begin(fresh(start=start, n_lloyd=1))
    assert state.centers[0] == pytest.approx([2.0, -2.0, 0.5], abs=2 * state.unit)
    assert np.linalg.norm(state.centers[1] - BALL.center) == pytest.approx(3.0)
    assert state.points is None and state.weights is None
