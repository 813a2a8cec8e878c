"""The estimator: accounting, parameters, failing clients, and what the answers are worth."""

import itertools
import pickle
import re
import time

import numpy as np
import pytest
from federated_states import mixture
from sklearn.base import clone

from sklearn_dp import FederatedDPKMeans, PrivacyLedger
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning
from sklearn_dp.federated import client_update


def gap(fitted, means):
    """Largest distance of a true mean to the nearest center."""
    return np.linalg.norm(means[:, None] - fitted.cluster_centers_, axis=2).min(axis=1).max()


# -- answers ---------------------------------------------------------------------------------------


def test_it_finds_the_clusters():
    X, means, server, clients = mixture()
    for groups, epsilon in ((None, 1.0), (clients, 200.0)):
        fitted = FederatedDPKMeans(4, epsilon=epsilon, random_state=0).fit(
            X, groups=groups, X_server=server
        )
        assert gap(fitted, means) < 0.2
        assert fitted.status_ == "ok"
        assert fitted.n_rounds_ == 3 == len(fitted.communication_)
        assert fitted.subspace_ @ fitted.subspace_.T == pytest.approx(np.eye(4), abs=1e-4)
        assert fitted.server_weights_.shape == (len(fitted.server_points_),)
        assert (np.diff(fitted.cluster_weights_) <= 0).all()
    assert fitted.cluster_weights_.sum() == pytest.approx(60, rel=0.3)


@pytest.mark.quick("True-0.001-*", "False-10000.0-*")
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 5)),
        np.tile([[1.0, 2, 3, 4, 5]], (50, 1)),
        np.full((3, 5), 1e300),
        np.random.default_rng(0).normal(size=(2, 5)),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("told", [False, True])
def test_centers_are_finite_and_in_the_ball(X, epsilon, told):
    """Also with noisy counts below zero; one client, and one client for each row."""
    server = 10 + np.random.default_rng(1).normal(size=(20, 5))
    radius = np.linalg.norm(server - server.mean(axis=0), axis=1).max()
    for k, groups in itertools.product(
        (3, 8), ((np.zeros(len(X)), np.arange(len(X))) if told else (None,))
    ):
        fitted = FederatedDPKMeans(k, epsilon=epsilon, random_state=0).fit(
            X, groups=groups, X_server=server
        )
        away = np.linalg.norm(fitted.cluster_centers_ - server.mean(axis=0), axis=1)
        assert fitted.cluster_centers_.shape == (k, 5) and away.max() <= radius * (1 + 1e-9)


# -- clients that fail -----------------------------------------------------------------------------


class Silent:
    def __call__(self):
        raise OSError("row 3 holds 123.456")


class Hanging:
    def __call__(self):
        time.sleep(30)


class Answering:
    def __init__(self, answer):
        self.answer = answer

    def update(self, kind, message):
        return self.answer


def test_the_operator_is_told_who_fails_and_no_data():
    X, _, server, _ = mixture(n=60)
    words = np.array([["row 123"] * 11])  # numpy quotes what is no number
    with pytest.warns(UtilityWarning, match="client 1: OSError.*client 2: .*columns") as caught:
        FederatedDPKMeans(4, random_state=0).fit_clients(
            [X, Silent(), lambda: words], X_server=server
        )
    assert not any("123" in str(item.message) for item in caught)


def test_nobody_answers():
    fitted = FederatedDPKMeans(3).fit_clients([], n_features=4)
    assert np.isfinite(fitted.cluster_centers_).all() and fitted.cluster_centers_.shape == (3, 4)


def test_an_exhausted_ledger_refuses_before_any_client_is_asked():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=0.5, delta=1e-6), unit="group")
    with pytest.raises(BudgetExceededError):
        FederatedDPKMeans(2, ledger=ledger).fit_clients([Silent()], n_features=3)
    assert ledger.entries == ()


# -- clients of every kind, and the guarantee all the same -----------------------------------------


def wrong(kind, message):
    """An answer with a vector of another shape."""
    good = client_update(kind, message, np.zeros((3, 12)))
    return {name: value[:-1] for name, value in good.items()}


def beyond(kind, message):
    """An answer out of the public range."""
    good = client_update(kind, message, np.zeros((3, 12)))
    return {name: np.full_like(value, 2**62) for name, value in good.items()}


class Told:
    def __init__(self, function):
        self.update = function


MISFITS = {
    "fails": (Silent(), "OSError"),
    "words": ("no rows", "columns"),
    "hangs": (Hanging(), "TimeoutError"),
    "answers with NaN": (Answering({"second moment": np.full(78, np.nan)}), "integers"),
    "wrong shape": (Told(wrong), "wrong shape"),
    "out of range": (Told(beyond), "public range"),
    "other vectors": (Answering({"sums": np.zeros(3, dtype=int)}), "exactly"),
    "other columns": (lambda: np.zeros((4, 3)), "columns"),
    "dates": (lambda: np.ones((4, 12), "M8[s]"), "real numbers"),
    "no answer": (Answering(None), "exactly"),
}


@pytest.mark.parametrize("unit", ["row", "client"])
def test_misfits_are_dropped_with_words_and_the_noise_stays(unit):
    """Who drops out does not change a scale of the noise, and so not what is charged."""
    misfits = dict(MISFITS)
    # A row has a bound; what a client sends of its rows has none: it saturates.
    del misfits["out of range" if unit == "row" else "hangs"]
    X, _, server, clients = mixture(n=400)
    good = [X[clients == j] for j in range(5)]
    model = FederatedDPKMeans(4, privacy_unit=unit, random_state=0)
    for some in (list(misfits.values())[:5], list(misfits.values())[5:]):  # as many are named
        nobody = [np.empty((0, 12)) for _ in some]
        whole = clone(model).fit_clients([*good, *nobody], X_server=server)
        with pytest.warns(UtilityWarning, match="client 5: ") as caught:
            found = clone(model).fit_clients(
                [*good, *(misfit for misfit, _ in some)], X_server=server, timeout=0.5
            )
        told = " ".join(str(item.message) for item in caught)
        for number, (_, word) in enumerate(some, 5):
            assert re.search(f"client {number}: [^;]*{word}", told), word
        assert "123" not in told
        assert np.array_equal(found.cluster_centers_, whole.cluster_centers_)
        assert pickle.dumps(found) == pickle.dumps(whole)


# -- the number of clusters ------------------------------------------------------------------------


def test_the_number_of_clusters_is_found_on_server_points():
    X, means, server, clients = mixture()
    fitted = FederatedDPKMeans((2, 12), epsilon=5.0, random_state=0).fit(X, X_server=server)
    assert fitted.n_clusters_ == 4 and gap(fitted, means) < 0.3
    assert max(fitted.n_clusters_criterion_, key=fitted.n_clusters_criterion_.get) == 4
    assert fitted.gain_.shape == fitted.cluster_weights_.shape == (4,)
    given = FederatedDPKMeans(4, epsilon=5.0).privacy_plan(12, X_server=server)
    plan = FederatedDPKMeans((4, 12), epsilon=5.0).privacy_plan(12, X_server=server)
    # Whether there is a moment follows from the largest number: 12 features, up to 12 clusters.
    assert {e.name for e in given.entries} - {e.name for e in plan.entries} <= {"second moment"}
