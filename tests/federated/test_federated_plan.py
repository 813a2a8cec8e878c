"""Accounting: what releases cost, and that they add up to the target."""

import itertools

import numpy as np
import pytest
from federated_states import mixture

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._costs import accounting
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries.client_rounds import coarse_step
from sklearn_dp.federated import FederatedOptions, first_message, server_update
from sklearn_dp.federated._state import Setup

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
        # 4950 numbers: the standard deviation of the estimate is 1%; five of them.
        assert np.std(noise[np.triu_indices(100, 1)]) == pytest.approx(0.7071, rel=0.05)
        assert np.std(np.diag(noise)) == pytest.approx(1.0, rel=0.4)
