"""Pictures of budgets: what is drawn is what was planned, charged and spent."""

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.inspection import BudgetDisplay
from sklearn_dp.ledger import LedgerCharge

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
ROWS = np.random.default_rng(0).normal(size=(2000, 3)) + np.arange(2000)[:, None] % 2 * 8
MODEL = DPKMeans(2, random_state=0)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def model():
    return MODEL.fit(ROWS)


def widths(display):
    return [bar.get_width() for bar in display.bars_]


def names(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_the_bars_of_a_plan_are_its_shares(ax):
    plan = DPKMeans(4).privacy_plan(5)
    display = BudgetDisplay.from_plan(plan, ax=ax)
    assert widths(display) == [entry.rho / plan.rho for entry in plan.entries]
    assert sum(widths(display)) == pytest.approx(1) and "moving the centers" in names(display)
    assert ax.yaxis_inverted() and ax.get_xlabel() == "share of the budget"


def test_other_ways_are_named(ax):
    plan = DPKMeans(4).privacy_plan(5)
    entry = plan.entries[0].__class__("cells", "gaussian", 0.01, paths=("one", "two"))
    display = BudgetDisplay.from_plan(plan.__class__(plan.target, (entry,)), ax=ax)
    assert names(display) == ["where rows are dense (one or two)"]


def test_the_bars_of_a_report_are_what_was_spent(ax, model):
    report = model.privacy_report_
    display = BudgetDisplay.from_report(report, ax=ax)
    spent = {}
    for row in report.releases:
        spent[row["release"]] = spent.get(row["release"], 0) + row["rho"]
    assert widths(display)[:-1] == pytest.approx([rho / report.rho for rho in spent.values()])
    assert widths(display)[-1] == 1 - report.spent_rho / report.rho
    assert names(display)[-1] == "not spent"


def test_the_report_of_a_plan_has_spent_nothing_yet(ax):
    plan = DPKMeans(4).privacy_plan(5)
    display = BudgetDisplay.from_report(plan.report(), ax=ax)
    assert widths(display) == [entry.rho / plan.rho for entry in plan.entries]


def test_the_bars_of_a_ledger_are_its_charges(ax):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=4.0, delta=1e-5))
    for label, epsilon in (("first", 1.0), ("", 0.5), ("first", 0.25)):
        ledger.charge(LedgerCharge(epsilon=epsilon, delta=1e-7), label)
    display = BudgetDisplay.from_ledger(ledger, ax=ax)
    assert widths(display) == [1.25 / 4, 0.5 / 4, 2.25 / 4]
    assert names(display) == ["first (2 fits)", "without a label", "not spent"]
    assert ax.get_title(loc="left") == "Ledger: epsilon, 1.75 of 4 spent"


def test_the_cost_that_runs_out_first_is_shown(ax):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=4.0, delta=1e-6))
    ledger.charge(LedgerCharge(epsilon=0.5, delta=7.5e-7), "one")
    display = BudgetDisplay.from_ledger(ledger, ax=ax)
    assert widths(display) == pytest.approx([0.75, 0.25])
    assert "delta" in ax.get_title(loc="left")


def test_many_bars_are_put_together(ax):
    shares = [0.01 * i for i in range(1, 21)]
    display = BudgetDisplay([f"r{i}" for i in range(20)], shares, "many").plot(ax=ax)
    assert len(widths(display)) == 14 and sum(widths(display)) == pytest.approx(sum(shares))
    assert names(display)[-1] == "7 others"


@pytest.mark.parametrize("way", ["plan", "report", "ledger"])
def test_a_budget_of_another_kind_is_refused_by_name(way):
    with pytest.raises(TypeError, match=f"^{way} must be a Privacy"):
        getattr(BudgetDisplay, f"from_{way}")(7)
