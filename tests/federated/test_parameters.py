"""What the parameters of the estimator mean, which are refused, and what the plan costs."""

import signal

import numpy as np
import pandas as pd
import pytest
from federated_states import Odd, mixture

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._parameters import domain_of
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.federated import FederatedOptions
from sklearn_dp.federated._parameters import plan_of, public_columns, refuse_clients, setup_of
from sklearn_dp.ledger import PrivacyLedger

SERVER = np.random.default_rng(0).normal(size=(20, 4))
BALL, TARGET = domain_of(2.0, 4), PrivacyBudget(epsilon=1.0, delta=1e-6)


def setup(server=SERVER, per_client=False, domain=BALL, **options):
    model = FederatedDPKMeans(2, **options)
    rng = np.random.default_rng(1)
    return setup_of(model, domain, 4, per_client, server, rng)


@pytest.mark.parametrize(
    ("options", "unit", "relation"),
    [
        ({}, "row", "add or remove"),
        ({}, "group", "add or remove"),
        ({"relation": "replace"}, "group", "replace"),
        ({"n_honest": 2}, "row", "add or remove"),
        ({"n_honest": 2}, "group", "add or remove the rows of"),
        ({"n_honest": 2, "relation": "replace"}, "group", "replace the rows of"),
    ],
)
def test_the_relation_that_a_plan_states(options, unit, relation):
    """A client that adds noise is there with rows or without: it is its rows that come and go."""
    model = FederatedDPKMeans(2, **options)
    plan = plan_of(model, TARGET, unit, setup(**options).rounds)
    assert plan.relation == relation and plan.unit == unit
    assert ("client" in plan.notes[0]) is (unit == "group")
    assert len(plan.notes) == 1 + ("n_honest" in options)


def test_noise_in_shares_is_refused_where_its_proof_does_not_hold():
    model, rounds = FederatedDPKMeans(2, n_honest=2), setup().rounds
    with pytest.raises(ValueError, match="too large for n_honest"):
        plan_of(model, PrivacyBudget(epsilon=800.0, delta=1e-6), "row", rounds)
    plan_of(FederatedDPKMeans(2), PrivacyBudget(epsilon=800.0, delta=1e-6), "row", rounds)


def test_clients_with_other_columns_are_told_apart():
    three, four = np.zeros((2, 3)), np.zeros((2, 4))
    for arguments, words in (
        ((None, None, [three, four]), r"^clients\[1\] must have 3 columns"),
        ((2, None, [three]), r"^clients\[0\] must have 2 columns"),
        ((None, four, [three]), r"^clients\[0\] must have 4 columns"),
        ((3, four, [three]), "^X_server must have 3 columns"),
    ):
        with pytest.raises(ValueError, match=words):
            public_columns(*arguments)


CLIENTS = [np.zeros((5, 3)), np.ones((4, 3))]


@pytest.mark.parametrize(
    "X",
    [CLIENTS, tuple(CLIENTS[:1]), dict(enumerate(CLIENTS)), [pd.DataFrame(CLIENTS[0])]],
    ids=["arrays", "one", "mapping", "frames"],
)
def test_tables_of_clients_are_sent_to_fit_clients_and_not_charged(X):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3))
    with pytest.raises(TypeError, match="fit_clients takes one table for each client"):
        FederatedDPKMeans(2, ledger=ledger).fit(X)
    assert not ledger.entries


def test_the_attributes_of_a_client_end_no_fit_and_are_not_told():
    with pytest.warns(UtilityWarning) as caught:
        FederatedDPKMeans(2, bounds=1.0).fit_clients([Odd(), np.zeros((3, 2))], n_features=2)
    assert any("client 0: " in str(each.message) for each in caught)
    assert not any("17" in str(each.message) for each in caught)


def test_a_client_that_is_read_later_than_it_is_given_is_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3), unit="group")
    lazy = pytest.importorskip("polars").DataFrame(np.zeros((3, 2)), ["a", "b"]).lazy()
    with pytest.raises(ValueError, match=r"clients\[1\] must have shape"):
        FederatedDPKMeans(2, ledger=ledger).fit_clients([np.ones((3, 2)), lazy])
    assert not ledger.entries


def test_one_row_does_not_decide_whether_rows_are_clients():
    """A table among rows is refused after the charge, like any row that is none."""
    rows, table = [np.zeros(2), np.zeros(2)], np.zeros((3, 2))
    for X in (rows, [*rows, table], [table, *rows], [], [Odd()], [*rows, Odd()], [table, Odd()]):
        refuse_clients(X)
    with pytest.raises(TypeError, match="fit_clients"):
        refuse_clients([table, table])


class Interrupted(Odd):
    """A client that Ctrl-C is pressed at, or that raises what Ctrl-C would."""

    by_user = True

    def __getattribute__(self, name):
        if name in ("ndim", "client_id"):
            if Interrupted.by_user:
                signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt
        return object.__getattribute__(self, name)


def test_the_user_ends_a_fit_and_no_client_does(monkeypatch):
    for fit in (FederatedDPKMeans(2).fit, FederatedDPKMeans(2).fit_clients):
        with pytest.raises(KeyboardInterrupt):
            fit([Interrupted(), Interrupted()])
    monkeypatch.setattr(Interrupted, "by_user", False)
    refuse_clients([Interrupted(), Interrupted()])


class NotIterated(np.ndarray):
    def __iter__(self):
        raise ValueError("row 17")


def test_no_table_is_iterated_before_the_charge():
    """That runs its own code, row by row, and what this raises would have cost nothing."""
    FederatedDPKMeans(2, bounds=9.0).fit(np.eye(40, 3).view(NotIterated))
    with pytest.raises(ValueError, match="Expected 2D array"):
        FederatedDPKMeans(2, bounds=9.0).fit(None)


def test_a_plan_has_the_unit_of_the_fit_that_it_is_for():
    """A search, which asks for the plan of its groups, would promise what a fit of rows breaks."""
    for unit, of_rows in (("row", True), ("client", False)):
        model = FederatedDPKMeans(2, bounds=1.0, privacy_unit=unit)
        own, other = ("row", "group") if of_rows else ("group", "row")
        assert model.privacy_plan(2, unit=own).unit == own
        with pytest.raises(ValueError, match=f"privacy_unit='{unit}'"):
            model.privacy_plan(2, unit=other)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"privacy_unit": "person"}, "privacy_unit"),
        ({"relation": "near"}, "relation"),
        ({"method": "new"}, "method"),
        ({"options": {}}, "options must be a FederatedOptions"),
        ({"options": FederatedOptions(count_noise="none")}, "count_noise"),
        ({"options": FederatedOptions(client_bounds={"weights": 2.0})}, "client_bounds"),
        ({"options": FederatedOptions(client_bounds={"weights": 5e-324})}, "client_bounds"),
        ({"options": FederatedOptions(client_bounds=[0.5])}, "client_bounds must be a dict"),
        ({"n_lloyd": -1}, "n_lloyd"),
        ({"n_lloyd": 1001}, "n_lloyd"),
        ({"n_lloyd": 1.5}, "n_lloyd"),
        ({"n_lloyd": "many"}, "n_lloyd"),
        ({"n_lloyd": 0, "method": "sphere_packing"}, "n_lloyd"),
        ({"n_honest": 2**33}, "n_honest"),
        ({"n_honest": 2, "options": FederatedOptions("laplace")}, "count_noise"),
        ({"max_rows_per_client": 0}, "max_rows_per_client"),
        ({"max_rows_per_client": 2.0}, "max_rows_per_client"),
        ({"method": "lloyd"}, "X_server"),
        ({"privacy_unit": "client"}, "groups"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        FederatedDPKMeans(2, **options).fit(np.zeros((9, 2)))


@pytest.mark.parametrize(
    ("server", "match"),
    [
        (np.zeros((9, 2)), "distinct"),
        (np.zeros((9, 3)), "columns"),
        (np.full((9, 2), np.nan), "NaN"),
        (np.zeros(4), "2D"),
        (np.full((9, 2), 1e200), "X_server: numbers"),
    ],
)
def test_bad_server_data(server, match):
    with pytest.raises(ValueError, match=match):
        FederatedDPKMeans(2).fit(np.zeros((9, 2)), X_server=server)


@pytest.mark.parametrize(
    ("options", "server", "n_lloyd"),
    [
        ({}, SERVER, 0),
        ({}, None, 2),
        ({"method": "paper"}, SERVER, 0),
        ({"method": "lloyd"}, SERVER, 5),
        ({"method": "sphere_packing"}, None, 5),
        ({"method": "sphere_packing", "n_lloyd": 1}, None, 1),
        ({"n_lloyd": 3}, SERVER, 3),
        ({"n_lloyd": 0}, None, 0),
    ],
)
def test_how_many_lloyd_rounds_there_are(options, server, n_lloyd):
    assert setup(server, **options).n_lloyd == n_lloyd


def test_a_fit_with_laplace_counts_spends_its_plan():
    X, _, server, clients = mixture(n=30, d=6)
    options = FederatedOptions(count_noise="laplace")
    model = FederatedDPKMeans(3, method="paper", options=options, n_lloyd=1, random_state=0)
    plan = model.privacy_plan(6, unit="group", X_server=server)
    report = model.fit(X, groups=clients, X_server=server).privacy_report_
    assert report.spent_rho == pytest.approx(plan.rho, rel=1e-6)


@pytest.mark.parametrize("method", ["kmeans++", "lloyd", "sphere_packing"])
def test_public_starts_are_centers_in_the_domain_and_new_ones_follow_the_generator(method):
    one, other = (setup(method=method).start(BALL) for _ in range(2))
    assert one.shape == (2, 4) and np.array_equal(one, other)
    if method == "kmeans++":
        assert all((center == SERVER).all(axis=1).any() for center in one)
    if method == "sphere_packing":
        assert np.abs(one).max() <= BALL.radius
    assert setup().start is None
