"""What the audit knows of friendly-core filters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.audit.mechanisms.filters import kept


def scores(values, keep=None, **public):
    keep = np.ones(len(values), dtype=bool) if keep is None else np.array(keep)
    public = {"bad": 0, "most": 100, "fixed": False, "threshold": 5.0, **public}
    return Event("filter", "a", np.array(values), 1.0, 2.0, 0.5, public, keep)


def replayed(known, present, units, **options):
    player = Replay([known], np.array(units), **options)
    return player, player.record(present).tolist()


def test_units_keep_their_fate_and_scores_have_to_be_close():
    known = scores([10, 20, 3], [True, True, False])
    player, keep = replayed(known, scores([11, 19]), [0, 2])
    assert keep == [True, False] and player.ratios == {"a": 16.0}
    player, keep = replayed(known, scores([11, 19, 2]), [0, 1, 2])
    assert player.ratios == {"a": 1.0} and player.violations == []
    assert player.loss == {"a": pytest.approx(3 * (1 / 2) ** 2 / 2)}


def test_an_added_unit_stays_if_the_audit_wants_it_and_it_is_not_bad():
    known = scores([10])
    for wanted, score, expected in ((True, 9, True), (False, 9, False), (True, 0, False)):
        _, keep = replayed(known, scores([11, score]), [0, -1], keep_added=wanted)
        assert keep == [True, expected]


def test_elements_of_a_sample_are_found_by_the_numbers_of_their_units():
    """Units 3, 5 and 8 of the recording; the neighbor lacks unit 4, and 5 is not in its sample."""
    known = replace(scores([10, 20, 3], [True, False, True]), units=np.array([3, 5, 8]))
    units = [0, 1, 2, 3, 5, 6, 7, 8, -1]
    present = replace(scores([11, 9, 4]), units=np.array([3, 8, 7]))
    player, keep = replayed(known, present, units, keep_added=False)
    assert keep == [True, False, True] and player.ratios == {"a": 1.0}
    far = replace(scores([11, 4]), units=np.array([3, 4]))  # unit 5, whose score was 20
    assert replayed(known, far, units)[0].ratios == {"a": 16.0}


def test_a_bad_unit_that_survives_voids_the_pair():
    """Bad means a score of at most 0 in both data sets."""
    assert replayed(scores([0]), scores([0]), [0])[0].voided == ["a"]
    assert replayed(scores([0]), scores([1]), [0])[0].voided == []
    assert replayed(scores([0], [False]), scores([0]), [0])[0].voided == []
    assert replayed(scores([10, 0]), scores([10]), [0])[0].voided == ["a"]  # it is gone


def test_more_units_than_the_noise_is_for_void_the_pair():
    player, _ = replayed(scores([10, 10]), scores([10, 15], most=1), [0, 1])
    # The public facts differ as well here, which is told; the scores are not compared.
    assert player.voided == ["a"] and player.ratios == {}


def test_one_result_of_a_fixed_number_may_be_anything():
    known = scores([10, 10, 10], fixed=True)
    player, keep = replayed(known, scores([11, -50, 9], fixed=True), [0, 1, 2])
    assert player.ratios == {"a": 1.0} and keep == [True, False, True] and not player.voided
    player, _ = replayed(known, scores([11, 50, 12], fixed=True), [0, 1, 2])
    assert player.ratios == {"a": 2.0} and player.violations
    player, _ = replayed(known, scores([-5, -5, 10], fixed=True), [0, 1, 2])
    assert player.voided == ["a"]
    assert "shape differs" in replayed(known, scores([10], fixed=True), [0])[0].violations[0]


def chances(values, keep):
    return Event("bernoulli", "a", np.array(values), 0.5, None, 1.0, {}, np.array(keep))


def test_chances_are_compared_in_l1_with_the_unit_that_comes():
    known = chances([0.9, 0.5], [True, False])
    player, keep = replayed(known, chances([0.8, 0.6, 0.3], [True] * 3), [0, 1, -1])
    assert player.ratios == {"a": pytest.approx(1.0)} and keep == [True, False, True]
    player, _ = replayed(known, chances([0.9, 0.6], [True] * 2), [0, -1])
    assert player.ratios == {"a": pytest.approx(2.2)} and player.violations  # 0.6 came, 0.5 went
    assert replayed(known, chances([0.0, 0.5], [True] * 2), [0, 1])[0].voided == ["a"]


def test_decisions_are_uniform_above_the_middle():
    low, high = kept(np.array([0.9, 0.9, 0.2, 0.2]), np.array([True, False, False, True]))
    assert np.allclose(low, [0.5, 0.95, 0.5, 0.9]) and np.allclose(high, [0.95, 1, 0.9, 1])
    assert all(len(end) == 0 for end in kept(np.zeros(0), np.zeros(0, dtype=bool)))


def test_a_score_is_kept_where_noise_takes_it_to_the_threshold():
    """4 + round(2 Z) reaches 5 where 2 Z > 1/2."""
    each = scores([4], [True])
    chance = 1 - ndtr(0.25)
    low, high = law_of(each).numbers(each)
    assert np.allclose([low[0], high[0]], [(1 + 1 - chance) / 2, 1])
