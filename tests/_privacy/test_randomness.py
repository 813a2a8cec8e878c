"""Randomness that is no noise: seeds, blocks, and its independence of the noise."""

import numpy as np
import pytest
from kernel_tools import open_session
from scipy import stats

from sklearn_dp._costs.plan import PlanError
from sklearn_dp._privacy.mechanisms.stability import addressed_draws, blocks_of_draws, unit_draws


@pytest.mark.parametrize(
    "random_state, error", [(-1, ValueError), ("a", TypeError), (True, TypeError), (1.5, TypeError)]
)
def test_bad_random_state(random_state, error):
    with pytest.raises(error, match="random_state"):
        open_session(random_state=random_state)


def test_draws_by_number_are_those_of_all_units():
    session = open_session()
    known, draws = unit_draws(session, 9000, "a"), addressed_draws(session, 9000, "a")
    for first, size in ((0, 9000), (4095, 3), (4096, 10), (8999, 1), (5, 0)):
        assert np.array_equal(draws.take(first, size), known[first : first + size])
    assert not np.array_equal(addressed_draws(session, 9000).take(0, 9), known[:9])
    assert draws.known is None


def test_blocks_are_uniform_and_stay_when_a_unit_is_added():
    """Chi-square over 7 blocks; false alarm 1e-6."""
    session = open_session()
    blocks = blocks_of_draws(unit_draws(session, 70_000), 7)
    counts = np.bincount(blocks, minlength=7)
    assert len(counts) == 7 and stats.chisquare(counts).pvalue > 1e-6
    assert np.array_equal(blocks_of_draws(unit_draws(session, 70_001), 7)[:-1], blocks)


@pytest.mark.parametrize("n_blocks", [0, 2**32 + 1])
def test_numbers_of_blocks_that_words_cannot_tell_apart_are_refused(n_blocks):
    with pytest.raises(PlanError, match="blocks"):
        blocks_of_draws(unit_draws(open_session(), 10), n_blocks)
