"""What CONTRIBUTING.md names is there: paths, names in files, and commands."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs
ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

PATH = re.compile(r"\.?[\w<>*.-]+(?:/[\w<>*.-]*)+|\.?[\w<>*-]+\.(?:py|md|txt|yaml|toml|cff)")
TARGETS = set(re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.MULTILINE)[1].split())


def files(path):
    """Where a path may begin is the checkout or the package; `<word>` stands for anything."""
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    return [each for start in (ROOT, ROOT / "sklearn_dp") for each in start.glob(pattern)]


def wrong(text):
    """Paths that do not exist, names that are not in the file named, and commands that are not."""
    quoted = [word for each in re.findall(r"`([^`\n]+)`", text) for word in each.split()]
    yield from (word for word in quoted if PATH.fullmatch(word) and not files(word))
    for name, path in re.findall(r"`(\w+)`\s+in\s+`([^`\s]+\.py)`", text):
        pattern = re.compile(rf"^ *(?:def |class )?{name}\b", re.MULTILINE)
        if not any(pattern.search(each.read_text(encoding="utf-8")) for each in files(path)):
            yield name
    yield from {*re.findall(r"(?:`|^ {4})make ([a-z]+)", text, re.MULTILINE)} - TARGETS - {"help"}


def test_what_is_named_is_there():
    assert list(wrong(TEXT)) == []
