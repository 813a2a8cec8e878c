"""Rows of all finite sizes: every method of every estimator has a finite answer to each, quietly.

The user here is the strictest: warnings are errors, and numpy raises whatever it can.
"""

import inspect
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from estimators import all_estimators
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dp import DPPCA, DPKMeans, DPOutlierScreen, FriendlyMean, SampleAndAggregate
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._replay import STORAGES, Replay, stored
from sklearn_dp.exceptions import PrivacyWarning, UtilityWarning

M, TINY = 1.7e308, 5e-324
ROWS = np.array(
    [
        [M, M, -M],
        [-M, -M, M],
        [M, -M, M],
        [M, M, M],
        [TINY, -TINY, TINY],
        [1e-310, 0.0, -1e-200],
        [1e160, -1e150, 1.0],
        [-1e39, 3e38, 1e-39],
        [0.0, 0.0, 0.0],
        [0.25, -0.5, 0.125],
    ]
)
OPTIONS = {
    "DPKMeans": [
        {"n_clusters": 3},
        {"n_clusters": 2, "bounds": 1e-140},
        {"n_clusters": 3, "metric": "cosine"},
    ],
    "DPBySegment": [{}, {"borrow": False}],
    "DPCoreset": [{}, {"n_clusters": 3, "bounds": 1e-140}, {"epsilon": 1000.0, "bounds": 1e140}],
    "DPDBSCAN": [{}, {"bounds": 9.0}, {"eps": 1e139, "bounds": (-4e139, 4e139)}],
    "DPKTupleKMeans": [{"n_clusters": 2, "n_tuples": 4, "epsilon": 100.0}],
    "DPOneCluster": [{"n_points": 20}],
    "DPOutlierScreen": [{}, {"bounds": 1e-140}],
    "DPOneClusterKMeans": [{"n_clusters": 2}],
    "DPPCA": [{"n_components": 2}, {"n_components": 2, "whiten": True}, {"bounds": 1e140}],
    "DPGaussianMixture": [
        {"n_components": 2, "covariance_type": form}
        for form in ("full", "tied", "diag", "spherical")
    ],
    "FriendlyMean": [{}, {"bounds": (-4e139, 4e139)}],
    "FriendlyCovariance": [{"store_precision": False}, {"bounds": 1e-100}],
    "DPOneHotEncoder": [{"epsilon": 1000.0}, {"epsilon": 1000.0, "handle_unknown": "ignore"}],
    "DPQuantiles": [{}, {"bounds": (-4e139, 4e139)}, {"epsilon": 1000.0}],
    "DPRobustScaler": [{}, {"bounds": 1e-140}, {"epsilon": 1000.0, "unit_variance": True}],
    "DPStandardScaler": [{}, {"bounds": 1e-140}, {"bounds": (-4e139, 4e139)}, {"epsilon": 1000.0}],
    "DPTopics": [{"n_topics": 2}, {"n_topics": 2, "vocabulary": ["x0", "x1"]}],
    "FederatedDPKMeans": [{"n_clusters": 2}],
    "SampleAndAggregate": [
        {"n_blocks": 8},
        {"n_blocks": 8, "estimator": Ridge(), "output": ("coef_", "intercept_")},
        {
            "n_blocks": 8,
            "estimator": LogisticRegression(),
            "output": ("coef_", "intercept_"),
            "classes": (0, 1),
        },
    ],
}
SETTINGS = [
    pytest.param(cls, options, id=f"{name}-{number}")
    for name, cls in all_estimators()
    for number, options in enumerate(OPTIONS[name])
]


@contextmanager
def strict():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for kind in (PrivacyWarning, UtilityWarning):
            warnings.simplefilter("ignore", kind)
        yield


def ordinary(n=120):
    return np.random.default_rng(0).uniform(-1, 1, size=(n, 3))


def arguments_of(estimator, X):
    needs = hasattr(estimator, "_needs_target") and estimator._needs_target()
    return (X, (np.arange(len(X)) % 2).astype(float)) if needs else (X,)


def methods_of(estimator):
    """Public methods that take rows, but for fits."""
    for name in dir(estimator):
        method = (
            None if name.startswith(("_", "fit", "partial_fit")) else getattr(estimator, name, None)
        )
        if inspect.ismethod(method) and "X" in inspect.signature(method).parameters:
            yield name, method


def answers(estimator, X):
    """What each method says about rows, by its name."""
    for name, method in methods_of(estimator):
        if name == "inverse_transform":
            X_in = np.resize(X, (len(X), estimator.transform(X).shape[1]))
            yield name, method(X_in)
        elif name == "private_score":
            yield name, method(X, epsilon=1.0, random_state=0)
        elif name == "score":
            yield name, method(*arguments_of(estimator, X))
        else:
            yield name, method(X)


@pytest.mark.parametrize("trained_on_them", [False, True])
@pytest.mark.parametrize(("cls", "options"), SETTINGS)
def test_every_method_has_a_finite_answer_to_every_row(cls, options, trained_on_them):
    X = np.concatenate([ordinary(), ROWS, 0.5 * ROWS]) if trained_on_them else ordinary()
    with strict():
        fitted = cls(**{"epsilon": 5.0, **options}, random_state=0)
        fitted.fit(*arguments_of(fitted, X))
        for storage in ("C", "float32"):
            for name, answer in answers(fitted, stored(ROWS, storage)):
                if np.asarray(answer).dtype != object:  # categories, which need not be numbers
                    assert np.isfinite(np.asarray(answer, dtype=np.float64)).all(), (name, storage)
    for name, value in vars(fitted).items():
        if isinstance(value, np.ndarray) and value.dtype.kind != "U":
            unknown = name.endswith("_std_error_") & np.isposinf(value)
            assert np.all(np.isfinite(value) | unknown), name


@pytest.mark.quick("*-0-40-float32", "DPKMeans-*", "DPBySegment-*")
@pytest.mark.parametrize(("d", "storage"), [(3, "C"), (40, "float32")])
@pytest.mark.parametrize(("cls", "options"), SETTINGS)
def test_every_method_is_a_function_of_single_rows(cls, options, d, storage):
    """Bit for bit, in any number and order: the next private step may rely on it. A matrix product
    differs in some of these rows for each estimator that has one (and einsum with optimize)."""
    rng = np.random.default_rng(1)
    fitted = cls(**{"epsilon": 5.0, **options}, random_state=0)
    if d > 3 and isinstance(options.get("bounds"), tuple):
        pytest.skip("the box would be too wide")
    fitted.fit(*arguments_of(fitted, rng.uniform(-1, 1, size=(120, d))))
    far = np.pad(ROWS, ((0, 0), (0, d - 3)))
    X = stored(np.concatenate([far, rng.normal(size=(600, d))]), storage)
    for name, method in methods_of(fitted):
        if name in ("score", "private_score", "bic", "aic"):
            continue  # of all rows
        rows = X
        if name == "inverse_transform":
            rows = stored(rng.normal(size=(610, fitted.transform(X[:1]).shape[1])), storage)
        together = np.asarray(method(rows))
        for size in (1, 1, 1, 2, 3, 7, 17, 50, 333):
            some = rng.permutation(len(rows))[:size]
            for order in ("C", "F"):
                alone = np.asarray(method(np.asarray(rows[some], order=order)))
                assert np.array_equal(alone, together[some]), (name, size, order)


# -- replay ----------------------------------------------------------------------------------------


@np.errstate(under="ignore")
def to_unit(X):
    return X / 16


PIPELINES = {
    "screen, k-means": make_pipeline(
        DPOutlierScreen(epsilon=0.5, bounds=1e6), DPKMeans(8, epsilon=0.5, bounds=1.0)
    ),
    "small screen, k-means": make_pipeline(
        DPOutlierScreen(epsilon=5.0, bounds=0.01), DPKMeans(2, epsilon=5.0, bounds=1.0)
    ),
    "scale, k-means": make_pipeline(
        FunctionTransformer(to_unit), DPKMeans(2, epsilon=5.0, bounds=(0, 1))
    ),
    "components, k-means": make_pipeline(DPPCA(epsilon=5.0), DPKMeans(2, epsilon=5.0)),
    "mean, components": make_pipeline(FriendlyMean(epsilon=5.0), DPPCA(epsilon=5.0)),
    "distances, components": make_pipeline(DPKMeans(4, epsilon=5.0), DPPCA(epsilon=5.0)),
    "scaler of blocks, k-means": make_pipeline(
        SampleAndAggregate(n_blocks=8, epsilon=5.0), DPKMeans(2, epsilon=5.0)
    ),
}


def seeded(pipeline):
    return clone(pipeline).set_params(
        **{name: 0 for name in pipeline.get_params() if name.endswith("__random_state")}
    )


def fitted_under(recorder, pipeline, X):
    with strict(), trace(recorder):
        try:
            seeded(pipeline).fit(X)
        except Exception as error:
            return repr(error)
    return ""


def violations_of(pipeline, X, storage="C", kinds=("farthest", "tiny", "random", "remove")):
    recorder = Trace()
    found = [fitted_under(recorder, pipeline, stored(X, storage))]
    for pair in neighboring_pairs(X, 0, kinds=kinds, repeats=2):
        replay = Replay(recorder.events, pair.units)
        found.append(fitted_under(replay, pipeline, stored(pair.X, storage)))
        found += [] if replay.voided else replay.finish()
    return [text for text in found if text]


def wide(n=40, d=12):
    return np.random.default_rng(3).uniform(-1, 1, size=(n, d))


# Each pipeline in a storage of its own, and in the common one; all others in `make audit`.
TWO_STEPS = [
    pytest.param(
        name,
        storage,
        id=f"{name}-{storage}",
        marks=() if storage in ("C", STORAGES[1:][number % 4]) else pytest.mark.slow,
    )
    for number, name in enumerate(PIPELINES)
    for storage in STORAGES
]


@pytest.mark.quick(
    "screen, *-F",
    "scale, *-C",
    "components, *-only",
    "mean, *-C",
    "distances, *",
    "*blocks*-memmap",
)
@pytest.mark.parametrize(("name", "storage"), TWO_STEPS)
def test_two_steps_are_private_one_by_one(name, storage):
    assert violations_of(PIPELINES[name], wide(), storage) == []
