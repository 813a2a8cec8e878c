"""What the logger says: each charge and each release once, by name, and nothing of the rows."""

import logging

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._costs.log import LOGGER
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import record

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]
X = np.random.default_rng(0).normal(size=(200, 2)) + 5 * (np.arange(200) % 2)[:, None]


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
