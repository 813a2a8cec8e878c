"""Private quantiles of columns."""

import numpy as np
import pytest

from sklearn_dp import DPQuantiles
from sklearn_dp.exceptions import UtilityWarning


def people(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.where(rng.random(n) < 0.5, 40.0, rng.normal(30, 8, n).round().clip(0, 80))
    return np.column_stack([rng.uniform(15, 95, n), rng.lognormal(10.5, 0.7, n), hours])


@pytest.mark.parametrize("bounds", [None, ([0, 0, 0], [120, 1e6, 168])])
def test_medians_of_a_plain_table(bounds):
    X = people()
    model = DPQuantiles(epsilon=1.0, bounds=bounds, random_state=0).fit(X)
    exact = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    np.testing.assert_allclose(model.quantiles_, exact, rtol=0.02)
    assert (np.abs(model.quantiles_ - exact) <= 4 * model.quantiles_std_error_ + 0.01).all()
    assert model.status_ == "ok" and model.trustworthy_
    assert model.column_status_.tolist() == ["ok"] * 3
    assert model.size_ == pytest.approx(20_000, abs=5 * model.size_std_error_)
    assert model.rank_std_error_.max() < 0.005
    low, high = model.confidence_interval()
    assert (low < model.quantiles_).all() and (model.quantiles_ < high).all()
    assert "quantiles_[1, 2]" in repr(model.summary())


def test_the_status_names_columns_and_remedies():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(people(), columns=["age", "salary", "hours"])
    box = ([0, 0, 0], [120, 20_000, 168])
    with pytest.warns(UtilityWarning, match="at a bound.*: salary"):
        model = DPQuantiles(epsilon=1.0, bounds=box, random_state=0).fit(frame)
    assert model.column_status_.tolist() == ["ok", "bound", "ok"] and not model.trustworthy_
    with pytest.warns(UtilityWarning, match="too few rows .* times as many rows"):
        model = DPQuantiles(epsilon=1.0, random_state=0).fit(frame[:100])
    assert model.column_status_.tolist() == ["noise"] * 3


def test_no_remedy_is_a_budget_that_protects_hardly_anybody():
    (few,) = DPQuantiles(random_state=0).fit([[1.0]]).messages_
    assert few.action.startswith("use at least") and "epsilon" not in few.action
