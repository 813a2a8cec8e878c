"""The page for auditors says how much there is to read, and what has no access stays without."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import pytest  # noqa: E402
from trusted import KINDS, Checkout  # noqa: E402


@pytest.mark.slow  # half a minute of syntax trees for a page that a release refreshes
def test_the_page_tells_how_much_there_is_to_read():
    """Within a tenth: a line more is no news."""
    page, now = (ROOT / "doc" / "auditors.md").read_text("utf-8"), Checkout(ROOT)
    rows = re.findall(r"^\| `(\w+)` \| ([\d,| ]+) \|$", page, re.MULTILINE)
    assert len(rows) >= 7
    for name, numbers in rows:
        told = [int(number.replace(",", "")) for number in numbers.split("|")]
        for kind, number, known in zip(KINDS, told, now.row(name), strict=True):
            assert abs(known - number) <= max(known, number) / 10, (name, kind, known)
            assert kind != "others" or known <= number, (name, known)
