"""The estimator: accounting, parameters, failing clients, and what the answers are worth."""

import itertools
import pickle
import time

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dp import FederatedDPKMeans, PrivacyLedger
from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning
from sklearn_dp.federated import client_update

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning")


def mixture(seed=0, n=6000, d=12, k=4):
    """Separated clusters, their clients, and a few public points near them and elsewhere."""
    rng = np.random.default_rng(seed)
    means = 3 * rng.uniform(-1, 1, size=(k, d))
    X = means[rng.integers(k, size=n)] + 0.4 * rng.normal(size=(n, d))
    server = np.vstack([np.repeat(means, 8, axis=0) + 0.4 * rng.normal(size=(8 * k, d)),
                        3 * rng.uniform(-1, 1, size=(10, d))])
    return X, means, server, rng.permutation(np.arange(n) % 60)


def gap(fitted, means):
    """Largest distance of a true mean to the nearest centre."""
    return np.linalg.norm(means[:, None] - fitted.cluster_centers_, axis=2).min(axis=1).max()


# -- accounting ------------------------------------------------------------------------------------


def test_noise_multipliers_of_the_analytic_mechanism():
    for epsilon, sigma in ((1, 4.2247), (0.5, 8.0576), (0.25, 15.4098), (0.1, 36.3047),
                           (2, 2.2305)):
        assert accounting.gaussian_sigma(epsilon, 1e-6) == pytest.approx(sigma, rel=1e-4)
        assert accounting.gaussian_mu(epsilon, 1e-6) == pytest.approx(1 / sigma, rel=1e-4)


PAPER_TOTALS = [  # per-step epsilon of moment, weights, sums, counts, and of a Lloyd round
    ((1, 1, 0.5, 0.5), 2.559), ((1, 1, 0.5, 0.5, 0.5, 0.5), 3.133),
    ((1 / 12, 1 / 12, 1 / 24, 1 / 24), 0.2107), ((1 / 3, 1 / 3, 1 / 6, 1 / 6), 0.8481),
    ((2 / 3, 2 / 3, 1 / 3, 1 / 3), 1.7022), ((1 / 3, 1 / 3, 1 / 3, 0.2), 0.9777),
    ((1 / 6, 1 / 6, 1 / 12, 1 / 12), 0.4227), ((0.75, 0.75, 0.375, 0.375), 1.9162),
    ((1 / 12, 1 / 12, 1 / 12, 0.2), 0.3927), ((1 / 6, 1 / 6, 1 / 6, 0.2), 0.5871),
    ((2 / 3, 2 / 3, 2 / 3, 0.2), 1.7641), ((0.75, 0.75, 0.75, 0.2), 1.9616),
    ((0.05, 0.05, 0.1125, 0.0375), 0.2009), ((0.1, 0.1, 0.225, 0.075), 0.4035),
    ((0.2, 0.2, 0.45, 0.15), 0.8107), ((0.4, 0.4, 0.9, 0.3), 1.6296),
    ((0.0875, 0.025, 0.1125, 0.025), 0.1825), ((0.175, 0.05, 0.225, 0.05), 0.3669),
    ((0.35, 0.1, 0.45, 0.1), 0.7383), ((0.7, 0.2, 0.9, 0.2), 1.4875),
    ((0.125, 0.125), 0.2442), ((0.25, 0.25), 0.4894), ((0.5, 0.5), 0.9805), ((1, 1), 1.9645)]


@pytest.mark.parametrize(("steps", "total"), PAPER_TOTALS)
def test_totals_of_the_paper(steps, total):
    """Gaussian moments and sums, Laplace counts, composed by an independent library."""
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    events = [dp.GaussianDpEvent(accounting.gaussian_sigma(steps[i], 1e-6)) if i in (0, 2, 4)
              else dp.LaplaceDpEvent(1 / steps[i]) for i in range(len(steps))]
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    found = accountant.compose(dp.ComposedDpEvent(events)).get_epsilon(1e-6)
    assert found == pytest.approx(total, rel=2e-3)


OPTIONS = list(itertools.product(
    ({"bounds": 4.0}, {"bounds": None}), (True, False), (True, False),
    ({}, {"n_lloyd": 1}, {"n_lloyd": 5}, {"method": "paper"},
     {"method": "paper", "count_noise": "laplace", "n_lloyd": 1},
     {"server_init": "sphere_packing"}, {"neighbours": "replace", "n_lloyd": 1}), (3, 9)))


@pytest.mark.parametrize(("bounds", "with_server", "told", "options", "k"), OPTIONS)
def test_releases_add_up_to_the_plan_and_the_plan_to_the_target(bounds, with_server, told, options,
                                                                k):
    X, _, server, clients = mixture(n=30, d=6)
    model = FederatedDPKMeans(k, epsilon=0.7, random_state=0, **bounds, **options)
    extra = {"X_server": server} if with_server else {}
    plan = model.privacy_plan(6, unit="group" if told else "row", **extra)
    model.fit(X, groups=clients if told else None, **extra)
    report = model.privacy_report_
    assert plan.epsilon == report.epsilon <= 0.7
    assert report.unit == plan.unit == ("group" if told else "row")
    mu_squared = sum((row["sensitivity"] / row["sigma"]) ** 2 for row in report.releases
                     if row["mechanism"] == "gaussian")
    if plan.gaussian:
        assert mu_squared == pytest.approx(2 * plan.rho, rel=1e-6)
        assert accounting.gaussian_epsilon(np.sqrt(2 * plan.rho), 1e-6) <= 0.7
    assert report.spent_rho == pytest.approx(plan.rho, rel=1e-6)
    assert [row["release"] for row in report.releases].count("second moment") == (
        1 if options.get("server_init") is None and (k < 6 or not with_server) else 0)


def sigmas(radius, **options):
    X, _, server, _ = mixture(n=60, d=6)
    model = FederatedDPKMeans(3, bounds=radius, method="paper", random_state=0, **options)
    report = model.fit(X, X_server=server).privacy_report_
    return {row["release"]: row["sigma"] for row in report.releases}


def test_noise_of_step_1_grows_with_the_square_of_the_radius():
    """The released code of the paper uses the radius itself: 11 times too little at radius 11.

    At epsilon 1 in each step the moment needs 121 * 4.2247 = 511.2, where it has 46.5.
    """
    one, two = sigmas(11.0), sigmas(22.0)
    assert two["second moment"] == pytest.approx(4 * one["second moment"], rel=1e-6)
    assert two["lift sums"] == pytest.approx(2 * one["lift sums"], rel=1e-6)
    assert two["lift counts"] == one["lift counts"] and two["weights"] == one["weights"]
    (share,) = [e.rho for e in FederatedDPKMeans(3, method="paper", bounds=11.0).privacy_plan(
        6, X_server=np.eye(6)).entries if e.name == "second moment"]
    assert one["second moment"] == pytest.approx(121 / np.sqrt(2 * share), rel=1e-6)


def test_a_step_of_epsilon_one_has_the_noise_that_the_released_code_lacks():
    """A budget that is all step 1: sigma = radius^2 * 4.2247 = 511.2, not 46.47."""
    from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
    from sklearn_dp._privacy._session import PrivacySession
    from sklearn_dp.federated._server import Setup, first_message, server_update

    model = FederatedDPKMeans(3, bounds=11.0)
    setup = Setup(3, 6, model._domain(6), np.eye(6))
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    plan = PrivacyPlan(budget, (PlanEntry("second moment", "gaussian", budget.to_rho()),))
    session = PrivacySession(plan, random_state=0)
    state = first_message(setup, session)
    server_update(state, {"second moment": np.zeros(21, dtype=np.int64)}, session)
    (row,) = session.report().releases
    assert row["sigma"] == pytest.approx(121 * 4.2247, rel=1e-4)


def test_the_noise_of_a_moment_is_isometric():
    """d = 100: diagonal s, off it s / sqrt 2, spectral norm (13.8 +- 0.8) s, four seeds."""
    from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
    from sklearn_dp._privacy._session import PrivacySession
    from sklearn_dp.federated._protocol import coarse_step
    from sklearn_dp.federated._server import Setup, first_message, server_update

    setup = Setup(3, 100, FederatedDPKMeans(bounds=1.0)._domain(100), np.eye(100))
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    plan = PrivacyPlan(budget, (PlanEntry("second moment", "gaussian", budget.to_rho()),))
    upper = np.triu_indices(100)
    for seed in range(4):
        session, recorder = None, Trace()
        with trace(recorder):
            session = PrivacySession(plan, random_state=seed)
            state = first_message(setup, session)
            server_update(state, {"second moment": np.zeros(5050, dtype=np.int64)}, session)
        noise = np.zeros((100, 100))
        noise[upper] = recorder.events[-1].output * (coarse_step(state.ball) * state.unit) ** 2
        noise += np.triu(noise, 1).T
        noise *= np.sqrt(2 * budget.to_rho())
        assert np.linalg.norm(noise, 2) == pytest.approx(13.8, abs=0.8)
        # 4950 numbers: the standard deviation of the estimate is 1 %; five of them.
        assert np.std(noise[np.triu_indices(100, 1)]) == pytest.approx(0.7071, rel=0.05)
        assert np.std(np.diag(noise)) == pytest.approx(1.0, rel=0.4)


def test_without_more_dimensions_than_clusters_step_1_costs_nothing():
    X, means, server, _ = mixture(d=3)
    fitted = FederatedDPKMeans(4, epsilon=5.0, random_state=0).fit(X, X_server=server)
    assert fitted.subspace_ is None and fitted.n_rounds_ == 2
    assert "second moment" not in {row["release"] for row in fitted.privacy_report_.releases}
    assert gap(fitted, means) < 0.3


# -- answers ---------------------------------------------------------------------------------------


def test_it_finds_the_clusters():
    X, means, server, clients = mixture()
    for groups, epsilon in ((None, 1.0), (clients, 200.0)):
        fitted = FederatedDPKMeans(4, epsilon=epsilon, random_state=0).fit(
            X, groups=groups, X_server=server)
        assert gap(fitted, means) < 0.2
        assert fitted.status_ == "ok"
        assert fitted.n_rounds_ == 3 == len(fitted.communication_)
        assert fitted.subspace_ @ fitted.subspace_.T == pytest.approx(np.eye(4), abs=1e-4)
        assert fitted.server_weights_.shape == (len(fitted.server_points_),)
        assert (np.diff(fitted.cluster_weights_) <= 0).all()
    assert fitted.cluster_weights_.sum() == pytest.approx(60, rel=0.3)


@pytest.mark.parametrize("options", [
    {"n_lloyd": 2}, {"method": "paper"}, {"method": "paper", "count_noise": "laplace"},
    {"server_init": "kmeans++", "n_lloyd": 3}, {"server_init": "lloyd"}])
def test_variants_find_clusters(options):
    X, means, server, clients = mixture()
    fitted = FederatedDPKMeans(4, epsilon=5.0, random_state=0, **options).fit(X, X_server=server)
    assert gap(fitted, means) < (3.0 if options.get("server_init") == "kmeans++" else 0.3)
    fitted = FederatedDPKMeans(4, epsilon=400.0, random_state=0, **options).fit(
        X, groups=clients, X_server=server)
    # Clipping local means about the public centre pulls the paper's centres towards it.
    assert gap(fitted, means) < (3.0 if options.get("server_init") == "kmeans++" else 0.8)


def test_without_server_data_it_works_all_the_same():
    X, means, _, _ = mixture(d=3)
    fitted = FederatedDPKMeans(4, epsilon=10.0, random_state=0).fit(X)
    assert gap(fitted, means) < 0.3
    assert fitted.server_weights_ is None and fitted.server_points_ is None


def test_who_holds_a_row_has_no_effect_at_row_level():
    X, _, server, clients = mixture(n=800)
    model = FederatedDPKMeans(4, privacy_unit="row", random_state=3)
    one = model.fit(X, X_server=server).cluster_centers_
    order = np.random.default_rng(0).permutation(len(X))
    for groups in (clients, np.arange(len(X)) // 300, np.zeros(len(X))):
        assert np.array_equal(clone(model).fit(X, groups=groups, X_server=server).cluster_centers_,
                              one)
    assert np.array_equal(clone(model).fit(X[order], X_server=server).cluster_centers_, one)
    parts = [X[clients == j] for j in range(60)]
    assert np.array_equal(clone(model).fit_clients(parts, X_server=server).cluster_centers_, one)


@pytest.mark.parametrize("X", [
    np.zeros((1, 5)), np.tile([[1.0, 2, 3, 4, 5]], (50, 1)), np.full((3, 5), 1e300),
    np.random.default_rng(0).normal(size=(2, 5))])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("told", [False, True])
def test_centres_are_finite_and_in_the_ball(X, epsilon, told):
    """Also with noisy counts below zero; one client, and one client for each row."""
    server = 10 + np.random.default_rng(1).normal(size=(20, 5))
    radius = np.linalg.norm(server - server.mean(axis=0), axis=1).max()
    for k, groups in itertools.product((3, 8), ((np.zeros(len(X)), np.arange(len(X)))
                                                if told else (None,))):
        fitted = FederatedDPKMeans(k, epsilon=epsilon, random_state=0).fit(
            X, groups=groups, X_server=server)
        away = np.linalg.norm(fitted.cluster_centers_ - server.mean(axis=0), axis=1)
        assert fitted.cluster_centers_.shape == (k, 5) and away.max() <= radius * (1 + 1e-9)


def test_input_arrays_are_untouched():
    X, _, server, clients = mixture(n=100)
    copies = X.copy(), server.copy(), clients.copy()
    FederatedDPKMeans(4, random_state=0).fit(X, groups=clients, X_server=server)
    for array, copy in zip((X, server, clients), copies, strict=True):
        assert np.array_equal(array, copy)


def test_communication_is_told_from_public_shapes():
    X, _, server, clients = mixture(n=100)
    lines = [FederatedDPKMeans(4, random_state=0).fit(X[:n], groups=clients[:n], X_server=server
                                                       ).communication_ for n in (100, 7)]
    assert lines[0] == lines[1]
    assert [line["numbers_up"] for line in lines[0]] == [78, 42, 4 * 12 + 4]
    assert [line["kind"] for line in lines[0]] == ["moment", "weights", "lift"]


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "match"), [
    ({"privacy_unit": "person"}, "privacy_unit"), ({"neighbours": "near"}, "neighbours"),
    ({"server_init": "best"}, "server_init"),
    ({"method": "new"}, "method"), ({"count_noise": "none"}, "count_noise"),
    ({"engine": "mail"}, "engine"), ({"n_lloyd": -1}, "n_lloyd"), ({"n_lloyd": "many"}, "n_lloyd"),
    ({"n_lloyd": 0, "server_init": "sphere_packing"}, "n_lloyd"),
    ({"max_rows_per_client": 0}, "max_rows_per_client"), ({"client_timeout": -1}, "client_timeout"),
    ({"client_bounds": {"weights": 2.0}}, "client_bounds"), ({"server_init": "lloyd"}, "X_server"),
    ({"privacy_unit": "client"}, "groups")])
def test_bad_parameters(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        FederatedDPKMeans(2, **options).fit(np.zeros((9, 2)))


@pytest.mark.parametrize(("server", "match"), [
    (np.zeros((9, 2)), "distinct"), (np.zeros((9, 3)), "columns"), (np.full((9, 2), np.nan), "NaN"),
    (np.zeros(4), "2D"), (np.full((9, 2), 1e200), "X_server: numbers")])
def test_bad_server_data(server, match):
    with pytest.raises(ValueError, match=match):
        FederatedDPKMeans(2).fit(np.zeros((9, 2)), X_server=server)


def test_what_is_not_released_is_not_kept():
    X, _, server, clients = mixture(n=200)
    fitted = FederatedDPKMeans(4, random_state=0).fit(X, groups=clients, X_server=server)
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "labels_")
    assert fitted._server is None and "_server" not in vars(fitted)
    refit = fitted.fit(X)
    assert refit.server_weights_ is None


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


@pytest.mark.parametrize("broken", ["no rows", np.full((5, 12), np.nan), np.empty((0, 12))],
                         ids=["no rows", "nan", "empty"])
def test_a_broken_client_counts_as_an_empty_one(broken):
    X, _, server, clients = mixture(n=600)
    good = [X[clients == j] for j in range(4)]
    model = FederatedDPKMeans(4, random_state=0)
    without = clone(model).fit_clients(good, X_server=server)
    found = clone(model).fit_clients([good[0], broken, *good[1:]], X_server=server)
    assert np.array_equal(found.cluster_centers_, without.cluster_centers_)
    assert pickle.dumps(found) == pickle.dumps(without)


def test_the_operator_is_told_who_fails_and_no_data():
    X, _, server, _ = mixture(n=60)
    words = [["row 123"] * 12]  # numpy quotes what is no number
    with pytest.warns(UtilityWarning, match="client 1: OSError.*client 2: ValueError") as caught:
        FederatedDPKMeans(4, random_state=0).fit_clients([X, Silent(), words], X_server=server)
    assert not any("123" in str(item.message) for item in caught)


def test_nobody_answers():
    fitted = FederatedDPKMeans(3).fit_clients([], n_features=4)
    assert np.isfinite(fitted.cluster_centers_).all() and fitted.cluster_centers_.shape == (3, 4)


def test_clients_hand_out_rows_when_asked_and_are_known_by_their_ids():
    X, means, server, clients = mixture()
    seen = []

    class Site:
        def __init__(self, number, client_id):
            self.number, self.client_id = number, client_id

        def __call__(self):
            seen.append(self.number)
            return X[clients == self.number]

    sites = [Site(j, f"site {j}") for j in range(60)]
    model = FederatedDPKMeans(4, epsilon=200.0, random_state=0)
    lazy = clone(model).fit_clients(iter(sites), X_server=server)
    assert len(seen) == 3 * 60 and not hasattr(lazy, "labels_")
    assert np.array_equal(lazy.predict(X), lazy.predict(X))
    mapped = clone(model).fit_clients({site.client_id: site for site in sites}, X_server=server)
    pooled = clone(model).fit(X, groups=clients, X_server=server)
    for other in (mapped, pooled):
        assert np.array_equal(other.cluster_centers_, lazy.cluster_centers_)
    with pytest.raises(ValueError, match="client_id"):
        model.fit_clients([Site(0, "a"), Site(1, "a")], X_server=server)
    with pytest.raises(ValueError, match="n_features"):
        model.fit_clients(sites)


def test_an_exhausted_ledger_refuses_before_any_client_is_asked():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=0.5, delta=1e-6), unit="group")
    with pytest.raises(BudgetExceededError):
        FederatedDPKMeans(2, ledger=ledger).fit_clients([Silent()], n_features=3)
    assert ledger.entries == ()


def test_more_clusters_than_dimensions():
    X, means, server, _ = mixture(d=2, k=6)
    fitted = FederatedDPKMeans(6, epsilon=5.0, random_state=0).fit(X, X_server=server)
    assert fitted.cluster_centers_.shape == (6, 2)
    assert np.median(np.linalg.norm(means[:, None] - fitted.cluster_centers_, axis=2).min(1)) < 0.2


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
    "fails": (Silent(), "OSError"), "hangs": (Hanging(), "TimeoutError"),
    "answers with NaN": (Answering({"second moment": np.full(78, np.nan)}), "integers"),
    "wrong shape": (Told(wrong), "wrong shape"), "out of range": (Told(beyond), "public range"),
    "other vectors": (Answering({"sums": np.zeros(3, dtype=int)}), "exactly"),
    "other columns": (np.zeros((4, 3)), "columns"), "no answer": (Answering(None), "exactly"),
}


@pytest.mark.parametrize("unit", ["row", "client"])
@pytest.mark.parametrize("name", MISFITS)
def test_a_misfit_is_dropped_with_words_and_the_noise_stays(name, unit):
    """Who drops out does not change a scale of the noise, and so not what is charged."""
    if (name, unit) == ("out of range", "row"):
        pytest.skip("a row has a bound, what a client sends of them has none: it saturates")
    X, _, server, clients = mixture(n=400)
    misfit, word = MISFITS[name]
    good = [X[clients == j] for j in range(5)]
    # Long enough for clients that work, on a machine that has other things to do.
    model = FederatedDPKMeans(4, privacy_unit=unit, random_state=0, client_timeout=2.0
                              if name == "hangs" else None)
    whole = clone(model).fit_clients([*good, np.empty((0, 12))], X_server=server)
    with pytest.warns(UtilityWarning, match=f"client 5: .*{word}") as caught:
        found = clone(model).fit_clients([*good, misfit], X_server=server)
    assert not any("123" in str(item.message) for item in caught)
    assert np.array_equal(found.cluster_centers_, whole.cluster_centers_)
    assert found.privacy_report_ == whole.privacy_report_


@pytest.mark.parametrize("unit", ["row", "client"])
def test_one_client_empty_clients_and_more_clusters_than_columns(unit):
    X, _, server, _ = mixture(d=3, k=6, n=900)
    for parts in ([X], [X, X[:0], X[:0]], [X[:0]], [X[i:i + 1] for i in range(30)]):
        fitted = FederatedDPKMeans(6, epsilon=50.0, privacy_unit=unit, random_state=0).fit_clients(
            parts, X_server=server)
        assert fitted.cluster_centers_.shape == (6, 3)
        assert np.isfinite(fitted.cluster_centers_).all()
        assert fitted.subspace_ is None  # no more dimensions than clusters: no first round
