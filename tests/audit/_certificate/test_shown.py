"""What a fit shows: all of it, and nothing that does not leave the process."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp.audit._distinguishers import Table, shown
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


class Odd:
    """Attributes of all sorts."""

    def __init__(self):
        self.list_ = [{"bytes": 3}, "word", None]
        self.object_ = np.random.default_rng(0)
        self.ragged_ = [np.zeros(2), np.zeros(3)]
        self.huge_ = np.array([1e308, 1e308])
        self.hidden = 7
        self.true_ = True


def test_attributes_of_all_sorts():
    numbers, words = shown(Outcome(Odd(), (), None))
    assert numbers["list_[0][bytes]"] == 3 and words["list_[1]"] == "'word'"
    assert words["list_[2]"] == "None" and numbers["length of list_"] == 3
    assert words["object_"] == "Generator" and numbers["length of the pickle of object_"] > 0
    assert words["shape of ragged_[1]"] == "(3,) float64"
    assert numbers["norm of huge_"] == np.inf and numbers["true_"] == 1.0
    assert not [name for name in {**numbers, **words} if "hidden" in name]


def test_a_table_has_the_columns_of_all_rows_that_vary():
    table = Table([({"a": 1.0, "c": 3.0}, {"w": "x"}), ({"b": 2.0, "c": 3.0}, {"w": "y"})])
    assert set(table.numbers) == {"a", "b"} and set(table.words) == {"w"}
    np.testing.assert_array_equal(table.numbers["a"], [1.0, np.nan])
    missing = Table([({}, {"w": "x"}), ({}, {})])
    assert list(missing.words["w"]) == ["x", "(missing)"]
