"""Accounting: what releases cost, and that they add up to the target."""

import itertools

import numpy as np
import pytest
from federated_states import mixture

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.federated import FederatedOptions, first_message, server_update
from sklearn_dp.federated._state import Setup
from sklearn_dp.federated._statistics import coarse_step

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

LAPLACE = FederatedOptions(count_noise="laplace")


def test_noise_multipliers_of_the_analytic_mechanism():
    for epsilon, sigma in (
        (1, 4.2247),
        (0.5, 8.0576),
        (0.25, 15.4098),
        (0.1, 36.3047),
        (2, 2.2305),
    ):
        assert accounting.gaussian_sigma(epsilon, 1e-6) == pytest.approx(sigma, rel=1e-4)
        assert accounting.gaussian_mu(epsilon, 1e-6) == pytest.approx(1 / sigma, rel=1e-4)


PAPER_TOTALS = [  # per-step epsilon of moment, weights, sums, counts, and of a Lloyd round
    ((1, 1, 0.5, 0.5), 2.559),
    ((1, 1, 0.5, 0.5, 0.5, 0.5), 3.133),
    ((1 / 12, 1 / 12, 1 / 24, 1 / 24), 0.2107),
    ((1 / 3, 1 / 3, 1 / 6, 1 / 6), 0.8481),
    ((2 / 3, 2 / 3, 1 / 3, 1 / 3), 1.7022),
    ((1 / 3, 1 / 3, 1 / 3, 0.2), 0.9777),
    ((1 / 6, 1 / 6, 1 / 12, 1 / 12), 0.4227),
    ((0.75, 0.75, 0.375, 0.375), 1.9162),
    ((1 / 12, 1 / 12, 1 / 12, 0.2), 0.3927),
    ((1 / 6, 1 / 6, 1 / 6, 0.2), 0.5871),
    ((2 / 3, 2 / 3, 2 / 3, 0.2), 1.7641),
    ((0.75, 0.75, 0.75, 0.2), 1.9616),
    ((0.05, 0.05, 0.1125, 0.0375), 0.2009),
    ((0.1, 0.1, 0.225, 0.075), 0.4035),
    ((0.2, 0.2, 0.45, 0.15), 0.8107),
    ((0.4, 0.4, 0.9, 0.3), 1.6296),
    ((0.0875, 0.025, 0.1125, 0.025), 0.1825),
    ((0.175, 0.05, 0.225, 0.05), 0.3669),
    ((0.35, 0.1, 0.45, 0.1), 0.7383),
    ((0.7, 0.2, 0.9, 0.2), 1.4875),
    ((0.125, 0.125), 0.2442),
    ((0.25, 0.25), 0.4894),
    ((0.5, 0.5), 0.9805),
    ((1, 1), 1.9645),
]


@pytest.mark.parametrize(("steps", "total"), PAPER_TOTALS)
def test_totals_of_the_paper(steps, total):
    """Gaussian moments and sums, Laplace counts, composed by an independent library."""
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    events = [
        dp.GaussianDpEvent(accounting.gaussian_sigma(steps[i], 1e-6))
        if i in (0, 2, 4)
        else dp.LaplaceDpEvent(1 / steps[i])
        for i in range(len(steps))
    ]
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    found = accountant.compose(dp.ComposedDpEvent(events)).get_epsilon(1e-6)
    assert found == pytest.approx(total, rel=2e-3)


# A quarter of them in the normal suite: whatever two of the settings have in common is there.
OPTIONS = [
    pytest.param(
        *case,
        marks=()
        if ((case[0]["bounds"] is None) + case[1] + case[2]) % 2
        and (number // 2 + case[1] + case[4] // 9) % 2
        else pytest.mark.slow,
    )
    for number, case in enumerate(
        itertools.product(
            ({"bounds": 4.0}, {"bounds": None}),
            (True, False),
            (True, False),
            (
                {},
                {"n_lloyd": 1},
                {"n_lloyd": 5},
                {"method": "paper"},
                {"method": "paper", "options": LAPLACE, "n_lloyd": 1},
                {"method": "sphere_packing"},
                {"relation": "replace", "n_lloyd": 1},
            ),
            (3, 9),
        )
    )
]


@pytest.mark.quick("*-9")
@pytest.mark.parametrize(("bounds", "with_server", "told", "options", "k"), OPTIONS)
def test_releases_add_up_to_the_plan_and_the_plan_to_the_target(
    bounds, with_server, told, options, k
):
    X, _, server, clients = mixture(n=30, d=6)
    model = FederatedDPKMeans(k, epsilon=0.7, random_state=0, **bounds, **options)
    extra = {"X_server": server} if with_server else {}
    plan = model.privacy_plan(6, unit="group" if told else "row", **extra)
    model.fit(X, groups=clients if told else None, **extra)
    report = model.privacy_report_
    assert plan.epsilon == report.epsilon <= 0.7
    assert report.unit == plan.unit == ("group" if told else "row")
    mu_squared = sum(
        (row["sensitivity"] / row["sigma"]) ** 2
        for row in report.releases
        if row["mechanism"] == "gaussian"
    )
    if plan.gaussian:
        assert mu_squared == pytest.approx(2 * plan.rho, rel=1e-6)
        assert accounting.gaussian_epsilon(np.sqrt(2 * plan.rho), 1e-6) <= 0.7
    assert report.spent_rho == pytest.approx(plan.rho, rel=1e-6)
    assert [row["release"] for row in report.releases].count("second moment") == (
        1 if options.get("method") != "sphere_packing" and (k < 6 or not with_server) else 0
    )


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
    (share,) = [
        e.rho
        for e in FederatedDPKMeans(3, method="paper", bounds=11.0)
        .privacy_plan(6, X_server=np.eye(6))
        .entries
        if e.name == "second moment"
    ]
    assert one["second moment"] == pytest.approx(121 / np.sqrt(2 * share), rel=1e-6)


def test_a_step_of_epsilon_one_has_the_noise_that_the_released_code_lacks():
    """A budget that is all step 1: sigma = radius^2 * 4.2247 = 511.2, not 46.47."""
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
