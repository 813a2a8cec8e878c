"""What the audit knows of friendly-core filters."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay


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


def chances(values, keep):
    return Event("bernoulli", "a", np.array(values), 0.5, None, 1.0, {}, np.array(keep))


def test_chances_are_compared_in_l1_with_the_unit_that_comes():
    known = chances([0.9, 0.5], [True, False])
    player, keep = replayed(known, chances([0.8, 0.6, 0.3], [True] * 3), [0, 1, -1])
    assert player.ratios == {"a": pytest.approx(1.0)} and keep == [True, False, True]
    player, _ = replayed(known, chances([0.9, 0.6], [True] * 2), [0, -1])
    assert player.ratios == {"a": pytest.approx(2.2)} and player.violations  # 0.6 came, 0.5 went
    assert replayed(known, chances([0.0, 0.5], [True] * 2), [0, 1])[0].voided == ["a"]
