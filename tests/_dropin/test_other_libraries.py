"""Private estimators in the hands of scikit-learn's own compositions and of other libraries.

Those that scikit-learn does not need are in the extra `interop`; their tests are skipped where they
are not installed.
"""

import io
import pickle

import joblib
import numpy as np
import pytest
from estimators import all_estimators
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    FriendlyCovariance,
    FriendlyMean,
    SampleAndAggregate,
)
from sklearn_dp.accounting import deployment_entry
from sklearn_dp.exceptions import LedgerError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning", "ignore:.*elbow:UserWarning"
    ),
]
RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(500, 2)) + place for place in ((0, 0), (9, 0), (0, 9))])
Y = (X[:, 0] > 4).astype(int)
NO_TWIN = {
    "DPBySegment": "its `estimators_` have twins",
    "DPCoreset": "weighted points are what scikit-learn's estimators are fitted to",
    "DPDBSCAN": "scikit-learn's keeps rows, and answers for no others",
    "DPOneCluster": "scikit-learn has no estimator of a ball",
    "DPOneHotEncoder": "a column may have numbers and texts: scikit-learn refuses those",
    "DPQuantiles": "scikit-learn has no estimator of quantiles alone",
    "DPOutlierScreen": "scikit-learn has no estimator of a ball",
    "DPTopics": "its `estimator_` has a twin",
}


def private_classifier(n_classes=2, **options):
    """The one that is private: blocks of a public classifier, aggregated."""
    return SampleAndAggregate(
        LogisticRegression(), output=("coef_", "intercept_"), classes=list(range(n_classes)),
        output_bounds=20.0, n_blocks=20, epsilon=50.0, random_state=0, **options,
    )  # fmt: skip


MODELS = [
    DPKMeans(3, epsilon=5.0, random_state=0),
    DPKTupleKMeans(3, epsilon=5.0, random_state=0),
    DPGaussianMixture(3, epsilon=5.0, random_state=0),
    DPPCA(2, epsilon=5.0, random_state=0),
    FriendlyMean(epsilon=5.0, random_state=0),
    FriendlyCovariance(epsilon=5.0, random_state=0),
    private_classifier(),
]
NAMES = [type(model).__name__ for model in MODELS]


@pytest.fixture(scope="module")
def fitted():
    return {type(model).__name__: clone(model).fit(X, Y) for model in MODELS}


def answer(model):
    """What it says about rows."""
    method = "predict" if hasattr(model, "predict") else "transform"
    return getattr(model, method)(X) if hasattr(model, method) else model.mahalanobis(X)


# -- compositions of scikit-learn ------------------------------------------------------------------


class InductiveClusterer(BaseEstimator):
    """A classifier that learns the labels of a clusterer."""

    def __init__(self, clusterer, classifier):
        self.clusterer = clusterer
        self.classifier = classifier

    def fit(self, X, y=None):
        self.clusterer_ = clone(self.clusterer)
        labels = self.clusterer_.fit_predict(X)
        self.classifier_ = clone(self.classifier).fit(X, labels)
        return self

    def predict(self, X):
        return self.classifier_.predict(X)


@pytest.mark.parametrize("clusterer", MODELS[:3], ids=NAMES[:3])
def test_a_classifier_learns_the_labels_of_a_private_clusterer(clusterer):
    model = InductiveClusterer(clusterer, private_classifier(3)).fit(X)
    assert np.mean(model.predict(X) == model.clusterer_.predict(X)) > 0.95


def test_self_training_is_charged_for_each_fit_and_calibration_works():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=500.0, delta=1e-3))
    known = np.where(np.arange(len(Y)) % 2 == 0, Y, -1)
    inner = private_classifier(ledger=ledger)
    model = SelfTrainingClassifier(inner, max_iter=3).fit(X, known)
    assert np.mean(model.predict(X) == Y) > 0.9
    assert 1 < len(ledger.entries) <= 4
    calibrated = CalibratedClassifierCV(private_classifier(), cv=2).fit(X, Y)
    assert np.mean(calibrated.predict(X) == Y) > 0.7


def test_a_cached_step_is_the_same_release_and_charged_once(tmp_path):
    """The cache holds transformed rows: the page says so, and `privatize` drops it."""
    path = tmp_path / "ledger.sqlite"
    PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3), path)
    steps = [("p", DPPCA(2, ledger=str(path))), ("k", DPKMeans(3, ledger=str(path)))]
    pipeline = Pipeline(steps, memory=str(tmp_path / "cache"))
    first = pipeline.fit(X).named_steps["p"].components_
    again = pipeline.fit(X).named_steps["p"].components_
    assert np.array_equal(first, again)
    labels = [charge.label for charge in PrivacyLedger(path=path).entries]
    assert labels == ["DPPCA", "DPKMeans", "DPKMeans"]  # the last step is not cached
    stored = [joblib.load(file)[1] for file in (tmp_path / "cache").rglob("output.pkl")]
    assert [type(step) for step in stored] == [DPPCA]
    pipeline.fit(X[1:])
    assert len(PrivacyLedger(path=path).entries) == 5  # other rows, another release


def test_a_cache_charges_a_ledger_in_memory_once_for_the_same_rows(tmp_path):
    """As it does one in a file; what the cache holds has no ledger."""
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3))
    pipeline = Pipeline([("p", DPPCA(2, ledger=ledger)), ("k", DPKMeans(3))], memory=str(tmp_path))
    for _ in range(2):
        pipeline.fit(X)
    assert len(ledger.entries) == 1
    with pytest.raises(LedgerError, match="path of a ledger file"):
        pipeline[0].fit(X)


# -- leaving the process ---------------------------------------------------------------------------


def test_every_estimator_has_a_twin_or_a_reason_for_none():
    without = {name for name, cls in all_estimators() if not hasattr(cls, "to_sklearn")}
    assert without == NO_TWIN.keys()


@pytest.mark.parametrize("name", NAMES)
def test_pickles_of_joblib_hold_releases_only(fitted, name):
    model = fitted[name]
    for back in (joblib_copy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(answer(back), answer(model)) and not hasattr(back, "labels_")
        assert str(back.privacy_report_) == str(model.privacy_report_)


def joblib_copy(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.mark.parametrize("name", NAMES)
def test_skops_trusts_two_types_of_ours(fitted, name):
    sio = pytest.importorskip("skops.io")
    model = fitted[name]
    stored = sio.dumps(model)
    unknown = sio.get_untrusted_types(data=stored)
    assert all(text.startswith("sklearn_dp.") for text in unknown) and len(unknown) <= 3
    back = sio.loads(stored, trusted=unknown)
    assert np.array_equal(answer(back), answer(model)) and not hasattr(back, "labels_")
    twin = sio.dumps(model.to_sklearn())
    assert sio.get_untrusted_types(data=twin) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "FriendlyCovariance"])
def test_onnx_by_the_twin(fitted, name):
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    rows = X.astype(np.float32)
    twin = fitted[name].to_sklearn()
    exported = skl2onnx.to_onnx(twin, rows[:1])
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    told = np.asarray(session.run(None, {session.get_inputs()[0].name: rows})[0])
    expected = answer(twin)
    assert np.mean(np.isclose(told.reshape(expected.shape), expected, atol=1e-3)) > 0.99


def test_a_sacro_target_is_saved_loaded_and_attacked(fitted, tmp_path):
    """It writes parameters into YAML that only plain values come back from: a twin has no other."""
    targets = pytest.importorskip("sacroml.attacks.target")
    from sacroml.attacks.worst_case_attack import WorstCaseAttack

    model, half = fitted["SampleAndAggregate"], len(X) // 2
    order = np.random.default_rng(2).permutation(len(X))
    members, others = order[:half], order[half:]
    target = targets.Target(
        model=model.to_sklearn(), dataset_name="places",
        X_train=X[members], y_train=Y[members], X_test=X[others], y_test=Y[others],
    )  # fmt: skip
    target.add_safemodel_results([deployment_entry(model.privacy_report_)])
    target.save(str(tmp_path / "target"))
    loaded = targets.Target()
    loaded.load(str(tmp_path / "target"))
    assert loaded.safemodel == target.safemodel != []
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    attack = WorstCaseAttack(n_reps=3, output_dir=str(tmp_path), write_report=False)
    assert 0 <= attack.attack(loaded)["metadata"]["global_metrics"]["n_sig_auc_p_vals"] <= 3
    direct = targets.Target(model=model)
    direct.save(str(tmp_path / "direct"))
    with pytest.raises(Exception, match="could not determine a constructor"):
        targets.Target().load(str(tmp_path / "direct"))


# -- libraries around clusterers -------------------------------------------------------------------

BOTH = pytest.mark.parametrize("model", [KMeans(3, n_init=1), DPKMeans(3, epsilon=5.0)], ids=str)


@pytest.fixture
def yellowbrick():
    """Its checks of types are older than scikit-learn 1.6, its colors than Matplotlib 3.9."""
    import matplotlib

    matplotlib.use("Agg")
    cluster = pytest.importorskip("yellowbrick.cluster")
    yield cluster
    matplotlib.pyplot.close("all")


@BOTH
def test_yellowbrick_with_forced_models(yellowbrick, model):
    elbow = yellowbrick.KElbowVisualizer(clone(model), k=(2, 5), timings=False, force_model=True)
    assert np.all(np.diff(elbow.fit(X).k_scores_[:2]) < 0)
    colors = ["C0", "C1", "C2"]
    silhouette = yellowbrick.SilhouetteVisualizer(model, colors=colors, force_model=True)
    assert 0 < silhouette.fit(X).silhouette_score_ <= 1
    distances = yellowbrick.InterclusterDistance(model, force_model=True).fit(X)
    assert distances.cluster_centers_.shape == (3, 2)


@BOTH
def test_imbalanced_learn(model):
    over = pytest.importorskip("imblearn.over_sampling")
    under = pytest.importorskip("imblearn.under_sampling")
    rare = np.random.default_rng(1).normal(size=(200, 2)) + 9
    rows = np.vstack([X[:1000], rare])
    y = np.repeat([0, 1], [1000, 200])
    _, more = over.KMeansSMOTE(kmeans_estimator=model, random_state=0).fit_resample(rows, y)
    assert np.bincount(more)[1] >= 1000
    fewer = under.ClusterCentroids(estimator=model, sampling_strategy={0: 9, 1: 9}, voting="soft")
    centers, labels = fewer.fit_resample(rows, y)
    assert list(np.bincount(labels)) == [9, 9] and centers.shape == (18, 2)
