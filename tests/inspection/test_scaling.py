"""Scaled budgets: few public rows stand for many private ones."""

import pytest

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, DPOneCluster
from sklearn_dp.inspection import utility_curve
from sklearn_dp.inspection._public_rows import synthetic_rows
from sklearn_dp.inspection._scaling import scale_freely, settings


@pytest.mark.parametrize("estimator", [DPKMeans(3), DPGaussianMixture(3), DPPCA(2)])
def test_the_scaled_budget_keeps_the_noise_beside_the_sums(estimator):
    """n mu of every release: that of the private fit, to rounding."""
    points = list(settings(estimator, [0.5, 3.0], (2000, 3), 30_000))
    for point in points:
        plan = point.estimator.privacy_plan(3)
        assert plan.rho == pytest.approx(point.plan.rho * 15**2, rel=1e-9)
        for row, private in zip(
            plan.noise(2000).releases, point.plan.noise(30_000).releases, strict=True
        ):
            assert row["release"] == private["release"]
            assert row["noise / signal"] == pytest.approx(private["noise / signal"], rel=1e-6)
    assert [point.plan.epsilon for point in points] == pytest.approx([0.5, 3.0], rel=1e-6)


def test_as_many_rows_get_the_budget_itself():
    (point,) = settings(DPOneCluster(n_points=50), [2.0], (500, 2), 500)
    assert point.estimator.get_params()["epsilon"] == 2.0
    assert point.estimator.get_params()["rho"] is None


def test_the_noise_of_blocks_does_not_scale():
    """An aggregate of blocks may have Gaussian noise only, for the number of blocks."""
    plan = DPKMeans(2).privacy_plan(2)
    assert scale_freely(DPKMeans(2), plan)
    assert not scale_freely(object(), plan)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize(
    "n_units, n_features, k", [(10_000, 2, 8), (20_000, 20, 8), (10_000, 10, 10)]
)
def test_few_rows_tell_what_many_lose(n_units, n_features, k, epsilon):
    """The excess cost of the curve is within a factor 2 of that of real fits (medians of 15)."""
    rows = synthetic_rows((n_features, k), n_units, exact=True, seed=0)
    options = {"n_units": n_units, "epsilons": [epsilon], "n_repeats": 15, "random_state": 1}
    real = utility_curve(DPKMeans(k), rows, **options)
    scaled = utility_curve(DPKMeans(k), rows[:2000], **options)
    ratio = (scaled.quartiles[1] - 1) / (real.quartiles[1] - 1)
    assert 0.5 <= ratio[0] <= 2
