"""What CONTRIBUTING.md names is there: paths, commands, and the walk through a fit."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sklearn_dp
from sklearn_dp import DPKMeans

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"\.?[\w<>*.-]+(?:/[\w<>*.-]*)+|\.?[\w<>*-]+\.(?:py|md|txt|yaml|toml|cff)")
# Where a path may begin; `cluster/` is what a reader of this package calls `sklearn_dp/cluster/`.
STARTS = (ROOT, ROOT / "sklearn_dp", ROOT / "sklearn_dp" / "_privacy")


def named_paths(text):
    """Paths in backquotes; words in angle brackets stand for anything."""
    for quoted in QUOTED.findall(text):
        for word in quoted.split("::")[0].split():
            if PATH.fullmatch(word):
                yield word


def found(path):
    """The file or folder; where a name is left open, all that it may stand for."""
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    return [each for start in STARTS for each in start.glob(pattern)]


def exists(path):
    return bool(found(path))


def named_places(text):
    """A name and the file that it stands in, from "`NAME` in `file`"."""
    return re.findall(r"`(\w+)`\s+in\s+`([^`\s]+\.py)`", text)


def stands_in(name, path):
    pattern = re.compile(rf"^(?:def |class )?{name}\b", re.MULTILINE)
    return any(pattern.search(each.read_text(encoding="utf-8")) for each in found(path))


def targets(makefile):
    return set(re.search(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)[1].split())


def named_targets(text):
    """Targets in backquotes, and in lines of commands."""
    yield from re.findall(r"`make ([a-z]+)", text)
    yield from re.findall(r"^ {4}make ([a-z]+)", text, re.MULTILINE)


# -- paths -----------------------------------------------------------------------------------------


def test_every_path_exists():
    paths = sorted(set(named_paths(TEXT)))
    assert len(paths) >= 30
    assert [path for path in paths if not exists(path)] == []


@pytest.mark.parametrize(
    "text",
    ["`sklearn_dp/no_such_folder/`", "`tests/no_such_file.py`", "`_privacy/rules/<law>.py`"],
)
def test_a_path_that_does_not_exist_is_found(text):
    (path,) = named_paths(text)
    assert not exists(path)


def test_what_is_no_path_is_left_alone():
    assert list(named_paths("`PrivacyPlan`, `round(sigma Z)`, `make test`, `-k ledger`")) == []
    assert list(named_paths("`tests/x.py::test_one`, see `python tests/y.py --all`")) == [
        "tests/x.py",
        "tests/y.py",
    ]


def test_every_name_stands_in_the_file_that_is_named():
    places = named_places(TEXT)
    assert len(places) >= 15
    assert [place for place in places if not stands_in(*place)] == []


def test_a_name_that_is_not_in_its_file_is_found():
    (place,) = named_places("a line for it in `NO_SUCH_TABLE`\nin `tests/configurations.py`")
    assert not stands_in(*place)
    assert stands_in("TABLE", "tests/configurations.py")


def test_every_word_in_backquotes_is_a_word_of_the_sources():
    sources = [
        *ROOT.glob("sklearn_dp/**/*.py"),
        *ROOT.glob("tests/**/*.py"),
        ROOT / "pyproject.toml",
    ]
    texts = [path.read_text(encoding="utf-8") for path in sources if path != Path(__file__)]
    known = set(re.findall(r"\w+", "\n".join(texts)))
    words = {word for word in QUOTED.findall(TEXT) if re.fullmatch(r"[A-Za-z_]\w+", word)}
    assert len(words) >= 25 and words - known == set()


# -- the walk through a fit ------------------------------------------------------------------------


def walk(text):
    """Files and functions of the walk, in its order."""
    section = text.partition("### A walk through")[2].partition("\n## ")[0]
    return re.findall(r"`([\w/]+\.py)::(\w+)`", section)


def first_calls():
    """Files and functions of the package, in the order in which a fit of k-means enters them."""
    rng, home = np.random.default_rng(0), os.path.dirname(sklearn_dp.__file__) + "/"
    X, found = rng.normal(size=(2000, 3)) + 9 * rng.integers(3, size=(2000, 1)), {}

    def watch(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(home):
            found.setdefault((path.removeprefix(home), frame.f_code.co_name))

    model = DPKMeans(3, bounds=50.0, random_state=0)
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        model.fit(X)
    finally:
        sys.setprofile(before)
    return list(found)


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
def test_the_walk_is_the_way_of_a_fit():
    steps, calls = walk(TEXT), first_calls()
    assert len(steps) >= 20
    assert [step for step in steps if step not in calls] == []
    assert steps == sorted(steps, key=calls.index)


# -- commands --------------------------------------------------------------------------------------


def test_the_commands_are_those_of_the_makefile():
    """Both ways: each command is a target, and each target is told."""
    assert set(named_targets(TEXT)) == targets(MAKEFILE)


def test_a_command_that_does_not_exist_is_found():
    assert set(named_targets("    make polish  # shoes\n\nsee `make tea`")) == {"polish", "tea"}
