"""What is public about a fit and what has been released: rounds, units, places on the grid."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._queries.client_rounds import BASIS_BITS
from sklearn_dp.federated._state import Setup, State, begin, inside

BALL = Domain(np.array([1.0, -2.0, 0.5]), 3.0)
SERVER = np.array([[1.0, -2.0, 0.5], [2.0, -1.0, 0.5], [1.0, -2.0, 0.5], [90.0, 0.0, 0.0]])


def fresh(domain=BALL, **options):
    return State(Setup(2, 3, domain, **options), domain=domain)


ROUNDS = [
    ({"server": SERVER}, ("moment", "weights", "lift")),
    ({"server": SERVER, "n_lloyd": 2}, ("moment", "weights", "lift", "lloyd", "lloyd")),
    ({"server": SERVER, "margin": True}, ("moment", "weights", "margin")),
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


@pytest.mark.parametrize("n_clusters", [3, 4])
def test_no_more_columns_than_clusters_need_no_subspace_where_there_are_server_data(n_clusters):
    assert Setup(n_clusters, 3, BALL, SERVER).rounds == ("weights", "lift")
    assert "moment" in Setup(n_clusters, 3, BALL).rounds  # for the spread of public points


def test_the_kind_is_that_of_the_present_round_until_all_is_done():
    state = fresh(server=SERVER)
    kinds = [replace(state, round=number).kind for number in range(5)]
    assert kinds == ["moment", "weights", "lift", "", ""]
    assert state.message is None


def test_nothing_can_be_put_into_a_state_in_passing():
    state = fresh()
    for name in ("weights", "status", "secret"):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(state, name, np.zeros(3))


def test_before_a_domain_is_known_there_are_no_units():
    state = fresh(None)
    for name in ("unit", "ball", "ground"):
        with pytest.raises(AttributeError, match="no domain"):
            getattr(state, name)


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


def test_centers_go_back_to_the_coordinates_of_the_data():
    """About the origin, in steps of the grid, and into the box where there is one."""
    state = begin(fresh())
    anchors, origin = np.array([[100.0, -7.0, 0.0]]), np.array([1e6, 0.0, -1e6])
    state = replace(state, anchors=anchors, origin=origin)
    assert state.centers == pytest.approx((anchors + origin) * state.unit + BALL.center)
    box = Domain.from_bounds((-1.0, 1.0), 3)
    outside = replace(begin(fresh(box)), anchors=np.array([[1.7, 0.0, 0.0]]) / fresh(box).unit)
    assert outside.centers.tolist() == [[1.0, 0.0, 0.0]]


def test_points_are_moved_into_the_ball_about_the_center_and_not_about_the_origin():
    state = replace(begin(fresh()), origin=np.array([1.0, 0.0, 0.0]) / fresh().unit)
    points = np.array([[1.0, 0, 0], [5.0, 0, 0], [-9.0, 0, 0], [-1.0, 0, 0]]) / state.unit
    moved = inside(state, points) * state.unit
    assert moved[:, 0] == pytest.approx([1.0, 2.0, -4.0, -1.0]) and not moved[:, 1:].any()


def test_the_subspace_has_rows_of_length_one():
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 2)))[0]
    state = replace(fresh(), basis=np.rint(axes * 2.0**BASIS_BITS))
    assert state.subspace == pytest.approx(axes.T, abs=2.0**-BASIS_BITS)
    assert fresh().subspace is None
