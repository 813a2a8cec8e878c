"""Ledgers for the tests of the kernel."""

import pytest
from ledger_tools import BUDGET

from sklearn_dp._privacy._ledger import PrivacyLedger


@pytest.fixture
def path(tmp_path):
    """A ledger file of (1, 1e-5), in row units."""
    PrivacyLedger(BUDGET, tmp_path / "team.ledger")
    return str(tmp_path / "team.ledger")


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return PrivacyLedger(BUDGET, tmp_path / "team.ledger" if request.param == "file" else None)
