"""Plans of mixtures: what they spend, and whose units pay."""

import math

import mpmath as mp
import pytest

from sklearn_dp.mixture import DPGaussianMixture


@pytest.mark.parametrize(
    "epsilon, delta, rho",
    [
        (0.1, 1e-6, 0.000321),
        (0.5, 1e-6, 0.006642),
        (1, 1e-6, 0.024356),
        (2, 1e-6, 0.088153),
        (4, 1e-6, 0.311064),
        (8, 1e-6, 1.052356),
        (1, 1e-5, 0.030556),
        (1, 1e-8, 0.017205),
    ],
)
def test_selections_are_converted_as_zcdp(epsilon, delta, rho):
    """separated_gaussians:A6: the table, by the plan of a partition, which chooses balls."""
    plan = DPGaussianMixture(3, method="partition", epsilon=epsilon, delta=delta).privacy_plan(4)
    assert not plan.gaussian and plan.rho == pytest.approx(rho, abs=1.1e-6, rel=5e-6)
    for other in (
        {"epsilon": 1.01 * epsilon, "delta": delta},
        {"epsilon": epsilon, "delta": 1.01 * delta},
    ):
        more = DPGaussianMixture(3, method="partition", **other).privacy_plan(4).rho
        assert plan.rho < more < 1.03 * plan.rho


@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 10, 20])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_gaussian_plans_keep_the_exact_inequality(epsilon, delta):
    """separated_gaussians:A7: the inequality in 60 digits for s = 1 / mu; with one part in 10^4
    less noise it fails.

    The classical formula fails, too, where epsilon is 10.
    """

    def holds(noise):
        with mp.workdps(60):
            s, e = mp.mpf(noise), mp.mpf(epsilon)
            found = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
            return found <= mp.mpf(delta)

    plan = DPGaussianMixture(3, epsilon=epsilon, delta=delta).privacy_plan(4)
    noise = 1 / math.sqrt(2 * plan.rho)
    assert plan.gaussian and holds(noise) and not holds(noise * (1 - 1e-4))
    classical = math.sqrt(2 * math.log(2 / delta)) / epsilon
    assert holds(classical) == (epsilon <= 5 or delta == 1e-9 and epsilon == 10)
