"""Tutorials, and pictures of single estimators, run from top to bottom, alone, as notebooks do.

Private fits in them draw noise of the system. What is asked here holds whatever it is: which
figures are drawn, which words that no noise can change are printed, and what the code names.
"""

import ast
import runpy
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

import sklearn_dp
from sklearn_dp.audit import all_estimators

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
    "tutorials/plot_3_many_rows": (3, ["PureDP(epsilon=14.0)", "480 bytes back"]),
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
PRIVATE = {name for name in sklearn_dp.__all__ if name[:2] in ("DP", "Fr", "Fe", "Sa")}
BUNDLED = {
    "matplotlib",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "sklearn_dp",
    *sys.stdlib_module_names,
}


def source(name):
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def problems(text):
    """What a tutorial must not do: give a seed to private noise, or need more than a package."""
    found = []
    for node in ast.walk(ast.parse(text)):
        called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if called in PRIVATE and {"random_state"} & {word.arg for word in node.keywords}:
            found.append(f"a seed for {called}")
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [getattr(node, "module", None) or alias.name for alias in node.names]
            found += [name for name in modules if name.split(".")[0] not in BUNDLED]
        if isinstance(node, ast.Name) and node.id == "__file__":
            found.append("a notebook has no file")
    return found


def test_every_tutorial_is_known():
    paths = [
        path for folder in ("tutorials", "estimators") for path in EXAMPLES.glob(f"{folder}/*.py")
    ]
    assert {f"{path.parent.name}/{path.stem}" for path in paths} == set(SHOWS)


def names_used(text):
    """What a script calls by name or as a module's, or hands on."""
    nodes = list(ast.walk(ast.parse(text)))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def test_every_estimator_has_an_example_with_a_picture():
    """So its page of the API shows one: the build looks for the names that examples use."""
    scripts = EXAMPLES.glob("**/plot_*.py")
    used = set().union(*(names_used(path.read_text(encoding="utf-8")) for path in scripts))
    wanted = {kind.__name__ for _, kind in all_estimators()} | {"DPRandomizedSearch", "privatize"}
    assert len(wanted) >= 14 and wanted - used == set()
    assert "DPPCA" not in names_used("from sklearn_dp import DPPCA\nPCA()")


# Seconds each. What all of them must do, the first one shows; the site runs all.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in CHEAP else pytest.mark.slow) for name in SHOWS],
)
@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
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


@pytest.mark.parametrize("name", SHOWS)
def test_a_tutorial_gives_no_seed_to_noise_and_needs_nothing_beside_it(name):
    assert problems(source(name)) == []


@pytest.mark.parametrize(
    "planted",
    ["DPKMeans(2, random_state=0)", "FriendlyMean(random_state=None).fit(X)", "open(__file__)",
     "from _common import save", "import seaborn as sns"],
)  # fmt: skip
def test_what_a_tutorial_must_not_do_is_found(planted):
    assert len(problems(planted)) == 1
    assert problems("KMeans(2, random_state=0)\nimport numpy as np") == []
