"""What all clusterers with released centers do after a fit."""

import pickle

import numpy as np
import pytest

from sklearn_dp import DPKMeans, PrivacyLedger
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp.exceptions import BudgetExceededError, LedgerError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, 0.0], [0.1, 0.5], [0.6, -0.3], [0.0, -0.6]])
    labels = rng.choice(4, size=8000, p=[0.4, 0.3, 0.2, 0.1])
    return centers[labels] + 0.05 * rng.normal(size=(8000, 2)), labels


def test_clusters_are_ordered_by_released_weight(blobs):
    X, labels = blobs
    fitted = DPKMeans(4, bounds=1.0, random_state=1).fit(X)
    assert (np.diff(fitted.cluster_weights_) <= 0).all()
    sizes = np.bincount(fitted.labels_, minlength=4)
    assert np.abs(fitted.cluster_weights_ - sizes).max() < 150
    assert not np.array_equal(fitted.cluster_weights_, sizes)


def test_labels_stay_in_memory(blobs):
    fitted = DPKMeans(4, bounds=1.0, random_state=0).fit(blobs[0])
    copy = pickle.loads(pickle.dumps(fitted))
    assert hasattr(fitted, "labels_") and not hasattr(copy, "labels_")
    assert np.array_equal(copy.predict(blobs[0]), fitted.labels_)
    assert len(pickle.dumps(fitted)) < 10_000


def test_private_score_is_near_the_score_and_is_charged(blobs):
    X, labels = blobs
    fitted = DPKMeans(4, bounds=1.0, random_state=0).fit(X)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    noisy = fitted.private_score(X, epsilon=0.9, ledger=ledger)
    # One unit counts at most radius^2 <= 1; the noise is 4.7 standard deviations wide per unit.
    assert noisy != fitted.score(X) and noisy == pytest.approx(fitted.score(X), abs=30)
    with pytest.raises(BudgetExceededError):
        fitted.private_score(X, epsilon=0.9, ledger=ledger)
    # Two groups weigh two units, not 8,000; the noise has a standard deviation of 4e-4.
    grouped = fitted.private_score(X, epsilon=1e6, groups=np.arange(8000) % 2)
    assert grouped == pytest.approx(2 * fitted.score(X) / 8000, rel=0.5)


@pytest.mark.parametrize("as_file", [True, False])
def test_private_score_charges_the_ledger_of_the_estimator_unless_told_otherwise(tmp_path, as_file):
    budget, path = PrivacyBudget(epsilon=1.0, delta=1e-5), str(tmp_path / "ledger")
    own = PrivacyLedger(budget, path if as_file else None)
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    fitted = DPKMeans(2, epsilon=0.5, bounds=1.5, ledger=path if as_file else own).fit(X)
    fitted.private_score(X, epsilon=0.25)
    assert [charge.label for charge in own.entries] == ["DPKMeans", "DPKMeans.private_score"]
    other = PrivacyLedger(budget)
    fitted.private_score(X, epsilon=0.5, ledger=other)
    fitted.private_score(X, epsilon=0.5, ledger=False)
    assert own.spent["epsilon"] == pytest.approx(0.75) == other.spent["epsilon"] + 0.25
    with pytest.raises(BudgetExceededError):
        fitted.private_score(X, epsilon=0.5)
    with pytest.raises(LedgerError, match="unit='group'"):
        fitted.private_score(X, epsilon=0.1, groups=np.arange(300))
    assert len(own.entries) == 2


def test_private_score_is_exact_but_for_noise():
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    fitted = DPKMeans(5, bounds=1.5, random_state=0).fit(X)
    assert fitted.private_score(X, epsilon=1e6, max_distance=3.0) == pytest.approx(
        fitted.score(X), rel=1e-4
    )
    far = np.vstack([X, [[1e9, 0.0]]])
    assert fitted.private_score(far, epsilon=1e6, max_distance=3.0) == pytest.approx(
        fitted.score(X) - 9.0, rel=1e-4
    )
    with pytest.raises(ValueError, match="max_distance"):
        fitted.private_score(X, max_distance=0.0)
