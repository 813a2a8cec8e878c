"""What all clusterers with released centers do after a fit."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dp import (
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    FederatedDPKMeans,
    PrivacyLedger,
)
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.exceptions import BudgetExceededError, LedgerError


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, 0.0], [0.1, 0.5], [0.6, -0.3], [0.0, -0.6]])
    labels = rng.choice(4, size=8000, p=[0.4, 0.3, 0.2, 0.1])
    return centers[labels] + 0.05 * rng.normal(size=(8000, 2)), labels


WITH_LABELS = {
    "kmeans": DPKMeans(2),
    "cosine": DPKMeans(2, metric="cosine"),
    "tuples": DPKTupleKMeans(2, n_tuples=8),
    "balls": DPOneClusterKMeans(2),
    "federated": FederatedDPKMeans(2),
}


@pytest.mark.parametrize(
    "way",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)),
     lambda model: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model)))),
     lambda model: pickle.loads(pickle.dumps(make_pipeline(model)))[0]],
    ids=["copy", "deepcopy", "pickle", "of a pickle", "in a pipeline"],
)  # fmt: skip
@pytest.mark.parametrize("name", WITH_LABELS)
def test_a_model_without_labels_says_why(name, way, blobs):
    fitted = clone(WITH_LABELS[name]).set_params(random_state=0)
    with pytest.raises(AttributeError, match="object has no attribute 'labels_'"):
        _ = fitted.labels_
    other = way(fitted.fit(blobs[0][:600]))
    assert not hasattr(other, "labels_") and getattr(other, "labels_", None) is None
    with pytest.raises(AttributeError, match="not released.*pickles and copies.*predict"):
        _ = other.labels_
    with pytest.raises(AttributeError, match="object has no attribute 'levels_'"):
        _ = other.levels_
    other.fit(blobs[0][:600])
    assert len(other.labels_) == 600


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


@pytest.mark.parametrize("cap", [5e-324, 1e-300, 1e-156, 1e-140, 1e140, 1e155, 1.7e308, 10**400])
def test_a_cap_whose_square_is_no_number_is_refused_before_it_is_paid_for(cap, blobs):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5))
    fitted = DPKMeans(2, bounds=1.0, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match="max_distance must be greater than"):
        fitted.private_score(blobs[0], max_distance=cap, ledger=ledger)
    assert not ledger.entries
