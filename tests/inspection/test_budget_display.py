"""Pictures of budgets: what is drawn is what was planned, charged and spent."""

import matplotlib
import pytest

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.inspection import BudgetDisplay
from sklearn_dp.ledger import LedgerCharge

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


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


def test_the_bars_of_a_ledger_are_its_charges(ax):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=4.0, delta=1e-5))
    for label, epsilon in (("first", 1.0), ("", 0.5), ("first", 0.25)):
        ledger.charge(LedgerCharge(epsilon=epsilon, delta=1e-7), label)
    display = BudgetDisplay.from_ledger(ledger, ax=ax)
    assert widths(display) == [1.25 / 4, 0.5 / 4, 2.25 / 4]
    assert names(display) == ["first (2 fits)", "without a label", "not spent"]
    assert ax.get_title(loc="left") == "Ledger: epsilon, 1.75 of 4 spent"
