"""What the logger says: each charge and each release once, by name, and nothing of the rows."""

import logging

import numpy as np

from sklearn_dp import DPKMeans
from sklearn_dp._costs.ledger_terms import LOGGER

X = np.random.default_rng(0).normal(size=(200, 2)) + 5 * (np.arange(200) % 2)[:, None]


def test_nothing_is_heard_unless_somebody_asks(capsys):
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)
    assert LOGGER.level == logging.NOTSET and LOGGER.propagate
    DPKMeans(2).fit(X)
    assert capsys.readouterr() == ("", "")
