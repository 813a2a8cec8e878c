"""Ledgers in notebooks: what they say is true, and all of it is text."""

import pytest
from kernel_tools import make_plan
from page_tools import Reader

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._ledger_terms import LedgerCharge
from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._session import PrivacySession


def test_a_ledger_says_what_its_total_allows_and_who_spent_what():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=3e-6))
    PrivacySession(
        make_plan(PlanEntry("sum", "gaussian", 0.02), rho=0.02), ledger=ledger, label="A"
    )
    for _ in range(2):
        ledger.charge(LedgerCharge(epsilon=0.75, delta=0.0), label="B")
    page = Reader(ledger._repr_html_())
    # Of the total, not of what is spent: e^3 / (1 + e^3), and delta.
    assert page.texts[0] == (
        "From everything that the fits of this ledger release, now and later, someone who knows "
        "all other rows can guess whether any one row was in the data, but would be right at most "
        "95.3 % of the time, if both cases were equally likely beforehand (a coin toss is right "
        "50 % of the time). This limit follows from epsilon and delta alone."
    )
    assert page.texts[1].startswith("Spent so far: epsilon = ") and " of 3, " in page.texts[1]
    assert {"A", "B, 2 fits", "50 %", "not spent"} <= set(page.texts)
    share = ledger.entries[0].epsilon / 3
    assert page.widths() == pytest.approx([100 * share, 50.0], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "percent"),
    [
        ({"epsilon": 1.0, "delta": 1e-6, "composition": "gaussian"}, "54.8"),
        ({"epsilon": 1.0, "delta": 1e-6, "composition": "zcdp"}, "55.4"),
        ({"rho": 0.02, "delta": 0.011}, "55.6"),
        ({"rho": 0.02, "delta": 1e-6, "relation": "replace", "unit": "group"}, "55.1"),
    ],
)
def test_the_sentence_of_a_ledger_follows_its_composition(options, percent):
    budget = {name: options.pop(name) for name in ("epsilon", "delta", "rho") if name in options}
    page = Reader(PrivacyLedger(PrivacyBudget(**budget), **options)._repr_html_())
    assert f"at most {percent} %" in page.texts[0]
    if "unit" in options:
        assert "whether any one group of rows was replaced by a different one" in page.texts[0]


def test_a_ledger_whose_file_has_gone_is_still_shown(tmp_path):
    path = tmp_path / "<b>.sqlite"
    ledger = PrivacyLedger(PrivacyBudget(1.0, 0.0), path)
    assert "&lt;b&gt;" in ledger._repr_html_()
    path.unlink()
    assert "PrivacyLedger" in ledger._repr_html_() and "<b>" not in ledger._repr_html_()


def test_a_page_tells_what_each_value_has_left():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    region = ledger.disjoint("<region>", ["north", "<b>"])
    ledger.charge(LedgerCharge(epsilon=0.25, delta=1e-6), label="A")
    for value in region:
        region[value].charge(LedgerCharge(epsilon=0.5, delta=1e-6), label="B")
    page = Reader(ledger._repr_html_())
    assert page.widths() == [25.0, 50.0]  # of what a unit pays: both fits of B together are a half
    assert {"<region>: each row in at most one of 2 values", "B, 2 fits", "<b>"} <= set(page.texts)
    assert page.texts.count("0.75") == 2 and page.tags.count("table") == 3
    assert Reader(region["north"]._repr_html_()).texts.count("B") == 1
