"""The replay audit accepts a correct estimator, and is tight: mutants say what it sees."""

import pytest

from sklearn_dp.audit import replay_audit


@pytest.fixture(params=[{}, {"bounds": 1.5}, {"bounds": (-1, [1, 2, 3])}, {"rho": 0.3}], ids=str)
def correct(request, make_toy):
    return make_toy(**request.param)


def test_a_correct_estimator_passes_and_its_claims_are_tight(correct, points):
    result = replay_audit(correct, points) + replay_audit(correct, points, random_state=1)
    assert result.passed and result.n_pairs == 24 and result.n_voided == 0
    assert all(0.99 < ratio <= 1 + 1e-12 for ratio in result.ratios.values())
    assert 0.9 * sum(result.loss.values()) < result.worst_loss <= result.rho
