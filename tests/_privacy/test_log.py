"""What the logger says: each charge and each release once, by name, and nothing of the rows."""

import logging

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPPCA, DPKMeans, FriendlyMean, SampleAndAggregate
from sklearn_dp._privacy._log import LOGGER
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import record
from sklearn_dp.exceptions import BudgetExceededError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import DPGridSearch

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]
X = np.random.default_rng(0).normal(size=(200, 2)) + 5 * (np.arange(200) % 2)[:, None]


@pytest.fixture
def said(caplog):
    """All that was logged since it was asked last."""
    caplog.set_level(logging.DEBUG, "sklearn_dp")

    def messages():
        found = [item.getMessage() for item in caplog.records if item.name == "sklearn_dp"]
        caplog.clear()
        return found

    return messages


def test_nothing_is_heard_unless_somebody_asks(capsys):
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)
    assert LOGGER.level == logging.NOTSET and LOGGER.propagate
    DPKMeans(2).fit(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("estimator", [DPKMeans(2), DPPCA(1), FriendlyMean()], ids=str)
def test_lines_are_those_of_plan_and_report(said, estimator):
    fitted = estimator.fit(X)
    name, report, plan = type(estimator).__name__, fitted.privacy_report_, fitted.privacy_plan(2)
    messages = [text for text in said() if "step done" not in text]
    entries = ", ".join(entry.name for entry in plan.entries)
    assert messages[0] == f"{name}: (1, 1e-06)-DP for one row; may release {entries}"
    assert messages[1:-1] == [
        f"{name}: released {line['release']} ({line['mechanism']}, sigma {line['sigma']:.4g}, "
        f"rho {line['rho']:.4g})"
        for line in report.releases
    ]
    assert messages[-1].startswith(f"{name}: done; ")
    assert messages[-1].endswith(f"status: {fitted.status_}")


def test_charges_of_ledgers(said, tmp_path):
    path = str(tmp_path / "study.sqlite")
    budget = PrivacyBudget(epsilon=1.5, delta=1e-5)
    for ledger, place in (
        (PrivacyLedger(budget), "in memory"),
        (PrivacyLedger(budget, path), path),
    ):
        DPKMeans(2, ledger=ledger).fit(X)
        assert said()[0] == f"ledger {place}: charged (1, 1e-06)-DP for DPKMeans"
        with pytest.raises(BudgetExceededError):
            DPKMeans(2, ledger=ledger).fit(X)
        assert said() == []


def test_the_audit_hears_the_log_and_finds_it_equal_for_neighbors():
    estimator = DPKMeans(2, epsilon=50.0)
    assert "released radius" in record(estimator, X[:20]).outcome.printed
    assert replay_audit(estimator, X[:20]).violations == []


def test_a_log_of_the_rows_is_found(monkeypatch):
    fit = DPKMeans._fit

    def talking(self, rows, *others):
        fit(self, rows, *others)
        LOGGER.debug("the first entry is %s", "large" if len(rows) and rows[0, 0] > 0 else "small")

    monkeypatch.setattr(DPKMeans, "_fit", talking)
    result = replay_audit(DPKMeans(2, epsilon=50.0), X[:20])
    assert any("printed" in violation for violation in result.violations)


class Talking(KMeans):
    """An inner fit that tells what it sees, in our name too."""

    def fit(self, rows, y=None):
        LOGGER.critical("%d rows", len(rows))
        logging.getLogger("other").critical("%d rows", len(rows))
        return super().fit(rows)


@pytest.mark.parametrize("inner", [Talking(1, n_init=1), DPKMeans(1, bounds=9.0)], ids=str)
def test_inner_fits_are_silent(said, caplog, inner):
    SampleAndAggregate(inner, output=("cluster_centers_",), n_blocks=4).fit(X)
    assert {item.name for item in caplog.records} == {"sklearn_dp"}
    assert all(text.startswith("SampleAndAggregate: ") for text in said())


def search(selection, seed):
    estimator = DPKMeans(bounds=9.0)
    grid = {"n_clusters": [1, 2, 3]}
    return DPGridSearch(estimator, grid, selection=selection, random_state=seed).fit(X)


def test_a_search_that_releases_one_run_says_nothing_of_runs(said):
    """Not how many there are: the lines are the same whatever was drawn."""
    lines = []
    for seed in range(6):
        found = search("best", seed)
        *first, last = said()
        assert last == f"DPGridSearch: done; status: {found.status_}"
        lines.append(first)
    assert all(each == lines[0] for each in lines)
    assert len(lines[0]) == 2 and "released selection" in lines[0][1]


def test_a_search_that_releases_all_runs_tells_its_steps(said):
    search("all", 0)
    messages = said()
    assert sum("released last fit" in text for text in messages) == 1
    steps = [text.partition("step done: ")[2] for text in messages if "step done" in text]
    assert steps == ["candidates", "last fit"]
    assert all(text.startswith("DPGridSearch: ") for text in messages)
