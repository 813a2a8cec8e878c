"""The paper's split of the budget: what its steps cost together, and the noise of each."""

import numpy as np
import pytest
from federated_states import mixture

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._costs import accounting

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
