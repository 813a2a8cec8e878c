"""Every example runs from a checkout, draws its picture and tells what a fit cost."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from sklearn_dp.exceptions import UtilityWarning

pytestmark = pytest.mark.docs
ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
# What each one has to say beyond its privacy report.
SAYS = {
    "plot_private_palette": ["cost / KMeans", "ARI to KMeans", "DPKTupleKMeans took the path"],
    "plot_digits_pipeline": ["cost / KMeans", "accuracy", "One more fit is refused: ledger"],
    "plot_densest_place": ["radius, km", "without privacy", "The places are"],
    "plot_far_mean": ["median error", "FriendlyMean"],
    "plot_federated": ["largest error", "numbers from a client"],
    "plot_what_epsilon_costs": [
        "noise / signal",
        "cost / KMeans",
        "Charged for the curve: nothing",
    ],
    "plot_private_search": ["released score", "Noise of a score", "Charges in the ledger: 1"],
    "plot_number_of_clusters": ["chosen", "cost / KMeans(12)"],
    "plot_private_coreset": ["cost / KMeans", "DBSCAN on the points: ARI"],
    "plot_private_topics": ["ARI to KMeans", "What the released centers are about"],
    "plot_days": ["charges in the ledger: 1", "as stated"],
    "plot_profile": ["Status: ", "Left in the ledger: epsilon 1", "income"],
    "plot_private_mixture": ["area under the curve", "Synthetic rows"],
}
# By an interpreter without options.
NOT_SHOWN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
GUARANTEE = r"\((0\.9\d*|1), 1e-06\)-DP when one row is added or removed;.*noise: system"


def run(script, *options):
    """Run an example without a display, as `make demo` would."""
    env = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script), "--quick", *map(str, options)],
        env=env, capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip


def check_picture(path):
    """A picture of some size that is not blank."""
    image = imread(path)
    assert min(image.shape[:2]) >= 500
    assert len(np.unique(image[..., 0])) > 50


def check_text(text, name):
    assert re.search(GUARANTEE, text), "no privacy report at epsilon = 1"
    assert re.search(r"release +mechanism +sensitivity +sigma +rho", text)
    assert [words for words in SAYS[name] if words not in text] == []


def called(name, picture, monkeypatch, capsys):
    """What an example says in this process: to import everything takes longer than most of them."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delenv("DISPLAY", raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for kind in NOT_SHOWN:
            warnings.simplefilter("ignore", kind)
        importlib.import_module(name).main(["--quick", "--output", str(picture)])
    # Their noise has no seed: one fit in a hundred says, rightly or not, that more would help.
    assert [str(warning) for warning in caught if warning.category is not UtilityWarning] == []
    return capsys.readouterr().out


def started(name, picture):
    """What it says as a program."""
    done = run(f"{name}.py", "--output", picture)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr.replace(UtilityWarning.__name__, "")
    return done.stdout


# The quickest one; `make demo` and the site run all.
@pytest.mark.quick("plot_federated")
@pytest.mark.parametrize("name", SAYS)
def test_example(name, tmp_path, monkeypatch, capsys):
    picture = tmp_path / "new" / "folder" / "picture.png"
    if name == "plot_federated":  # the quickest
        text = started(name, picture)
    else:
        text = called(name, picture, monkeypatch, capsys)
    check_text(text, name)
    check_picture(picture)
