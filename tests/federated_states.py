"""States of small federated fits, and clients that try to move their sums, for several tests."""

import warnings

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit._recount import check_claims
from sklearn_dp.audit._replay import Replay
from sklearn_dp.federated import client_update, first_message, server_update
from sklearn_dp.federated._clients import total_of
from sklearn_dp.federated._parameters import entries_of
from sklearn_dp.federated._state import Setup

D, K = 5, 3


def data(seed, n, d=D, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n, d))


def server_points():
    """With duplicates, and points in the middle between others."""
    points = data(1, 12)
    return np.vstack([points, points[:3], (points[:2] + points[2:4]) / 2, np.zeros((1, D))])


def states(per_client=False, laplace=False, local_means=False, server=True, n_lloyd=1):
    """The states of all the rounds of a small fit, with the session that made them."""
    domain = domain_of(3.0, D)
    setup = Setup(
        K,
        D,
        domain,
        server_points() if server else None,
        None,
        n_lloyd,
        per_client,
        laplace=laplace,
        local_means=local_means,
    )
    budget = PrivacyBudget(epsilon=20.0, delta=1e-6)
    entries = entries_of(setup.rounds, budget, "group" if per_client else "row", laplace=laplace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = PrivacySession(PrivacyPlan(budget, entries), random_state=0)
    state, found = first_message(setup, session), []
    while state.message is not None:
        found.append(state)
        total, _ = total_of(
            state.kind,
            state.message,
            [(client_update(state.kind, state.message, data(seed, 40)), None) for seed in range(4)],
        )
        state = server_update(state, total, session)
    return found


ROW_STATES = states() + states(server=False)[:2]
OPTIONS = [{}, {"laplace": True}, {"local_means": True, "laplace": True}, {"server": False}]
CLIENT_STATES = [state for options in OPTIONS for state in states(True, **options)]
NASTY = {
    "far": np.full(D, 1e9),
    "zero": np.zeros(D),
    "tiny": np.full(D, 5e-324),
    "server": server_points()[0],
    "between": server_points()[-2],
    "huge": np.full(D, 1e300),
    "edge": 3.0 * np.eye(D)[0],
    "corner": np.full(D, 3.0 / np.sqrt(D)),
}


class Odd:
    """Whatever it is asked for, it ends the process."""

    def __getattribute__(self, name):
        raise SystemExit("row 17")


def all_kinds(found):
    return pytest.mark.parametrize("state", found, ids=lambda state: state.kind)


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


# -- fits to audit ---------------------------------------------------------------------------------


def rows(n, seed=0):
    """Rows about three places in four dimensions."""
    places = 2 * np.random.default_rng(9).uniform(-1, 1, size=(3, 4))
    return places[np.arange(n) % 3] + 0.3 * np.random.default_rng(seed).normal(size=(n, 4))


def replayed(fits, d, unit, server):
    """Violations of pairs of fits to neighbors, and the largest distances over the claims.

    `fits` are two functions that fit, and the numbers of the units that both have.
    """
    violations, ratios = [], {}
    for one, other, common in fits:
        with trace(Trace()) as recorder:
            fitted = one()
        plan = fitted.privacy_plan(d, unit=unit, X_server=server)
        violations += check_claims(recorder.events, plan, fitted.privacy_report_)
        replay = Replay(recorder.events, common)
        with trace(replay):
            again = other()
        violations += replay.finish()
        if not np.array_equal(again.cluster_centers_, fitted.cluster_centers_):
            violations.append("the centers differ")
        for name, ratio in replay.ratios.items():
            ratios[name] = max(ratios.get(name, 0.0), ratio)
    return violations, ratios


def clusters(seed, k=4, n=4000, d=6, spread=0.2):
    rng = np.random.default_rng(seed)
    means = 3 * rng.uniform(-1, 1, size=(k, d))
    server = np.repeat(means, 10, axis=0) + spread * rng.normal(size=(10 * k, d))
    return means[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)), means, server


def mixture(seed=0, n=6000, d=12, k=4):
    """Separated clusters, their clients, and a few public points near them and elsewhere."""
    rng = np.random.default_rng(seed)
    means = 3 * rng.uniform(-1, 1, size=(k, d))
    X = means[rng.integers(k, size=n)] + 0.4 * rng.normal(size=(n, d))
    server = np.vstack(
        [
            np.repeat(means, 8, axis=0) + 0.4 * rng.normal(size=(8 * k, d)),
            3 * rng.uniform(-1, 1, size=(10, d)),
        ]
    )
    return X, means, server, rng.permutation(np.arange(n) % 60)
