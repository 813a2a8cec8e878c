"""What is said of the coordinates of centers."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, DPKTupleKMeans, DPOneClusterKMeans
from sklearn_dp._aggregate.shared.column_codes import (
    codes_by_column,
    codes_of_centers,
    told_by_column,
)
from sklearn_dp._aggregate.shared.column_means import RefinedCenters, unrefined_centers
from sklearn_dp._queries.coordinates import Columns

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

FINE = np.full((4, 3), "ok", dtype="<U8")
CENTERS = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]], dtype=float)


def test_what_a_status_tells_of_columns():
    k, names = 4, ["age", "salary", "hours"]
    found = unrefined_centers(
        Columns(np.zeros(3), np.array([10.0, 12.0, 11.0]), True), CENTERS, np.full(k, 0.1)
    )
    assert told_by_column("ok", found, FINE, names) == "ok"
    error = found.std_error.copy()
    error[0, 2] = 6.0  # more than half of 11
    assert "noise hides hours in 1 of 4 centers" in told_by_column(
        "ok", found._replace(std_error=error), FINE, names
    )
    error[1, 2] = 6.0
    assert told_by_column("ok", found._replace(std_error=error), FINE, names) == (
        "mostly noise in some columns: hours in 2 of 4 centers"
    )
    wide = found._replace(std_error=error, spread=np.array([10.0, 4000.0, 11.0]))
    assert told_by_column("ok", wide, FINE, names).startswith(
        "mostly noise in some columns: hours in 2 of 4 centers; salary has 99.9% of the spread"
    )
    said = {
        "at_bound": (np.arange(12).reshape(4, 3) == 4, "rows: salary in 1 of 4"),
        "beyond": (np.array([0.125, 0, 0]), "are clipped to them: age (12%)"),
        "constant": (
            np.array([False, False, True]),
            "only a single value is visible in these columns: hours",
        ),
        "spread": (np.array([10.0, 4000.0, 11.0]), "ok, but salary has 99.9% of the spread"),
    }
    for name, (value, words) in said.items():
        assert words in told_by_column("ok", found._replace(**{name: value}), FINE, names)
    assert told_by_column("mostly noise", found, FINE, names) == "mostly noise"
    assert isinstance(found, RefinedCenters)


def test_a_status_counts_the_centers_that_are_noise():
    """By their codes, whether or not anything is known of each column."""
    noise, names = FINE.copy(), ["age", "salary", "hours"]
    noise[1], noise[2, 0] = "noise", "noise"
    words = "mostly noise or hardly any rows in 1 of 4 centers"
    for scaled in (True, False):
        columns = Columns(np.zeros(3), np.full(3, 10.0), scaled)
        found = unrefined_centers(columns, CENTERS, np.full(4, 0.1))
        assert told_by_column("ok", found, noise, names) == f"ok, but {words}"
    assert told_by_column("ok, but so", found, noise, names) == f"ok, but so; {words}"
    assert told_by_column("no", found, noise, names) == "no"
    noise[:3] = "noise"
    words = "mostly noise or hardly any rows in 3 of 4 centers"
    assert told_by_column("ok", found, noise, names) == words
    assert told_by_column("ok, but so", found, noise, names) == f"{words}; so"


@pytest.mark.parametrize("seed", [0, 2, 5])  # in a third of all it may hide a cluster
def test_a_center_between_yes_and_no_has_no_rows(seed):
    """Two values, three centers: of one nothing is known, and the status was a plain "ok"."""
    X = (np.random.default_rng(0).random((3000, 1)) < 0.3).astype(float)
    model = DPKMeans(3, bounds=(0.0, 1.0), random_state=seed).fit(X)
    assert model.trustworthy_
    assert model.cluster_centers_status_[:, 0].tolist() == ["ok", "ok", "noise"]
    assert model.status_ == "ok, but mostly noise or hardly any rows in 1 of 3 centers"


def test_each_coordinate_has_a_code_of_its_own():
    spread = np.array([10.0, 12.0, 11.0])
    found = unrefined_centers(Columns(np.zeros(3), spread, True), CENTERS, np.full(4, 0.1))
    error, at_bound = found.std_error.copy(), found.at_bound.copy()
    error[1, 2], at_bound[3, 0] = 6.0, True  # more than half of 11
    found = found._replace(
        std_error=error, at_bound=at_bound, constant=np.array([False, True, False])
    )
    codes = codes_of_centers(found, np.array([900.0, 800.0, 35.0, 700.0]), np.full(4, 10.0))
    assert codes.tolist() == [
        ["ok", "constant", "ok"],
        ["ok", "constant", "noise"],
        ["noise"] * 3,  # three and a half standard deviations of noise are no rows
        ["bound", "constant", "ok"],
    ]
    # One center of four is not more than a quarter, two are.
    assert codes_by_column(codes).tolist() == ["ok", "constant", "noise"]
    cut = codes_of_centers(found._replace(beyond=np.ones(3)), np.full(4, 900.0), np.full(4, 10.0))
    assert set(cut.ravel()) == {"bound", "noise"}


def groups(n, rng):
    return CENTERS[rng.integers(4, size=n)] + rng.normal(size=(n, 3)) * [5, 6e3, 4]


@pytest.mark.parametrize("kind", [DPKMeans, DPKTupleKMeans])
@pytest.mark.parametrize("bounds", [None, ([0.0, 0, 0], [100.0, 2e5, 4e4])])
def test_codes_of_fits(kind, bounds):
    """Hours in a box of four hundred times their range are noise; ages and salaries are known."""
    X = groups(10_000, np.random.default_rng(0))
    model = kind(4, bounds=bounds, random_state=0).fit(X)
    codes, spread = model.cluster_centers_status_, X.std(axis=0)
    assert codes.shape == (4, 3) and codes.dtype.kind == "U"
    assert model.column_status_.tolist() == ["ok", "ok", "ok" if bounds is None else "noise"]
    assert np.all((codes == "ok") <= (model.cluster_centers_std_error_ < spread))
    assert (codes[:, :2] == "ok").all()


def test_without_a_bound_that_holds_them_no_center_is_a_mean():
    X = np.random.default_rng(0).normal(size=(60, 2)) * 1e4
    model = DPKMeans(2, epsilon=0.1, random_state=0).fit(X)
    assert "no bound found" in model.status_
    assert not np.any(model.cluster_centers_status_ == "ok")
    assert not np.any(model.column_status_ == "ok")


def test_columns_that_are_far_narrower_than_a_ball():
    X = groups(5000, np.random.default_rng(0))
    model = DPOneClusterKMeans(2, epsilon=4.0, bounds=([0.0, 0, 0], [100.0, 2e5, 80]))
    model.set_params(random_state=0).fit(X)
    assert model.column_status_.tolist() == ["noise", "ok", "noise"]
