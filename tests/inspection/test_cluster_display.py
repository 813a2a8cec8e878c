"""Pictures of budgets and of centers: what is drawn is what was planned, charged and released."""

import re

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPGaussianMixture, DPKMeans, DPOneCluster, PrivacyBudget, PrivacyLedger
from sklearn_dp.exceptions import PrivacyWarning
from sklearn_dp.inspection import BudgetDisplay, ClusterDisplay
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


# -- budgets --------------------------------------------------------------------------------------


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


# -- centers --------------------------------------------------------------------------------------


def test_centers_and_intervals_are_those_released(ax, model):
    display = ClusterDisplay.from_estimator(model, features=(2, 0), level=0.8, ax=ax)
    assert np.array_equal(display.centers_.get_offsets(), model.cluster_centers_[:, [2, 0]])
    low, high = model.confidence_interval(level=0.8, attribute="cluster_centers_")
    across, along = display.errors_[2]
    for i, (line, other) in enumerate(
        zip(across.get_segments(), along.get_segments(), strict=True)
    ):
        assert line[:, 0] == pytest.approx([low[i, 2], high[i, 2]])
        assert other[:, 1] == pytest.approx([low[i, 0], high[i, 0]])
    assert display.rows_ is None and ax.get_xlabel() == "feature 2"


def test_no_private_row_unless_it_is_said_by_name(ax, model, recwarn):
    public = np.zeros((5, 3))
    display = ClusterDisplay.from_estimator(model, public, ax=ax)
    assert np.array_equal(display.rows_.get_offsets(), public[:, :2]) and not recwarn.list
    with pytest.warns(PrivacyWarning, match="do not publish"):
        display = ClusterDisplay.from_estimator(model, private_rows=ROWS, ax=ax)
    assert "private rows: do not publish" in ax.get_legend_handles_labels()[1]


def test_without_released_errors_there_are_centers_only(ax):
    model = DPGaussianMixture(2, random_state=0).fit(ROWS)
    display = ClusterDisplay.from_estimator(model, ax=ax)
    assert np.array_equal(display.centers_.get_offsets(), model.means_[:, :2])


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"features": (0, 3)}, ValueError, "features must be"),
        ({"features": (1, 1)}, ValueError, "features must be two"),
        ({"features": 1}, TypeError, "features must be a pair"),
        ({"level": 1}, ValueError, "level must be"),
        ({"X_public": ROWS[:, :2]}, ValueError, "X_public must have as many"),
        ({"X_public": ROWS, "private_rows": ROWS}, TypeError, "X_public and private_rows"),
        ({"estimator": 3}, TypeError, "estimator must be"),
        ({"estimator": DPKMeans()}, ValueError, "not fitted"),
    ],
)
def test_wrong_parameters_are_refused_by_name(change, error, words, model):
    with pytest.raises(error, match=words):
        ClusterDisplay.from_estimator(**{"estimator": model} | change)


def test_an_estimator_without_centers_is_refused():
    model = DPOneCluster(n_points=500, bounds=30.0, epsilon=8.0, random_state=0).fit(ROWS)
    with pytest.raises(
        TypeError, match=re.escape("estimator: DPOneCluster has no cluster_centers_")
    ):
        ClusterDisplay.from_estimator(model)
