"""DPKMeans as a drop-in for KMeans."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKMeans, PrivacyLedger
from sklearn_dp._costs.budget import PrivacyBudget


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, 0.0], [0.1, 0.5], [0.6, -0.3], [0.0, -0.6]])
    labels = rng.choice(4, size=8000, p=[0.4, 0.3, 0.2, 0.1])
    return centers[labels] + 0.05 * rng.normal(size=(8000, 2)), labels


def test_one_person_with_many_rows_moves_a_group_fit_little(blobs):
    """Weights of a group sum to one: 4,000 copies of a far row weigh as much as one."""
    X, labels = blobs
    X = np.vstack([X, np.full((4000, 2), 0.7)])
    groups = np.append(np.arange(8000), np.full(4000, -1))
    fitted = DPKMeans(4, bounds=1.0, random_state=0).fit(X, groups=groups)
    assert adjusted_rand_score(labels, fitted.labels_[:8000]) > 0.99
    assert fitted.privacy_report_.unit == "group"
    assert fitted.cluster_weights_.sum() == pytest.approx(8001, rel=0.05)
    by_row = DPKMeans(4, bounds=1.0, random_state=0).fit(X)
    assert by_row.cluster_weights_.sum() == pytest.approx(12000, rel=0.05)


def test_callbacks_see_the_steps():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9")
    seen = []

    class Watch:
        def setup(self, estimator, context):
            seen.append("setup")

        def teardown(self, estimator, context):
            seen.append("teardown")

        def on_fit_task_begin(self, estimator, context, **data):
            assert not data or all(value is None for value in data.values())

        def on_fit_task_end(self, estimator, context, **data):
            seen.append(context.task_name)

    assert isinstance(Watch(), callback.FitCallback)
    X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    DPKMeans(3, random_state=0).set_callbacks(Watch()).fit(X)
    assert seen[0] == "setup" and seen[-1] == "teardown" and len(seen) >= 5


# -- the number of clusters ------------------------------------------------------------------------


def test_the_number_of_clusters_is_found(blobs):
    X, labels = blobs
    model = DPKMeans("auto", bounds=1.0, random_state=0).fit(X)
    given = DPKMeans(4, bounds=1.0, random_state=0).fit(X)
    assert model.n_clusters_ == given.n_clusters_ == 4 and model.status_ == "ok"
    assert model.score(X) >= 1.01 * given.score(X)
    assert max(model.n_clusters_criterion_, key=model.n_clusters_criterion_.get) == 4
    assert not hasattr(given, "n_clusters_criterion_")
    assert model.cluster_centers_std_error_.shape == model.cluster_centers_.shape == (4, 2)
    assert model.to_sklearn().n_clusters == 4
    assert pickle.loads(pickle.dumps(model)).n_clusters_criterion_ == model.n_clusters_criterion_
    assert clone(model).n_clusters == "auto"


@pytest.mark.parametrize(
    "value, error",
    [
        ("best", ValueError),
        ((3, 2), ValueError),
        ((0, 2), ValueError),
        ((1, 201), ValueError),
        ((1, 2, 3), ValueError),
        ((1.0, 2), ValueError),
        ((True, 2), ValueError),
        (None, TypeError),
        (2.0, TypeError),
    ],
)
def test_a_wrong_number_is_refused_before_the_charge(value, error):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    with pytest.raises(error, match="n_clusters"):
        DPKMeans(value, ledger=ledger).fit(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="criterion"):
        DPKMeans("auto", criterion="aic", ledger=ledger).fit(np.zeros((5, 2)))
    assert not ledger.entries


# -- given centers ---------------------------------------------------------------------------------


def test_given_centers_save_the_budget_of_the_search(blobs):
    """300 rows in five clusters: noise hides the start, and given centers need none."""
    rng = np.random.default_rng(4)
    centers = rng.uniform(-1, 1, size=(5, 4))
    costs = []
    for seed in range(12):
        X = centers[rng.integers(5, size=300)] + rng.normal(scale=0.12, size=(300, 4))
        best = KMeans(5, n_init=3, random_state=0).fit(X).inertia_
        shared = {"bounds": 2.5, "random_state": seed}
        near = centers + rng.normal(scale=0.15, size=centers.shape)
        fits = [DPKMeans(5, init=init, **shared).fit(X) for init in (None, near)]
        costs.append([-model.score(X) / best for model in fits])
    found, given = np.median(costs, axis=0)
    assert given < 1.6 < 1.8 < found


@pytest.mark.parametrize(
    "init", ["k-means++", [[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0], [np.nan, 1.0]], 3.0, [["a"]]]
)
def test_wrong_centers_are_refused_before_the_charge(init):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    with pytest.raises(ValueError, match="init") as told:
        DPKMeans(2, init=init, ledger=ledger).fit(np.zeros((5, 2)))
    assert "rows" not in str(told.value)  # advice about those of X
    assert not ledger.entries
