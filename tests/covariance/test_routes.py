"""Covariances from the start that other rows give."""

import numpy as np
import pytest

from sklearn_dp import DPBySegment, FriendlyCovariance
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.covariance import _routes

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]
SPREADS = np.array([2.0, 0.5, 0.1])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * SPREADS + [5.0, 0.0, 0.3]


def from_others(X, mean, covariance, **options):
    """A fit whose plan is that of one with a start, and that start."""
    model = FriendlyCovariance(**{"bounds": (-20.0, [30.0, 20.0, 20.0]), **options})
    model._of_others = True
    plan = model._make_plan(3, "row")
    assert {entry.name for entry in plan.entries} <= {
        "component counts",
        "component sums",
        "component moments",
        "component distances",
    }
    model._of_others = mean, covariance, 500.0
    model.n_features_in_ = 3
    model._fit_session(X, Units(len(X)), PrivacySession(plan, random_state=0))
    return model


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("centered", [False, True])
def test_a_start_that_is_too_narrow_or_too_wide_is_mended(scale, centered):
    X = rows(4000)
    start = np.zeros(3) if centered else np.array([4.0, 0.3, 0.3])
    truth = X.T @ X / len(X) if centered else np.diag(np.square(SPREADS))
    model = from_others(X, start, scale**2 * truth, assume_centered=centered)
    white = np.linalg.inv(np.linalg.cholesky(truth))
    assert np.linalg.norm(white @ model.covariance_ @ white.T - np.eye(3)) < 0.25
    if not centered:
        assert np.all(np.abs(model.location_ - X.mean(axis=0)) < 4 * model.location_std_error_)
    assert model.path_ == "segments"
    assert abs(model.size_ - 4000) < 5 * model.size_std_error_ and model.status_.startswith("ok")


def test_the_largest_weight_is_no_number_of_units(monkeypatch):
    """A start from rows of weight 300 is one of so many units."""
    starts, original = [], _routes.refine

    def refine(rounds, start, **options):
        starts.extend(start)
        return original(rounds, start, **options)

    monkeypatch.setattr(_routes, "refine", refine)
    key, X = np.repeat([0, 1], 600), rows(1200)
    inner = FriendlyCovariance(bounds=30.0, max_weight=300.0)
    model = DPBySegment(inner, values=[0, 1], epsilon=4.0, random_state=0)
    model.fit(X, by=key, sample_weight=np.full(1200, 300.0))
    assert [start.weight for start in starts[1:]] == pytest.approx([600, 600], rel=0.2)
    sizes = [each.size_ for each in model.estimators_.values()]
    assert sizes == pytest.approx([180_000] * 2, rel=0.2)
