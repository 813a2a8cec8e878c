"""Mixtures of tables in parts, every way through a fit: the bits of one array.

Halves, blocks and rows that stand for groups are drawn by numbers of units; balls are of counts.
"""

import numpy as np
import pytest
from mixture_tools import FORMS, WAYS, audit_data
from test_partitions import cuts, fitted, in_memory, released

from sklearn_dp._aggregate.one_cluster import center, search
from sklearn_dp._published.separated_gaussians import terrific
from sklearn_dp._queries.samples import Coins
from sklearn_dp._rows.table import LocalEngine
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.mixture import DPGaussianMixture

X = audit_data()
N = len(X)
ACROSS, WITHIN = np.random.default_rng(0).integers(0, 100, N), np.arange(N) // 2
TOGETHER = [way for way in WAYS if way != "coreset"]


def model(way, **options):
    return DPGaussianMixture(3, random_state=0, **{**WAYS[way][0], **options})


SETTINGS = {
    **{way: model(way) for way in TOGETHER},
    **{f"{form} balls": model("joint balls", covariance_type=form, bounds=60.0) for form in FORMS},
    **{f"{form} tuples": model("tuples", covariance_type=form, bounds=60.0) for form in FORMS},
    "balls in a box": model("joint balls", bounds=(-40.0, 45.0)),
    "tuples in a box": model("tuples", bounds=(-20.0, 25.0)),
}


@pytest.mark.parametrize("name", ["published balls", "spherical"])
def test_samples_of_points_are_those_of_one_array(name, monkeypatch):
    """Coins are of units, whichever of their rows stands for them."""
    tossed, mask = [], Coins.mask
    monkeypatch.setattr(Coins, "mask", lambda self, part: tossed.append(1) or mask(self, part))
    monkeypatch.setattr(terrific, "_SAMPLE", 60)
    monkeypatch.setattr(search, "_LEAST_SAMPLE", 40)
    monkeypatch.setattr(search, "_SAMPLED_CLUSTER", 1)
    monkeypatch.setattr(center, "MOST_COUNTED", 60)
    monkeypatch.setattr(center, "_CLEAR", 1)
    for groups in (None, ACROSS):
        known = released(in_memory(SETTINGS[name], X, groups=groups))
        found, _ = fitted(SETTINGS[name], X, cuts(7, N), groups, engine=LocalEngine)
        assert released(found) == known and tossed


def test_weights_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e4, delta=1e-4))
    parts, weights = np.array_split(X, 3), np.array_split(np.ones(N), 3)
    for way in ("joint balls", "tuples"):
        asked = model(way, ledger=ledger)
        for fit in (asked.fit, asked.fit_partitions):
            with pytest.raises(ValueError, match="^sample_weight: only method='coreset'"):
                fit(parts, sample_weight=weights)
    assert ledger.remaining["epsilon"] == 1e4
