"""The pages name tests and files that exist.

That they tell every entry of every plan is for `test_every_option.py`.
"""

import re
from pathlib import Path

import pytest
from test_every_option import proof_pages

pytestmark = pytest.mark.docs
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


def test_pages_name_tests_that_exist():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "doc").rglob("*.md")]
    places = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", "\n".join(texts))
    assert len(places) >= 65
    assert [place for place in places if place[1] not in names_in(place[0])] == []
