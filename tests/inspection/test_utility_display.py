"""The picture of a curve: what is drawn is what was computed."""

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp.inspection import PrivacyUtilityCurve, PrivacyUtilityDisplay

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402


def curve_of(**changes):
    values = np.array([[1.3, 1.1, 1.2], [1.0, 1.02, 1.01], [1.001, 1.0, 1.0]])
    fields = {
        "epsilons": np.array([0.1, 1.0, 5.0]), "values": values, "reference": 1.0,
        "floor": np.array([1.05, 1.005, 1.0]), "metric": "cost over cost without privacy",
        "estimator": "DPKMeans", "n_units": 12_000,
    }  # fmt: skip
    return PrivacyUtilityCurve(**fields | changes)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_what_is_drawn_is_the_curve(ax):
    curve = curve_of()
    display = PrivacyUtilityDisplay.from_curve(curve, ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert np.array_equal(display.line_.get_xydata(), np.c_[curve.epsilons, [1.2, 1.01, 1.0]])
    assert np.array_equal(display.floor_.get_xydata(), np.c_[curve.epsilons, curve.floor])
    assert set(display.reference_.get_ydata()) == {1.0}
    band = display.band_.get_paths()[0].vertices
    for epsilon, low, high in zip(curve.epsilons, *curve.quartiles[[0, 2]], strict=True):
        assert {low, high} <= set(band[band[:, 0] == epsilon, 1])


def test_axes_speak(ax):
    PrivacyUtilityDisplay.from_curve(curve_of(synthetic=True), ax=ax)
    ax.figure.canvas.draw()
    assert ax.get_xscale() == "log" and ax.get_yscale() == "linear"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1", "1", "5"]
    assert ax.get_xlabel() and "cost" in ax.get_ylabel()
    assert all(text.get_text().endswith("%") for text in ax.get_yticklabels())
    assert "12,000 rows, synthetic" in ax.get_title(loc="left")


def test_no_legend_over_the_data(ax):
    PrivacyUtilityDisplay.from_curve(curve_of(), ax=ax)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 >= ax.get_window_extent().y1
    assert legend.x1 <= ax.figure.bbox.x1 + 1


def test_what_is_not_known_is_not_drawn(ax):
    curve = curve_of(reference=float("nan"), floor=None, metric="radius")
    display = PrivacyUtilityDisplay.from_curve(curve, ax=ax)
    assert display.reference_ is None and display.floor_ is None
    assert ax.get_ylabel() == "radius"


def test_values_of_many_sizes_get_a_logarithmic_axis(ax):
    curve = curve_of(values=np.array([[100.0], [5.0], [1.0]]))
    PrivacyUtilityDisplay.from_curve(curve, ax=ax)
    assert ax.get_yscale() == "log"


def test_many_epsilons_get_plain_ticks(ax):
    epsilons = np.geomspace(0.01, 10, 40)
    curve = curve_of(epsilons=epsilons, values=1 + 1 / epsilons[:, None], floor=None)
    PrivacyUtilityDisplay.from_curve(curve, ax=ax)
    assert len(ax.get_xticks()) < 10


def test_from_an_estimator_to_a_new_figure():
    from matplotlib import pyplot

    display = PrivacyUtilityDisplay.from_estimator(
        DPKMeans(2), n_units=5000, n_features=2, epsilons=[1, 2], n_repeats=2, random_state=0
    )
    assert list(display.curve.epsilons) == [1, 2] and display.figure_ is not None
    first = display.ax_
    assert display.plot().ax_ is not first
    pyplot.close("all")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: PrivacyUtilityDisplay.from_curve([1, 2]), "curve must be"),
        (lambda: PrivacyUtilityDisplay.from_curve(curve_of(), ax="here"), "ax must be"),
    ],
)
def test_wrong_parameters_are_refused_by_name(call, words):
    with pytest.raises(TypeError, match=words):
        call()
