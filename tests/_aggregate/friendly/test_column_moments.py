"""Means of columns about a released place: the plan, and what is known of each column."""

import numpy as np
import pytest

from sklearn_dp import DPPCA
from sklearn_dp._aggregate.friendly.column_moments import column_mean_entries

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_entries_are_worth_what_they_cost():
    assert sum(entry.rho for entry in column_mean_entries(0.3)) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("bounds", [None, ([0, 0], [100, 1e6])])
def test_means_of_columns_of_other_units(bounds):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(45, 15, 20_000), rng.lognormal(10, 0.5, 20_000)])
    model = DPPCA(1, bounds=bounds, random_state=0).fit(X)
    off = np.abs(model.mean_ - X.mean(axis=0))
    assert (off < 5 * model.mean_std_error_).all()
    assert (model.mean_std_error_ < 0.1 * X.std(axis=0)).all()
