"""What the audit knows of noise that clients add in shares."""

import numpy as np
from scipy.special import ndtr

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of


def share(output, public=None):
    return Event("share", "a", np.zeros(2, dtype=int), 1.0, 4.0, 0.5, public or {}, output)


def test_the_recorded_share_is_forced_on_the_client():
    player = Replay([share(np.array([3, -1]))], np.arange(1))
    assert player.record(share(np.array([8, 8]))).tolist() == [3, -1]
    assert player.violations == [] and player.ratios == {}  # it is no release
    assert player.take_shares("a").tolist() == [3, -1]


def test_a_share_costs_nothing_and_has_the_law_that_it_says():
    event = share(np.array([0, 4]))
    law = law_of(event)
    assert law.rho is None and law.delta(event) == 0 and list(law.claims(event)) == []
    low, high = law.numbers(event)
    assert np.allclose(low, ndtr([-1 / 8, 7 / 8])) and np.allclose(high, ndtr([1 / 8, 9 / 8]))
