"""Tests and the pages of doc/development name each other: no code that only its author can look up.

A test cites a row of a page as `page:CODE`, or `page:CODE,CODE`; the row names the test, or the
file of a group of tests.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.stem.removeprefix("acceptance_"): path
    for path in (ROOT / "doc" / "development").glob("acceptance_*.md")
}
CITATION = re.compile(rf"\b({'|'.join(sorted(PAGES))}):([A-Z]?\d+(?:,[A-Z]?\d+)*)")
ROW = re.compile(r"^\| ([A-Z]?\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
# A code without its page, as documents outside this repository have them.
BARE = re.compile(
    r"\b[Ss]pec(?:ification)? (?:item|section)|\b[Ii]tems? \d+[,:(]|\"\"\"[A-E]\d+[,:. ]"
)


def files_of_tests():
    return sorted(path for path in ROOT.glob("tests/**/test_*.py") if path != Path(__file__))


def citations(text):
    return {(page, code) for page, codes in CITATION.findall(text) for code in codes.split(",")}


def rows(page):
    """Each code with the places that the page names."""
    found = ROW.findall(PAGES[page].read_text(encoding="utf-8"))
    assert len({code for code, _, _ in found}) == len(found), "a code twice"
    return {code: re.findall(r"`([^`]+)`", places) for code, _, places in found}


def names_of(path):
    """The docstring of each function and class of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def problem_with(page, code, place):
    """Why a row may not name a place: None if it may."""
    path, _, name = place.partition("::")
    if not (ROOT / path).is_file():
        return "no such file"
    if not name:
        text = (ROOT / path).read_text(encoding="utf-8")
    elif (text := names_of(ROOT / path).get(name)) is None:
        return "no such test"
    return None if (page, code) in citations(text) else "it does not cite the row"


def test_every_citation_has_its_row():
    known = {(page, code) for page in PAGES for code in rows(page)}
    cited = {
        (path.name, *citation)
        for path in files_of_tests()
        for citation in citations(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 70
    assert {found for found in cited if found[1:] not in known} == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_place_exists_and_cites_its_row(page):
    table = rows(page)
    assert table and all(table.values())
    assert {
        (code, place): problem
        for code, places in table.items()
        for place in places
        if (problem := problem_with(page, code, place))
    } == {}


def test_no_code_is_without_its_page():
    found = {path.name: BARE.findall(path.read_text(encoding="utf-8")) for path in files_of_tests()}
    assert {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.parametrize(
    "planted",
    [
        '"""Spec item 16: a law."""',
        '"""B4, exactly."""',
        '"""Item 18: losses."""',
        "# A spec section",
    ],
)
def test_a_bare_code_is_caught(planted):
    assert BARE.search(planted)


@pytest.mark.parametrize(
    "harmless", ['"""Each item of a list."""', "items = 3", '"""DPPCA: one."""']
)
def test_other_words_pass(harmless):
    assert not BARE.search(harmless)


def test_wrong_places_are_caught():
    page, known = "one_cluster", "tests/cluster/test_dp_one_cluster.py"
    assert problem_with(page, "26", f"{known}::test_one_of_two_minorities") is None
    assert problem_with(page, "26", f"{known}::test_ten_features") == "it does not cite the row"
    assert problem_with(page, "26", f"{known}::test_gone") == "no such test"
    assert problem_with(page, "26", "tests/test_gone.py") == "no such file"
    assert problem_with(page, "1000", known) == "it does not cite the row"
