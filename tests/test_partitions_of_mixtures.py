"""Mixtures of tables in parts, every way through a fit: the bits of one array, and audits.

Halves, blocks and rows that stand for groups are drawn by numbers of units; balls are of counts.
"""

import numpy as np
import pytest
from mixture_tools import FORMS, WAYS, audit_data
from sklearn.base import clone
from test_partitions import (
    Elsewhere,
    LeftOut,
    Twice,
    audit,
    cuts,
    fitted,
    in_memory,
    neighbors,
    released,
    violations,
)

from sklearn_dp._aggregate.one_cluster import center, search
from sklearn_dp._aggregate.shared.table import CellCounts, LocalEngine
from sklearn_dp._published import halves
from sklearn_dp._published.separated_gaussians import terrific_points
from sklearn_dp._queries.samples import ByPart, Coins, UnitNumbers
from sklearn_dp._rows.table_units import GroupSizes
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


@pytest.mark.quick("joint balls", "spherical", "tied balls", "diag tuples", "tuples in a box")
@pytest.mark.parametrize("name", SETTINGS)
def test_parts_have_the_bits_of_one_array(name):
    expected = in_memory(SETTINGS[name], X)
    way = WAYS.get(name)
    assert way is None or way[1] in (None, expected.path_)
    found, _ = fitted(SETTINGS[name], X, cuts(7, N))
    assert released(found) == released(expected)
    found, _ = fitted(SETTINGS[name], X, cuts(2, N), engine=LocalEngine)
    assert released(found) == released(expected)


@pytest.mark.quick("published balls-WITHIN", "spherical-ACROSS", "tuples-ACROSS")
@pytest.mark.parametrize("groups", [ACROSS, WITHIN], ids=["ACROSS", "WITHIN"])
@pytest.mark.parametrize("name", SETTINGS)
def test_groups_may_be_anywhere(name, groups):
    narrow = X.astype(np.float32)
    known = released(in_memory(SETTINGS[name], narrow, groups=groups))
    found, _ = fitted(SETTINGS[name], narrow, cuts(7, N), groups, engine=LocalEngine)
    assert released(found) == known


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_any_parts_have_the_bits_of_one_array(name):
    for dtype in (np.float64, np.float32):
        for groups in (None, ACROSS, WITHIN):
            rows = X.astype(dtype)
            known = released(in_memory(SETTINGS[name], rows, groups=groups))
            for n_parts in (1, 2, 7, 50):
                found, _ = fitted(
                    SETTINGS[name], rows, cuts(n_parts, N), groups, engine=LocalEngine
                )
                assert released(found) == known
            threads = clone(SETTINGS[name]).set_params(n_jobs=3)
            assert released(in_memory(threads, rows, groups=groups)) == known


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


# --- audits ---------------------------------------------------------------------------------------

AUDITED = ("joint balls", "no balls", "published balls", "spherical", "tuples", "noisy centers")


@pytest.mark.quick("joint balls", "spherical", "tuples")
@pytest.mark.parametrize("name", AUDITED)
def test_replay_audit_of_parts(name):
    for pair in neighbors(X[:200], 0):
        assert not violations(SETTINGS[name], *pair, engine=LocalEngine)


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_replay_audit_of_many_parts(name):
    """501 pairs of each."""
    audit(SETTINGS[name], (neighbors(X[: 130 + seed], seed) for seed in range(167)), proven=490)


def left(groups, places, gone):
    """Places without those of a group: other groups have other numbers, and other draws."""
    return [place[groups[place] != gone] for place in places]


@pytest.mark.quick("joint balls", "tuples")
@pytest.mark.parametrize("name", ["joint balls", "published balls", "spherical", "tuples"])
def test_replay_audit_of_groups_that_are_spread(name):
    groups, places = np.arange(N) % 75, np.split(np.arange(N), [50, 50, 170])
    fewer = left(groups, places, 5)
    for one, other in ((places, fewer), (fewer, places)):
        pair = (X, X, one, other, (groups, groups))
        assert violations(SETTINGS[name], *pair, engine=LocalEngine) == []


@pytest.mark.parametrize("name", ["joint balls", "tuples"])
def test_a_part_that_counts_twice_or_not_at_all_is_caught(name):
    alone = [np.arange(N - 1), np.array([N - 1])]
    empty = [alone[0], alone[1][:0]]
    with pytest.raises(ValueError, match=r"^a part counts once\.$"):
        violations(SETTINGS[name], X, X, alone, empty, engine=Twice)
    if name == "tuples":  # its units have no numbers
        with pytest.raises(KeyError):
            fitted(SETTINGS[name], X, cuts(7, N), engine=LeftOut)
    else:
        known = released(in_memory(SETTINGS[name], X))
        assert released(fitted(SETTINGS[name], X, cuts(7, N), engine=LeftOut)[0]) != known


class Brought(Elsewhere):
    """Pieces of a part come twice to a task, or not at all."""

    twice = True

    def brought(self, held):
        return [*held, held[1]] if self.twice else held[1:]


class NotBrought(Brought):
    twice = False


@pytest.mark.parametrize("engine", [Brought, NotBrought])
def test_pieces_that_count_twice_or_not_at_all_are_caught(engine):
    known = released(in_memory(SETTINGS["tuples"], X))
    assert released(fitted(SETTINGS["tuples"], X, cuts(7, N), engine=engine)[0]) != known


def halves_by_part(monkeypatch):
    """Coins by the position in a part."""
    own = UnitNumbers.draws_of

    def draws_of(self, part, draws):
        return own(UnitNumbers(self.size, self.totals, dict.fromkeys(self.starts, 0)), part, draws)

    monkeypatch.setattr(UnitNumbers, "draws_of", draws_of)


def a_row_for_each_part(monkeypatch):
    """A group that is in several parts has a row in each."""
    own = halves._drawn_rows

    def drawn_rows(members, draws, size):
        drawn = own(members, draws, size)
        return {
            part: (ids, np.zeros(len(ids), dtype=np.int64))
            for part, (ids, _) in members.values.items()
            if part in drawn
        }

    monkeypatch.setattr(halves, "_drawn_rows", drawn_rows)


def test_halves_by_position_in_a_part_have_other_bits(monkeypatch):
    known = released(in_memory(SETTINGS["tuples"], X))
    halves_by_part(monkeypatch)
    assert released(fitted(SETTINGS["tuples"], X, cuts(7, N), engine=LocalEngine)[0]) != known


def test_a_group_with_several_rows_is_caught(monkeypatch):
    groups, places = np.arange(N) % 75, np.array_split(np.arange(N), 4)
    a_row_for_each_part(monkeypatch)
    pair = (X, X, places, left(groups, places, 5), (groups, groups))
    assert violations(SETTINGS["joint balls"], *pair, engine=LocalEngine)
