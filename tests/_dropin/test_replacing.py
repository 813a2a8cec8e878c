"""There and back: private twins of configured estimators, and released values as theirs."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import RobustScaler, StandardScaler

from sklearn_dp import (
    DPDBSCAN,
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    SampleAndAggregate,
)
from sklearn_dp.exceptions import ConversionWarning

X = np.vstack([np.random.default_rng(0).normal(size=(400, 3)) + shift for shift in (0, 9)])


# -- from scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours", "carried"),
    [
        (KMeans(5), DPKMeans, {"n_clusters": 5}),
        (MiniBatchKMeans(5), DPKTupleKMeans, {"n_clusters": 5}),
        (BisectingKMeans(5), DPOneClusterKMeans, {"n_clusters": 5, "n_init": 1}),
        (KMeans(5), FederatedDPKMeans, {"n_clusters": 5}),
        (
            GaussianMixture(4, covariance_type="diag"),
            DPGaussianMixture,
            {"n_components": 4, "covariance_type": "diag"},
        ),
        (PCA(0.9, whiten=True), DPPCA, {"n_components": 0.9, "whiten": True}),
        (
            EmpiricalCovariance(assume_centered=True, store_precision=False),
            FriendlyCovariance,
            {"assume_centered": True, "store_precision": False},
        ),
        (DBSCAN(0.3, min_samples=9), DPDBSCAN, {"eps": 0.3, "min_samples": 9}),
        (LedoitWolf(), FriendlyCovariance, {"assume_centered": False}),
        (StandardScaler(with_std=False), FriendlyMean, {}),
    ],
)
def test_what_means_the_same_is_carried_quietly(theirs, ours, carried):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin = ours.from_sklearn(theirs, epsilon=2.5, bounds=9.0)
    assert type(twin) is ours and (twin.epsilon, twin.bounds) == (2.5, 9.0)
    assert {name: getattr(twin, name) for name in carried} == carried


def test_a_fitted_estimator_gives_its_words_and_nothing_else():
    theirs = KMeans(2, n_init=1).fit(X)
    with pytest.warns(ConversionWarning):
        twin = DPKMeans.from_sklearn(theirs)
    assert not [name for name in vars(twin) if name.endswith("_")]
    assert theirs.n_init == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: DPKMeans.from_sklearn(PCA()), TypeError, "instance of KMeans"),
        (lambda: DPKMeans.from_sklearn(KMeans), TypeError, "instance of KMeans"),
        (lambda: DPKMeans.from_sklearn(None), TypeError, "instance of KMeans"),
        (lambda: DPKMeans.from_sklearn(KMeans(), n_init=3), TypeError, "n_init"),
        (lambda: FriendlyMean.from_sklearn(StandardScaler()), ValueError, "with_std=False"),
        (
            lambda: FriendlyMean.from_sklearn(StandardScaler(with_mean=False, with_std=False)),
            ValueError,
            "centers",
        ),
        (lambda: DPDBSCAN.from_sklearn(DBSCAN(metric="cosine")), ValueError, "Euclidean"),
        (lambda: DPPCA.from_sklearn(PCA("mle")), ValueError, "mle"),
    ],
)
def test_what_has_no_twin_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# -- to scikit-learn -------------------------------------------------------------------------------

MODELS = [
    DPKMeans(2),
    DPKTupleKMeans(2, n_tuples=4),
    DPOneClusterKMeans(2),
    FederatedDPKMeans(2),
    DPGaussianMixture(2),
    DPGaussianMixture(2, covariance_type="tied"),
    DPPCA(2),
    DPPCA(2, whiten=True),
    DPPCA(),
    FriendlyCovariance(),
    FriendlyCovariance(store_precision=False),
    FriendlyMean(),
    SampleAndAggregate(RobustScaler(with_scaling=False), n_blocks=8),
    SampleAndAggregate(
        KMeans(2, n_init=1), output=("cluster_centers_",), output_bounds=20.0, n_blocks=8
    ),
]
METHODS = (
    "predict",
    "transform",
    "predict_proba",
    "score_samples",
    "score",
    "mahalanobis",
    "get_covariance",
    "get_precision",
)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_twin_answers_as_the_released_estimator(model, tmp_path):
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    model = model.set_params(epsilon=80.0, random_state=0).fit(rows)
    twin = model.to_sklearn()
    assert type(twin).__module__.startswith("sklearn.")
    joblib.dump(twin, tmp_path / "twin")
    for other in (twin, joblib.load(tmp_path / "twin"), pickle.loads(pickle.dumps(twin))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # about names of features
            for method in METHODS:
                if not (hasattr(model, method) and hasattr(other, method)):
                    continue
                if getattr(model, "whiten", False) and method != "transform":
                    continue  # scikit-learn's PCA takes variances twice there
                given = () if method.startswith("get_") else (rows,)
                expected = getattr(model, method)(*given)
                np.testing.assert_allclose(
                    getattr(other, method)(*given), expected, rtol=1e-6, atol=1e-9
                )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_twin_holds_released_values_only(model):
    """Every fitted array of it is one of ours, or made from one: no labels, no rows."""
    twin = model.set_params(epsilon=80.0, random_state=0).fit(X).to_sklearn()
    assert not hasattr(twin, "labels_")
    for name, value in vars(twin).items():
        assert np.size(value) < len(X), name
    if isinstance(model, SampleAndAggregate):
        return
    # A pickle without what is no release gives the same twin.
    again = pickle.loads(pickle.dumps(model)).to_sklearn()
    assert pickle.dumps(again) == pickle.dumps(twin)


@pytest.mark.parametrize("model", [DPKMeans(2), DPGaussianMixture(2), DPPCA(2)], ids=str)
def test_onnx(model):
    """Where skl2onnx and onnxruntime are installed."""
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    twin = model.set_params(epsilon=80.0, random_state=0).fit(X).to_sklearn()
    rows = X[:20].astype(np.float32)
    onnx = skl2onnx.to_onnx(twin, rows)
    session = runtime.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": rows})[0]
    method = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(model, method)(rows)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-3, atol=1e-3)
