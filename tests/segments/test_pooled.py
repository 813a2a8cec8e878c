"""Where the fits of segments start, and whether that start may mislead them."""

import numpy as np
import pytest

from sklearn_dp import DPBySegment, DPKMeans
from sklearn_dp._aggregate.kmeans import engine
from sklearn_dp.audit import replay_audit

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def different_regions(number=6, n=3000):
    """Regions whose clusters lie two and a half widths from the common ones, with their key."""
    rng = np.random.default_rng(1)
    common = rng.uniform(-1, 1, size=(5, 4))
    centers = common + 0.3 * rng.normal(size=(number, 5, 4))
    region = np.repeat(np.arange(number), n)
    X = centers[region, rng.integers(5, size=len(region))]
    return np.c_[X + 0.12 * rng.normal(size=X.shape), region], centers


def test_regions_that_are_very_different_find_starts_of_their_own():
    """A start from the common centers leaves two clusters of some regions in one (cost 1.5)."""
    X, centers = different_regions()
    model = DPBySegment(DPKMeans(5, bounds=2.5), values=range(6), by=4, random_state=0).fit(X)
    for number in range(1, 6):
        distances = np.abs(
            centers[number][:, None] - model.estimators_[number].cluster_centers_
        ).max(axis=2)
        assert distances.min(axis=1).max() < 0.15


def test_replays_of_starts_of_their_own(monkeypatch):
    """With this budget the second region finds one, because of what the first one has shown."""
    found, own = [], engine._misleads

    def noted(*given):
        found.append(own(*given))
        return found[-1]

    monkeypatch.setattr(engine, "_misleads", noted)
    X, _ = different_regions(3, 25)
    model = DPBySegment(DPKMeans(5, bounds=2.5), values=range(3), by=4, epsilon=5000.0)
    result = replay_audit(model, X)
    assert result.violations == [] and set(found) == {False, True}
    assert result.ratios["cells"] > 0.5 < result.ratios["lloyd sums"]
