"""What a fit shows: all of it, and nothing that does not leave the process."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp.audit._certificate.shown import shown
from sklearn_dp.audit._observe import Outcome, run_fit


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    return run_fit(DPKMeans(2, bounds=1.0, random_state=0), X)


def test_attributes_report_and_warnings_are_shown(fitted):
    numbers, words = shown(fitted)
    centers = fitted.estimator.cluster_centers_
    assert numbers["cluster_centers_[3]"] == centers[1, 1]
    assert numbers["norm of cluster_centers_"] == pytest.approx(np.linalg.norm(centers))
    assert numbers["cluster_centers_ sorted[0]"] == centers.max()
    assert numbers["radius_"] == fitted.estimator.radius_
    assert numbers["cluster_centers_ times cluster_weights_[0]"] == pytest.approx(
        fitted.estimator.cluster_weights_ @ centers[:, 0]
    )
    row = fitted.estimator.privacy_report_.releases[0]
    assert numbers["report: sigma of release 0"] == row["sigma"]
    assert words["releases"].startswith(row["release"])
    assert words["status_"] == repr(fitted.estimator.status_)
    assert "SeededNoiseWarning" in words["warnings"] and words["error"] == ""
    assert numbers["length of the pickle"] > 0


def test_what_is_no_release_is_not_shown(fitted):
    """`labels_` would tell the data sets apart at once."""
    numbers, words = shown(fitted)
    assert not [name for name in {**numbers, **words} if "labels_" in name]


def test_an_error_is_all_that_is_shown():
    numbers, words = shown(Outcome(None, (), ValueError("no"), "printed before"))
    assert numbers == {} and words["error"] == "ValueError('no')"
    assert words["printed"] == "printed before"
