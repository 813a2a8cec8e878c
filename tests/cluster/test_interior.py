"""A private interior point of numbers, as a function."""

import numpy as np
import pytest

from sklearn_dp import PrivacyLedger
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.cluster import int_point as public_int_point
from sklearn_dp.exceptions import BudgetExceededError


@pytest.mark.parametrize("bounds", [1000.0, (0.0, 500.0)])
def test_a_median_with_bounds_and_a_report(bounds):
    values = np.random.default_rng(3).normal(100.0, 5.0, size=4000)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    for seed in range(3):
        found = public_int_point(
            values, bounds=bounds, n_points=2000, epsilon=1.0, random_state=seed, ledger=ledger
        )
        assert 90 < found.point < 110
    report = found.privacy_report
    assert report.epsilon <= 1.0 and report.spent_rho <= report.rho
    assert len(ledger.entries) == 3
    with pytest.raises(BudgetExceededError):
        public_int_point(values, bounds=bounds, n_points=2000, epsilon=1.0, ledger=ledger)


@pytest.mark.parametrize("law", ["uniform", "cluster", "two", "equal"])
def test_the_point_is_interior_and_near_the_median(law):
    rng = np.random.default_rng(0)
    values = {
        "uniform": rng.uniform(-1, 1, 1000),
        "cluster": 0.003 + rng.uniform(-5e-5, 5e-5, 1000),
        "two": np.where(rng.random(1000) < 0.5, -0.004, 0.07) + rng.uniform(0, 1e-4, 1000),
        "equal": np.full(1000, 0.012345),
    }[law]
    for seed in range(10):
        options = dict(bounds=2.0, n_points=500, epsilon=2.0, random_state=seed)
        point = public_int_point(values, **options).point
        assert values.min() - 1e-4 <= point <= values.max() + 1e-4  # rounded to the grid
        assert law == "equal" or 100 <= np.count_nonzero(values <= point) <= 900
