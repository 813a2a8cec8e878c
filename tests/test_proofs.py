"""The proof pages name tests and files that exist.

That they tell every entry of every plan is for `test_every_option.py`.
"""

import re
from pathlib import Path

import pytest
from option_audits import proof_pages

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pages():
    return proof_pages()


def names_in(path):
    return re.findall(r"^def (test_\w+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_law_has_a_cost(pages):
    assert {each["law"] for each in pages.releases()} == set(pages.COSTS)


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
    place = "DPOneClusterKMeans", "3/box"
    assert pages.release_of(*place, "stability histogram", table)["title"] == "The fullest box"
    with pytest.raises(ValueError, match="unpack"):
        pages.release_of(*place, "gaussian", table)


def test_a_page_holds_all_entries_of_its_estimator(pages):
    table = pages.releases()
    for estimator in ("DPKMeans", "FriendlyMean"):
        text = pages.page(estimator, table)
        names = [name for each in table for who, name in each["in"] if who == estimator]
        assert names and all(f"`{name}`" in text for name in names)


def test_a_page_ends_in_its_composition_theorem_and_links_its_tests(pages):
    table = pages.releases()
    made = pages.pages(table)
    for estimator, theorem in (("DPKMeans", pages.GAUSSIAN), ("DPOneCluster", pages.MIXED)):
        assert theorem in made[f"estimators/{estimator}.md"].split("## The total")[1]
    assert pages.APPROXIMATE in made["estimators/DPGridSearch.md"]
    for name, text in made.items():
        if name.startswith("estimators/"):
            links = re.findall(r"\[`(tests/\S+)::(test_\w+)`\]\(\.\./(\S+)#(\w+)\)", text)
            assert links and len(links) == text.count("::test_")
            for path, test, page, anchor in links:
                assert anchor == test and f"## {test}\n" in made[page]
                assert f"{{literalinclude}} ../../../{path}\n:pyobject: {test}\n" in made[page]
