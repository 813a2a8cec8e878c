"""Displays in notebooks: what they say is true, all of it is text, and nothing else is in them."""

import re

import pytest
from kernel_tools import make_plan, open_session
from page_tools import Reader

from sklearn_dp import DPGaussianMixture, DPKMeans
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._costs.pages import framed, table
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._ledger import PrivacyLedger

EVIL = "<script>alert(\"&')</script>"


def test_a_plan_shows_a_sentence_a_bar_and_folded_numbers():
    plan = make_plan(notes=("a condition",))
    page = Reader(plan._repr_html_())
    assert page.texts[0] == plan.report().told
    assert "It would spend" in page.texts[1]
    assert page.widths() == [75.0, 25.0]
    assert page.tags.count("details") == 3  # a sum, a count, and the guarantee in numbers
    assert {"75%", "25%", "a condition"} <= set(page.texts)
    assert not any(name == "open" for name, _ in page.attributes)


@pytest.mark.parametrize("estimator", [DPKMeans(4), DPGaussianMixture(2)])
def test_plans_of_estimators_are_well_formed(estimator):
    page = Reader(estimator.privacy_plan(3)._repr_html_())
    assert 99.0 < sum(page.widths()) <= 100.01
    for entry in estimator.privacy_plan(3).entries:
        assert entry.name in page.texts


def test_all_texts_are_escaped():
    entry = PlanEntry(f"{EVIL}/{EVIL}", "gaussian", 0.5, sensitivity=EVIL, paths=(EVIL,))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    ledger.charge(LedgerCharge(epsilon=0.5, delta=0.0), label=EVIL)
    pages = [
        make_plan(entry, notes=(EVIL,))._repr_html_(),
        ledger._repr_html_(),
        framed(table([EVIL], [[EVIL]])),
    ]
    for text in pages:
        page = Reader(text)
        assert set(page.tags) <= {
            "style", "div", "p", "b", "br", "span", "details", "summary",
            "table", "thead", "tbody", "tr", "th", "td",
        }  # fmt: skip
        assert EVIL in "".join(page.texts)
        assert "alert" not in re.sub(r'title="[^"]*"', "", text).replace("alert(&quot;", "")


def test_a_page_is_light_and_dark_and_loads_nothing():
    text = make_plan()._repr_html_()
    assert "prefers-color-scheme:dark" in text and ':is([data-theme="dark"],' in text
    for forbidden in ("<script", "url(", "http", "@import", " src=", " href=", " id="):
        assert forbidden not in text
    assert 'class="sk-dp fitted"' not in text
    session = open_session()
    session.gaussian("count", 3, sensitivity=1.0)
    assert 'class="sk-dp fitted"' in session.report()._repr_html_()
