"""Replay audits of federated fits on neighbors, and seeded bugs that they must catch."""

import math

import numpy as np
import pytest
from federated_states import SERVER, WithServer, rows

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries import client_rounds as _rounds
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._noise_law import noise_audit
from sklearn_dp.audit._replay import ReplayResult
from sklearn_dp.federated import (
    FederatedOptions,
    _clients,
    _learn,
    _server,
    _state,
    first_message,
    server_update,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

LAPLACE = FederatedOptions(count_noise="laplace")
MODULES = (_clients, _learn, _server, _state, _rounds)


def setups():
    yield WithServer(3, epsilon=30.0)
    yield WithServer(3, epsilon=2.0, n_lloyd=2, bounds=3.0)
    yield WithServer(5, epsilon=30.0, bounds=(-2.0, 2.0))  # more clusters than dimensions
    yield WithServer(2, epsilon=5.0, method="paper", options=LAPLACE, n_lloyd=1)
    yield WithServer(3, epsilon=5.0, method="paper")
    yield WithServer(3, epsilon=5.0, method="kmeans++", n_lloyd=2)
    yield WithServer(3, epsilon=5.0, method="lloyd", n_lloyd=2, bounds=2.0)
    yield FederatedDPKMeans(3, epsilon=20.0, method="sphere_packing", n_lloyd=2)
    yield FederatedDPKMeans(3, epsilon=20.0)


def audited(estimator, told, least):
    """Many rows and few, again and again until there are enough pairs."""
    total, number = ReplayResult("FederatedDPKMeans"), 0
    while total.n_pairs < least:
        n = (40, 3)[number % 2]
        # Two clients at least: the audit fits a single one past `fit`, without the server's points.
        groups = np.random.default_rng(number).permutation(np.arange(n) % max(n // 4, 2))
        total += replay_audit(
            estimator,
            rows(n, number),
            groups=groups if told else None,
            random_state=number,
            repeats=2,
        )
        number += 1
    return total


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("told", [False, True], ids=["rows", "clients"])
def test_five_hundred_neighbors_differ_by_noise_that_is_paid_for(told, number):
    """At each level: nine estimators with sixty pairs or more."""
    total = audited(list(setups())[number], told, 60)
    assert total.violations == [] and total.n_voided == 0
    assert total.n_pairs >= 60
    # Laplace counts change by one in one place; Gaussian claims are met, none exceeded.
    assert max(total.ratios.values()) <= 1 + 1e-12
    assert min(total.ratios.values()) > 0.5, total.ratios


@pytest.mark.quick("clients-0", "rows-0")
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("told", [False, True], ids=["rows", "clients"])
def test_some_neighbors(number, told):
    result = replay_audit(
        list(setups())[number],
        rows(12),
        groups=np.arange(12) // 3 if told else None,
        strangers=not told,
    )
    assert result.passed, result


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"method": "paper", "options": LAPLACE}])
def test_noise_has_the_law_that_is_claimed(options):
    """Scale, mean and independence of all releases; false alarms 1e-6, see `noise_audit`."""
    estimator = WithServer(3, epsilon=1.0, n_lloyd=1, **options)
    assert noise_audit(estimator, rows(30), fits=40) == []
    assert noise_audit(estimator, rows(30), groups=np.arange(30) // 3, fits=20) == []


# -- mutants ---------------------------------------------------------------------------------------


def patched(module, name):
    """Register a change of a function of a module as a bug; all bindings are replaced."""

    def register(change):
        BUGS[change.__name__.replace("_", " ").strip()] = (module, name, change)
        return change

    return register


BUGS = {}


@patched(_rounds, "row_bounds")
def radius_instead_of_its_square_in_step_1(original):
    def row_bounds(kind, message):
        found = original(kind, message)
        if kind == "moment":
            limit = float(message["limit"][0])
            found["second moment"] = limit / _rounds.coarse_step(limit)
        return found

    return row_bounds


@patched(_rounds, "_weights")
def ties_counted_twice(original):
    def weights(message, X):
        x = np.concatenate([x for _, x in _rounds._rows(message, X).chunks()])
        if message["basis"].size:
            x = _rounds.project(message, x)
        points = np.vstack([message["points"][:-1], message["points"][:1]])
        square = np.square(x[:, None] - points).sum(axis=2)
        return {"weights": (square == square.min(axis=1, keepdims=True)).sum(axis=0)}

    return weights


@patched(_rounds, "clipped_sums")
def clip_missing_when_the_start_is_server_side(original):
    def clipped_sums(rows, centers, labels, squared, limits, units):
        return original(rows, centers, labels, squared, 1e3 * limits, units)

    return clipped_sums


@patched(_learn, "_learn_weights")
def threshold_before_noise(original):
    def learn(state, session, released, noise):
        hidden = _LAST[-1]["weights"] > 2
        return original(
            state, session, {"weights": np.where(hidden, released["weights"], 0.0)}, noise
        )

    return learn


@patched(_learn, "_learn_average")
def centers_over_true_counts(original):
    def learn(state, session, released, noise):
        counts = state.kind + " counts"
        return original(state, session, released | {counts: 1.0 * _LAST[-1][counts]}, noise)

    return learn


@patched(_clients, "client_update")
def client_means_at_row_level(original):
    def update(kind, message, X):
        found = original(kind, message, X)
        if kind == "lift":
            counts = np.maximum(found["lift counts"], 1)
            sums = found["lift sums"].reshape(len(counts), -1)
            found["lift sums"] = (sums // counts[:, None] * 20).ravel()
        return found

    return update


@patched(_clients, "client_update")
def small_clients_skipped_at_row_level(original):
    return lambda kind, message, X: original(kind, message, X if len(X) > 3 else X[:0])


@patched(_rounds, "_clip_whole")
def parts_clipped_one_by_one(original):
    def clip(name, value, n_rows, bound, share, message):
        if not name.endswith("sums"):
            return original(name, value, n_rows, bound, share, message)
        parts = np.split(value, len(message["anchors"]))
        return np.concatenate(
            [original(name, part, n_rows, bound, share, message) for part in parts]
        )

    return clip


@patched(_rounds, "_clip_whole")
def client_clip_missing(original):
    def clip(name, value, n_rows, bound, share, message):
        return np.trunc(value * (_rounds.CLIENT_STEPS / (bound * share))).astype(np.int64)

    return clip


@patched(_rounds, "_reach")
def client_reach_without_a_bound(original):
    def reach(kind, value, n_rows, message):
        length = math.sqrt(float(np.square(value.astype(np.float64)).sum()))
        return np.array([int(_rounds.CLIENT_STEPS * math.log2(max(length, 1e-9)))])

    return reach


@patched(_learn, "_learn_reach")
def client_reach_without_noise(original):
    def learn(state, session, released, noise):
        return original(state, session, {name: 1.0 * _LAST[-1][name] for name in released}, noise)

    return learn


@patched(_server, "message_of")
def radius_from_the_clients(original):
    def message(state):
        found = original(state)
        if found["limit"].size and _LAST:
            some = next(iter(_LAST[-1].values()))
            found["limit"] = found["limit"] * (1 - 1e-3 * (int(np.abs(some).sum()) % 7))
        return found

    return message


@patched(_learn, "_learn_moment")
def eigenvectors_without_noise(original):
    def learn(state, session, released, noise):
        return original(state, session, {"second moment": 1.0 * _LAST[-1]["second moment"]}, noise)

    return learn


@patched(_learn, "_learn_moment")
def one_triangle_noised_and_the_other_read(original):
    def learn(state, session, released, noise):
        exact = 1.0 * _LAST[-1]["second moment"]
        d = state.setup.n_features
        upper = np.equal(*np.triu_indices(d))
        return original(
            state,
            session,
            {"second moment": np.where(upper, released["second moment"], exact)},
            noise,
        )

    return learn


_LAST = []  # the last sum over clients: what no mutant may use


def plant(monkeypatch, bug):
    module, name, change = BUGS[bug]
    original = getattr(module, name)
    broken = change(original)
    for place in MODULES:
        for key, value in list(vars(place).items()):
            if value is original:
                monkeypatch.setattr(place, key, broken)
    for table in (_rounds.STATISTICS, _learn.LEARN):
        for key, value in list(table.items()):
            if value is original:
                monkeypatch.setitem(table, key, broken)
    sums = _clients.total_of

    def watched(kind, message, answers):
        total, failed = sums(kind, message, answers)
        _LAST.append(total)
        return total, failed

    monkeypatch.setattr(_clients, "total_of", watched)
    _LAST.clear()


def violations(per_client, method=None, repeats=1, server=True):
    """What the audits find at one level; small enough to run for every mutant."""
    estimator = (WithServer if server else FederatedDPKMeans)(3, epsilon=30.0, n_lloyd=1)
    if not server:
        estimator.set_params(bounds=3.0)
    if method is not None:
        estimator.set_params(method=method)
    X = np.vstack([rows(30), SERVER[:3], np.zeros((1, 4))])
    if not per_client:
        estimator.set_params(privacy_unit="row")
    groups = np.arange(len(X)) // 4 if per_client else None
    audit = replay_audit(estimator, X, groups=groups, repeats=repeats, stop_at_first=True)
    return audit.violations


WITHOUT_SERVER = {"client reach without a bound", "client reach without noise"}
FOR_CLIENTS = {"parts clipped one by one", "client clip missing", *WITHOUT_SERVER}


@pytest.mark.slow
def test_without_a_bug_there_is_no_violation(monkeypatch):
    BUGS["none"] = (_rounds, "row_bounds", lambda original: lambda *args: original(*args))
    plant(monkeypatch, "none")
    del BUGS["none"]
    assert violations(False) == [] and violations(True) == []
    assert violations(True, server=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", list(BUGS))
def test_mutants_are_killed(bug, monkeypatch):
    plant(monkeypatch, bug)
    if "client" in bug and "row level" in bug or "skipped" in bug:
        monkeypatch.setattr("sklearn_dp.federated._clients._BLOCK", 6)
    assert violations(
        bug in FOR_CLIENTS,
        "kmeans++" if bug.startswith("clip missing") else None,
        repeats=3 if bug.startswith("ties") else 1,
        server=bug not in WITHOUT_SERVER,
    )


@pytest.mark.slow
def test_the_mutant_of_the_seed_is_killed(monkeypatch):
    """Sums and counts of a round from the same stream: the noise audit sees it."""
    draw = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource,
        "rounded_gaussian",
        lambda self, sigma, size=None: draw(NoiseSource(7, "noise"), sigma, size),
    )
    assert noise_audit(WithServer(3, epsilon=1.0), rows(30), fits=3)


@pytest.mark.slow
def test_an_empirical_audit_tells_the_square_of_the_radius_from_the_radius():
    """Nothing against one far row: mu as measured, for step 1 at mu = 1.

    A thousand draws of each: the difference of the means has the standard error 0.045, the bound
    is five of them. Noise for the radius, 4, would measure mu = 4.
    """
    domain = FederatedDPKMeans(bounds=4.0)._domain(2)
    setup = _state.Setup(1, 2, domain, np.eye(2))
    plan = PrivacyPlan(
        PrivacyBudget(rho=0.5, delta=1e-6), (PlanEntry("second moment", "gaussian", 0.5),)
    )
    shown = []
    for X in (np.empty((0, 2)), np.array([[1e6, 0.0]])):
        values = []
        for seed in range(1000):
            session, recorder = None, Trace()
            with trace(recorder):
                session = PrivacySession(plan, random_state=seed + 1000 * len(X))
                state = first_message(setup, session)
                total = _clients.client_update("moment", state.message, X)
                server_update(state, total, session)
            event = recorder.events[-1]
            values.append(event.output[0] / np.asarray(event.scale)[0])
        shown.append(np.array(values))
    mu = np.mean(shown[1]) - np.mean(shown[0])
    assert mu == pytest.approx(math.sqrt(2 * 0.5), abs=5 * math.sqrt(2 / 1000))
    assert np.std(shown[0]) == pytest.approx(1.0, abs=0.12)
