"""What is said of the coordinates of centers."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, DPKTupleKMeans
from sklearn_dp._aggregate.shared.column_codes import (
    RefinedCenters,
    told_by_column,
    unrefined_centers,
)
from sklearn_dp._queries.columns import Columns
from sklearn_dp._status import Message, Status

FINE = np.full((4, 3), "ok", dtype="<U8")
CENTERS = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]], dtype=float)


def test_what_a_status_tells_of_columns():
    k, names = 4, ["age", "salary", "hours"]
    found = unrefined_centers(
        Columns(np.zeros(3), np.array([10.0, 12.0, 11.0]), True), CENTERS, np.full(k, 0.1)
    )

    def told(found):
        return str(told_by_column(Status(), found, FINE, names))

    assert told(found) == "ok"
    error = found.std_error.copy()
    error[0, 2] = 6.0  # more than half of 11
    assert "too noisy to use: hours in 1 of 4 centers" in told(found._replace(std_error=error))
    error[1, 2] = 6.0
    lost = told_by_column(Status(), found._replace(std_error=error), FINE, names)
    assert str(lost) == "mostly noise in some columns: hours in 2 of 4 centers"
    assert (lost.word, lost[0].code, lost[0].columns) == ("caution", "mostly_noise", ("hours",))
    wide = found._replace(std_error=error, spread=np.array([10.0, 4000.0, 11.0]))
    assert told(wide).startswith(
        "mostly noise in some columns: hours in 2 of 4 centers; salary has 99.9% of the spread"
    )
    said = {
        "at_bound": (np.arange(12).reshape(4, 3) == 4, "rows: salary in 1 of 4"),
        "beyond": (np.array([0.125, 0, 0]), "are clipped to them: age (12%)"),
        "constant": (
            np.array([False, False, True]),
            "only a single value is visible in these columns: hours",
        ),
        "spread": (np.array([10.0, 4000.0, 11.0]), "salary has 99.9% of the spread"),
    }
    for name, (value, words) in said.items():
        assert words in told(found._replace(**{name: value}))
    few = Status([Message("few_rows", "mostly noise", severity="all")])
    assert told_by_column(few, found, FINE, names) == few
    assert isinstance(found, RefinedCenters)


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
