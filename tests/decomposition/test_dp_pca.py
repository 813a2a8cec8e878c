"""DPPCA, and the location that it starts from."""

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.decomposition import DPPCA
from sklearn_dp.ledger import PrivacyLedger


@pytest.mark.parametrize("d", [1, 2, 10])
def test_noise_alone_is_not_called_a_direction(d):
    """The largest eigenvalue of noise is above its level in one of ten fits or so, else."""
    X = np.zeros((40, d))
    found = [DPPCA(1, bounds=1.0, random_state=seed).fit(X) for seed in range(40)]
    assert sum(model.trustworthy_ for model in found) <= 1


def test_auto_keeps_what_stands_out_of_the_noise():
    X = np.random.default_rng(0).normal(size=(20_000, 8)) * [9, 7, 5, 0.01, 0.01, 0.01, 0.01, 0.01]
    model = DPPCA("auto", bounds=30.0, random_state=0).fit(X)
    whole = DPPCA(bounds=30.0, random_state=0).fit(X)
    assert model.n_components_ == 3 == (whole.explained_variance_ > whole.noise_level_).sum()
    assert np.array_equal(model.components_, whole.components_[:3])
    assert model.transform(X[:5]).shape == (5, 3)
    # Where nothing stands out there is one component all the same, and the status says so.
    few = DPPCA("auto", bounds=30.0, random_state=0).fit(X[:20])
    assert few.n_components_ == 1 and few.status_ != "ok"
    for pair, kept in (((1, 2), 2), ([4, 6], 4), ((2, 5), 3)):
        limited = DPPCA(pair, bounds=30.0, random_state=0).fit(X)
        assert limited.n_components_ == kept
        assert np.array_equal(limited.components_, whole.components_[:kept])


@pytest.mark.parametrize(
    "n_components", ["mle", "most", (3, 2), (0, 2), (1, 9), (1, 2, 3), (1.0, 2)]
)
def test_wrong_numbers_of_components_are_named_before_the_charge(n_components):
    X, ledger = np.zeros((20, 8)), PrivacyLedger(PrivacyBudget(epsilon=5.0, delta=1e-5))
    with pytest.raises((TypeError, ValueError), match="n_components"):
        DPPCA(n_components, ledger=ledger).fit(X)
    assert ledger.entries == ()
