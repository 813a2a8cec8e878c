"""What the logger says: each charge and each release once, by name, and nothing of the rows."""

import logging

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._privacy._log import LOGGER
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import record
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
