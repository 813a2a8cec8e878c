"""What answers a fit by k-tuples, where there are too few rows or no core."""

import numpy as np
import pytest
from k_tuple_tools import Disagreeing, blobs, model
from sklearn.metrics import adjusted_rand_score

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_few_rows_lead_to_the_coreset_by_a_released_count():
    X, labels = blobs(2000)
    fitted = model().fit(X)
    assert fitted.path_ == "coreset"
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    entries = {row["release"] for row in fitted.privacy_report_.releases}
    assert "count" in entries and not any(name.startswith("tuples/") for name in entries)


def test_without_a_core_the_coreset_answers():
    X, labels = blobs()
    fitted = model(inner=Disagreeing()).fit(X)
    assert fitted.path_ == "tuples, then coreset"
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    fitted = model(inner=Disagreeing(), fallback="public").fit(X)
    assert fitted.path_ == "tuples, then public"
    assert np.isfinite(fitted.cluster_centers_).all()
    assert np.linalg.norm(fitted.cluster_centers_, axis=1).max() <= 1 + 1e-9
