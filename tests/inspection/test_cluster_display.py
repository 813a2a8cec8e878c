"""Pictures of centers: what is drawn is what was released."""

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp.exceptions import PrivacyWarning
from sklearn_dp.inspection import ClusterDisplay

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

ROWS = np.random.default_rng(0).normal(size=(2000, 3)) + np.arange(2000)[:, None] % 2 * 8
MODEL = DPKMeans(2, random_state=0)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def model():
    return MODEL.fit(ROWS)


def test_centers_and_intervals_are_those_released(ax, model):
    display = ClusterDisplay.from_estimator(model, features=(2, 0), level=0.8, ax=ax)
    assert np.array_equal(display.centers_.get_offsets(), model.cluster_centers_[:, [2, 0]])
    low, high = model.confidence_interval(level=0.8, attribute="cluster_centers_")
    across, along = display.errors_[2]
    for i, (line, other) in enumerate(
        zip(across.get_segments(), along.get_segments(), strict=True)
    ):
        assert line[:, 0] == pytest.approx([low[i, 2], high[i, 2]])
        assert other[:, 1] == pytest.approx([low[i, 0], high[i, 0]])
    assert display.rows_ is None and ax.get_xlabel() == "feature 2"


def test_no_private_row_unless_it_is_said_by_name(ax, model, recwarn):
    public = np.zeros((5, 3))
    display = ClusterDisplay.from_estimator(model, public, ax=ax)
    assert np.array_equal(display.rows_.get_offsets(), public[:, :2]) and not recwarn.list
    with pytest.warns(PrivacyWarning, match="do not publish"):
        display = ClusterDisplay.from_estimator(model, private_rows=ROWS, ax=ax)
    assert "private rows: do not publish" in ax.get_legend_handles_labels()[1]
