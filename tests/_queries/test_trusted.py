"""The list of what has to be read is complete: a fit runs nothing else that can see a value."""

import ast
import re
import sys
import threading
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from bits import blobs, digest, settings  # noqa: E402
from configurations import ESTIMATORS, configurations  # noqa: E402
from trusted import APART, HEADS, KINDS, Checkout  # noqa: E402

import sklearn_dp  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
HERE = str(ROOT / "sklearn_dp")
RUNS = str(Path(sklearn_dp.__file__).parent)  # elsewhere, where a wheel is tested
TABLES = {
    "sparse": ("sparse",),
    "float32": (),
    "threads": (),
    "lists": ("lists and objects",),
    "frames": ("frames",),
    "objects": ("frames", "lists and objects"),
    "parts": (*APART, "Dask"),
}


@cache
def checkout():
    return Checkout(ROOT)


@contextmanager
def running():
    """The code that runs, in all threads."""
    codes = {}

    def watch(frame, event, argument):
        if event == "call":
            codes.setdefault(frame.f_code)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield codes
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def ran(model, arguments, how):
    """The definitions that run in a fit, of those that can see a value."""
    with running() as codes:
        digest(model, arguments, how)
    places = {(code.co_filename.replace(RUNS, HERE), code.co_firstlineno) for code in codes}
    found = {definitions()[place] for place in places if place[0].startswith(HERE)}
    return {each for each in found if checkout().kinds[each.module] in KINDS}


@cache
def definitions():
    """The definition that each line of the package is in."""
    names, paths = checkout().names, checkout().path
    every = [d for of in names.defined.values() for found in of.values() for d in found]
    every += [d for found in names.always.values() for d in found]
    every += [method for each in every for method in each.methods]
    return {(str(paths(one.module)), line): one for one in every for line in one.lines}


def listed(model, arguments, how, of):
    """The list of an estimator, and that of the one inside, for what the fit is given."""
    words = {"sample_weight": "weights", "groups": "groups"}
    apart = {*TABLES.get(how, ()), *(words[each] for each in arguments if each in words)}
    for option in ("method", "aggregator"):
        asked = (model, getattr(model, "options", None))
        apart |= {f"{option}={getattr(each, option, '')!r}" for each in asked}
    apart |= {"lists and objects"} if isinstance(getattr(model, "init", None), list) else set()
    inner = model._inner() if hasattr(model, "_inner") else getattr(model, "estimator", None)
    inside = listed(inner, arguments, how, of) if type(inner).__name__ in ESTIMATORS else set()
    return of.reached(type(model).__name__, *sorted(apart)) | inside


def missing(fits, of):
    """What ran and is not on the list."""
    return {f"{name}: {one}" for (name, *fit), run in fits for one in run - listed(*fit, of)}


def quick():
    """A setting for each release, and k-means of each kind of table."""
    for each in configurations("releases"):
        rows = blobs(1300 if "Tuple" in each.name else 400, 2)
        if "by" in each.options:
            rows[:, 0] = np.arange(len(rows)) % 2
        yield f"{each}", each.estimator, {"X": rows}, ""
    X, model = blobs(3000, 3), ESTIMATORS["DPKMeans"](3, bounds=9.0, max_weight=2.0)
    own = {"sample_weight": np.linspace(0, 3, 3000), "groups": np.arange(3000) // 2}
    frame = pd.DataFrame(X, columns=list("abc"))
    forms = {"lists": X.tolist(), "frames": frame, "objects": frame.astype(object)}
    for how in TABLES:
        yield f"k-means {how}", model, {"X": forms.get(how, X)}, how
    for name in own:
        yield f"k-means {name}", model, {"X": X, name: own[name]}, ""
    yield "k-means parts of all", model, {"X": X, **own}, "parts"


@pytest.fixture(scope="module")
def fits():
    return [(fit, ran(*fit[1:])) for fit in quick()]


def test_what_runs_is_on_the_list(fits):
    assert len(fits) > 70
    assert missing(fits, checkout()) == set()


BLIND = {"__subclasses__", "singledispatch", "eval", "exec", "import_module"}


def test_nothing_is_reached_in_a_way_that_the_walk_does_not_see():
    """But what packages load when they are asked for it, and who reads tables in parts."""
    names = checkout().names
    found = {
        name
        for name, tree in names.trees.items()
        for node in ast.walk(tree)
        if BLIND & {getattr(node, "id", ""), getattr(node, "attr", "")}
    }
    fits = {name for name in found if name.split(".")[0] not in ("__main__", "audit", "inspection")}
    assert fits - names.packages == {"_partitions._dispatch"}


def test_what_is_told_apart_runs_for_what_takes_it(fits):
    """And for nothing else: otherwise it would be missing above."""
    alone = [(fit, run) for fit, run in fits if fit[0].startswith("k-means")]
    for (name, model, arguments, how), run in alone:
        takes = TABLES.get(how) or len(arguments) > 1
        assert bool(run - listed(model, {"X": None}, "", checkout())) == bool(takes), name


@pytest.mark.slow  # a minute
def test_what_runs_of_hundreds_of_fits_is_on_the_list():
    every = [fit for fit in settings() if "search cost" not in fit[0]]
    assert missing([(fit, ran(*fit[1:])) for fit in every], checkout()) == set()


CRIPPLED = {
    "attributes": lambda said: (said[0], set(), *said[2:]),
    "self": lambda said: (*said[:2], set(), said[3]),
    "names": lambda said: ({one for one in said[0] if one.methods}, *said[1:]),
    "classes": lambda said: ({one for one in said[0] if not one.methods}, *said[1:]),
}


@pytest.mark.parametrize("what", CRIPPLED)
def test_a_walk_that_is_deaf_to_something_misses_what_runs(fits, what):
    of, names = copy(checkout()), copy(checkout().names)
    names.said = lambda one: CRIPPLED[what](checkout().names.said(one))
    of.names = names
    assert missing(fits, of)


@pytest.mark.slow  # half a minute of syntax trees for a page that a release refreshes
def test_the_page_tells_how_much_there_is_to_read():
    """Within a tenth: a line more is no news."""
    page, now = (ROOT / "doc" / "auditors.md").read_text("utf-8"), checkout()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,| ]+) \|$", page, re.MULTILINE)
    assert len(rows) >= 7
    for name, numbers in rows:
        told = [int(number.replace(",", "")) for number in numbers.split("|")]
        for kind, number, known in zip(HEADS, told, now.row(name), strict=True):
            assert abs(known - number) <= max(known, number) / 10, (name, kind, known)
            assert kind != "others" or known <= number, (name, known)
