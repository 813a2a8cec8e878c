"""The table of a fit: what it says, and that markup in it is text."""

import pandas as pd
import pytest
from kernel_tools import make_plan, open_session

from sklearn_dp._privacy._plan import PlanEntry

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_a_plan_prints_its_entries_and_a_fit_its_releases():
    plan = make_plan().report()
    assert plan.noise == "planned" and plan.spent_rho == 0.0
    session = open_session()
    session.gaussian("count", 3, sensitivity=1.0, unit=0.5)
    report = session.report()
    assert [row["release"] for row in report.releases] == ["count"]
    # rho = 1/4, so sigma is the root of 2 steps, half a unit each
    assert report.releases[0]["sigma"] == pytest.approx(0.5 * 2**0.5)
    assert report.spent_rho == 0.25 and report.rho == 1.0
    frame = report.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 1
    for text in (repr(report), repr(plan)):
        assert "count" in text and "add or remove one row" in text


def test_seeded_noise_is_the_first_note():
    report = open_session().report()
    report = type(report)(**{**vars(report), "noise": "seeded", "notes": ("a condition",)})
    assert "random_state" in report.warnings[0] and report.warnings[1] == "a condition"
    assert "note: a condition" in repr(report)


def test_names_are_text_and_no_markup():
    html = make_plan(PlanEntry("<b>sum</b>", "gaussian", 0.5)).report()._repr_html_()
    assert "&lt;b&gt;sum" in html and "<b>sum" not in html


def test_a_column_that_says_nothing_is_left_out():
    assert "path" not in repr(make_plan())
    paths = make_plan(PlanEntry("sum", "gaussian", 0.5, paths=("a",)))
    assert "path" in repr(paths)
