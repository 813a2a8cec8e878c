"""The proof pages tell every entry of every plan, and name tests and files that exist."""

import importlib
import itertools
import re
import sys
from pathlib import Path

import pytest
from configurations import DEFAULT, ESTIMATORS, TABLE
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "doc" / "_ext"))
    yield importlib.import_module("proof_pages")
    sys.path.remove(str(ROOT / "doc" / "_ext"))


@pytest.fixture(scope="module")
def planned(pages):
    """The law of each (estimator, entry) over all settings of the tests, few features and many."""
    found = {}
    for search in searches():
        for entry in search.privacy_plan(n_features=5).entries:
            found[type(search).__name__, pages.general(entry.name)] = str(entry.mechanism)
    for name, estimator in ESTIMATORS.items():
        for options, _ in TABLE.get(name, DEFAULT):
            for n_features, unit in itertools.product((2, 20), ("row", "group")):
                plan = estimator(**options).privacy_plan(n_features=n_features, unit=unit)
                for entry in plan.entries:
                    found[name, pages.general(entry.name)] = str(entry.mechanism)
    return found


def searches():
    """Each search in each of its ways: all runs are released, or the best one alone."""
    steps = make_pipeline(DPPCA(2, bounds=1.0), DPKMeans())
    for kind, more in ((DPGridSearch, {}), (DPRandomizedSearch, {"n_iter": 2})):
        for selection in ("all", "best"):
            space = {"dpkmeans__n_clusters": [2, 3]}
            yield kind(steps, space, epsilon=2.0, selection=selection, **more)


def names_in(path):
    return re.findall(r"^def (test_\w+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_plan_entry_is_told_once_and_no_other(pages, planned):
    told = [place for release in pages.releases() for place in release["in"]]
    assert len(told) == len(set(told)) >= 170
    assert set(told) ^ set(planned) == set()  # a new entry: name it in doc/proofs/releases.toml


def test_laws_are_those_of_the_plans(pages, planned):
    table = pages.releases()
    assert {place: each["law"] for each in table for place in each["in"]} == planned
    assert {each["law"] for each in table} <= set(pages.COSTS)


def test_tests_and_files_exist(pages):
    for release in pages.releases():
        assert (ROOT / release["code"]).is_file(), release["title"]
        assert release["tests"], release["title"]
        for place in release["tests"]:
            path, name = place.split("::")
            assert name in names_in(path), place


def test_errata_name_tests_that_exist():
    text = (ROOT / "doc" / "proofs" / "errata.md").read_text(encoding="utf-8")
    places = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(places) >= 65 and text.count("::test_") == len(places)
    assert [place for place in places if place[1] not in names_in(place[0])] == []


def test_an_entry_has_one_release(pages):
    table = pages.releases()
    assert pages.release_of("DPOneClusterKMeans", "3/box", table)["title"] == "The fullest box"
    with pytest.raises(ValueError, match="unpack"):
        pages.release_of("DPKMeans", "no such entry", table)


def test_a_page_holds_all_entries_of_its_estimator(pages):
    table = pages.releases()
    for estimator in ("DPKMeans", "FriendlyMean"):
        text = pages.page(estimator, table)
        names = [name for each in table for who, name in each["in"] if who == estimator]
        assert names and all(f"`{name}`" in text for name in names)
