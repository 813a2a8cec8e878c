"""Mixtures of tables in parts, every way through a fit: the bits of one array.

Halves, blocks and rows that stand for groups are drawn by numbers of units; balls are of counts.
"""

import numpy as np
import pytest
from mixture_tools import WAYS, audit_data

from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.mixture import DPGaussianMixture

X = audit_data()
N = len(X)
ACROSS, WITHIN = np.random.default_rng(0).integers(0, 100, N), np.arange(N) // 2


def model(way, **options):
    return DPGaussianMixture(3, random_state=0, **{**WAYS[way][0], **options})


def test_weights_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e4, delta=1e-4))
    parts, weights = np.array_split(X, 3), np.array_split(np.ones(N), 3)
    for way in ("joint balls", "tuples"):
        asked = model(way, ledger=ledger)
        for fit in (asked.fit, asked.fit_partitions):
            with pytest.raises(ValueError, match="^sample_weight: only method='coreset'"):
                fit(parts, sample_weight=weights)
    assert ledger.remaining["epsilon"] == 1e4
