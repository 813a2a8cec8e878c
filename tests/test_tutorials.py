"""Tutorials run from top to bottom, alone, as the notebooks that are made of them do.

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

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "tutorials"
# Figures, and words of the output that do not depend on noise.
SHOWS = {
    "plot_1_from_kmeans": (3, ["(4, 1e-06)-DP for add or remove one row", "True False"]),
    "plot_2_study": (3, ["this needs epsilon 0.5 but nothing of 3 is left", "'epsilon': 3.0"]),
    "plot_3_many_rows": (3, ["PureDP(epsilon=14.0)", "480 bytes back"]),
}
PRIVATE = {name for name in sklearn_dp.__all__ if name[:2] in ("DP", "Fr", "Fe", "Sa")}
BUNDLED = {"matplotlib", "numpy", "scipy", "sklearn", "sklearn_dp", *sys.stdlib_module_names}


def source(name):
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


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
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SHOWS) and len(SHOWS) >= 3


# Seconds each. What all of them must do, the first one shows; the site runs all.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "plot_1_from_kmeans" else pytest.mark.slow)
        for name in SHOWS
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
def test_a_tutorial_runs(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    n_figures, words = SHOWS[name]
    plt.close("all")
    try:
        with matplotlib.rc_context({"backend": "agg"}):
            runpy.run_path(str(FOLDER / f"{name}.py"))
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
