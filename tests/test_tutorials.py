"""Tutorials, and pictures of single estimators, run from top to bottom, alone, as notebooks do.

Private fits in them draw noise of the system. What is asked here holds whatever it is: which
figures are drawn, which words that no noise can change are printed, and what the code names.
"""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.docs
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
# Figures, and words of the output that do not depend on noise.
SHOWS = {
    "tutorials/plot_1_from_kmeans": (
        3,
        ["(4, 1e-06)-DP when one row is added or removed", "True False"],
    ),
    "tutorials/plot_2_study": (
        3,
        ["this needs epsilon 0.5 but nothing of 3 is left", "'epsilon': 3.0"],
    ),
    "tutorials/plot_3_many_rows": (3, ["epsilon for a person: 14", "480 bytes back"]),
    "tutorials/plot_4_table_of_persons": (
        3,
        ["found: ['employed', 'none', 'retired'", "refused: ledger: this needs epsilon 0.1"],
    ),
    "tutorials/plot_5_topics": (1, ["False False", "10 topics"]),
    "estimators/plot_categories": (1, ["status: ok"]),
    "estimators/plot_covariance": (1, ["covariance_[0, 1]", "status: ok"]),
    "estimators/plot_hierarchy": (1, ["4 clusters", "least true size above 1000: True"]),
    "estimators/plot_one_cluster_kmeans": (1, ["balls: "]),
    "estimators/plot_outlier_screen": (1, ["rows in the ball:"]),
    "estimators/plot_pca": (1, []),
    "estimators/plot_privatize": (1, ["['DPPCA', 'DPKMeans']"]),
    "estimators/plot_quantiles": (1, ["columns: ['ok', 'ok', 'ok']"]),
    "estimators/plot_segments": (1, ["'ok', 'ok', 'ok', 'ok']", "region 8 mean"]),
    "estimators/plot_standard_scaler": (1, ["status: ok"]),
    "estimators/plot_randomized_search": (1, []),
    "estimators/plot_sample_and_aggregate": (1, ["40,000 houses: largest error"]),
}
CHEAP = ("tutorials/plot_1_from_kmeans",)


# Seconds each. What all of them must do, the first one shows; the site runs all.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in CHEAP else pytest.mark.slow) for name in SHOWS]
)
def test_a_tutorial_runs(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    n_figures, words = SHOWS[name]
    plt.close("all")
    try:
        with matplotlib.rc_context({"backend": "agg"}):
            runpy.run_path(str(EXAMPLES / f"{name}.py"))
            figures = [plt.figure(number) for number in plt.get_fignums()]
            assert len(figures) >= n_figures and all(figure.axes for figure in figures)
    finally:
        plt.close("all")
    text = capsys.readouterr().out
    assert [missing for missing in words if missing not in text] == []
    assert list(tmp_path.iterdir()) == []
