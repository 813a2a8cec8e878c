"""Mixtures of tables in parts, every way through a fit: the bits of one array, and audits.

Halves, blocks and rows that stand for groups are drawn by numbers of units; balls are of counts.
"""

import numpy as np
import pytest
from mixture_tools import FORMS, WAYS, audit_data
from test_partitions import cuts, fitted, in_memory, released

from sklearn_dp._aggregate.one_cluster import center, search
from sklearn_dp._aggregate.shared.samples import ByPart, Coins
from sklearn_dp._aggregate.shared.table import CellCounts, LocalEngine
from sklearn_dp._aggregate.shared.table_units import GroupSizes
from sklearn_dp._published.separated_gaussians import terrific_points
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
    monkeypatch.setattr(terrific_points, "_SAMPLE", 60)
    monkeypatch.setattr(search, "_LEAST_SAMPLE", 40)
    monkeypatch.setattr(search, "_SAMPLED_CLUSTER", 1)
    monkeypatch.setattr(center, "MOST_COUNTED", 60)
    monkeypatch.setattr(center, "_CLEAR", 1)
    for groups in (None, ACROSS):
        known = released(in_memory(SETTINGS[name], X, groups=groups))
        found, _ = fitted(SETTINGS[name], X, cuts(7, N), groups, engine=LocalEngine)
        assert released(found) == known and tossed


@pytest.mark.parametrize("name", ["joint balls", "spherical", "tuples"])
def test_no_value_of_a_row_travels(name):
    """But for points that are compared, as in a search for a ball alone ("spherical")."""
    places = np.split(np.arange(N), [101, 173])
    sizes = {len(place) for place in places}
    _, engine = fitted(SETTINGS[name], X, places)
    gathered = 0
    for value in (value for sums in engine.sent for value in sums):
        if isinstance(value, ByPart):
            (held,) = value.values.values()
            gathered += 0 if isinstance(held, int) else len(held)
        elif isinstance(value, CellCounts):
            assert value.counts.sum() <= max(sizes)
        else:
            assert not sizes & set(np.shape(value))
    assert (gathered > 0) == (name == "spherical")
    assert all(np.shape(result)[1:] == (3, 4) for result in engine.exchanged)
    assert bool(engine.exchanged) == (name == "tuples")


def test_of_groups_ids_and_sizes_travel():
    _, engine = fitted(SETTINGS["joint balls"], X, cuts(3, N), ACROSS)
    held = [
        value.values[part]
        for value in (value for sums in engine.sent for value in sums)
        if isinstance(value, ByPart)
        for part in value.values
    ]
    assert any(isinstance(each, tuple) for each in held)
    for ids, counts in (each for each in held if isinstance(each, tuple)):
        assert len(ids) == len(counts) and set(ids) <= set(range(100))
    assert any(isinstance(value, GroupSizes) for sums in engine.sent for value in sums)


def test_weights_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e4, delta=1e-4))
    parts, weights = np.array_split(X, 3), np.array_split(np.ones(N), 3)
    for way in ("joint balls", "tuples"):
        asked = model(way, ledger=ledger)
        for fit in (asked.fit, asked.fit_partitions):
            with pytest.raises(ValueError, match="^sample_weight: only method='coreset'"):
                fit(parts, sample_weight=weights)
    assert ledger.remaining["epsilon"] == 1e4
