"""Weights of rows in every estimator that takes them: what they do, and that no weight is too much.

`test_weights.py` has what is taken for weights.
"""

import numpy as np
import pytest
from configurations import ESTIMATORS
from sklearn.utils.validation import has_fit_parameter
from weight_tools import LastColumn, released

from sklearn_dp import (
    DPDBSCAN,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPQuantiles,
    DPRobustScaler,
    DPStandardScaler,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
)
from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.decomposition import DPPCA


class WeighedPCA(LastColumn, DPPCA):
    pass


class WeighedCovariance(LastColumn, FriendlyCovariance):
    pass


class WeighedMean(LastColumn, FriendlyMean):
    pass


class WeighedScaler(LastColumn, DPStandardScaler):
    pass


class WeighedDBSCAN(LastColumn, DPDBSCAN):
    pass


class WeighedQuantiles(LastColumn, DPQuantiles):
    pass


class WeighedRobustScaler(LastColumn, DPRobustScaler):
    pass


class WeighedKTuples(LastColumn, DPKTupleKMeans):
    pass


class WeighedMixture(LastColumn, DPGaussianMixture):
    pass


GRAM = {"method": "gram", "bounds": 9.0}
CORE = {"method": "friendly_core", "n_blocks": 12, "epsilon": 300.0, "assume_centered": True}
TUPLES = {"n_clusters": 2, "n_tuples": 2, "epsilon": 1000.0, "bounds": 9.0, "fallback": "public"}
SETTINGS = [
    (WeighedPCA, {}),
    (WeighedPCA, {"bounds": 3.0}),
    (WeighedCovariance, {}),
    (WeighedCovariance, GRAM),
    (WeighedCovariance, CORE),
    (WeighedMean, {"bounds": 9.0, "diameter": 9.0}),
    (WeighedMean, {"diameter": 6.0}),
    (WeighedMean, {"rho": 40.0, "diameter": 9.0, "locate": "basic", "delta": 0.1}),
    (WeighedMean, {"rho": 2000.0, "diameter": 9.0, "refine": False, "delta": 0.1}),
    (WeighedKTuples, TUPLES),
    (WeighedKTuples, {"n_clusters": 2}),
    (WeighedMixture, {}),
    (WeighedMixture, {"n_components": 2, "covariance_type": "tied"}),
]
SCALERS = [  # without a score; what they do with weights is in tests/preprocessing
    (WeighedScaler, {}),
    (WeighedScaler, {"bounds": 9.0}),
    (WeighedQuantiles, {"bounds": 9.0}),
    (WeighedDBSCAN, {"bounds": 9.0, "eps": 2.0}),
    (WeighedRobustScaler, {"bounds": 9.0}),
]
PLAIN = [(cls.__mro__[2], options) for cls, options in SETTINGS]
IDS = [f"{cls.__name__}-{options}" for cls, options in PLAIN]
ONE_EACH = list({cls: None for cls, _ in PLAIN})
LONG = (DPKTupleKMeans, DPGaussianMixture)  # one fit of them takes as long as ten others
settings = pytest.mark.parametrize(
    ("cls", "options"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.slow if case[0] in LONG else ())
        for case, name in zip(PLAIN, IDS, strict=True)
    ],
)


def budgeted(options, epsilon):
    """With a largest weight, and a budget where there is none."""
    return {"max_weight": 1.0, **({} if "rho" in options else {"epsilon": epsilon}), **options}


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) + [0, 3.0, 0], rng.uniform(size=n)


def test_every_estimator_with_the_parameter_is_here():
    named = {name for name, cls in ESTIMATORS.items() if "max_weight" in cls().get_params()}
    here = {cls.__name__ for cls in ONE_EACH} | {cls.__mro__[2].__name__ for cls, _ in SCALERS}
    assert named == here | {"DPKMeans"}


# -- the largest weight ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls", [DPKMeans, DPQuantiles, DPRobustScaler, DPStandardScaler, *ONE_EACH]
)
def test_weights_without_a_largest_one_are_refused_before_the_charge(cls):
    X, weights = table()
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-4))
    model = cls(ledger=ledger, delta=1e-4)
    parts = {"sample_weight": [weights, weights]}
    for fit in (
        lambda: model.fit(X, sample_weight=weights),
        lambda: model.fit(X, sample_weight=np.ones(len(X))),  # they may be 1, and nobody looks
        lambda: model.fit([X, X], **parts),
        lambda: model.fit_partitions([X, X], **parts),
        lambda: model.fit(X, sample_weight=0.0),
    ):
        with pytest.raises(ValueError, match=r"sample_weight (needs max_weight: give|must be pos)"):
            fit()
    assert not ledger.entries
    # Those who ask a signature whether there are weights, as tools of scikit-learn do, are told.
    assert not has_fit_parameter(model, "sample_weight") and has_fit_parameter(model, "X")
    assert has_fit_parameter(cls(max_weight=2.0), "sample_weight")
    assert has_fit_parameter(cls, "sample_weight")


# -- what weights do -------------------------------------------------------------------------------


@settings
def test_a_row_of_weight_zero_is_not_there_bit_for_bit(cls, options):
    X, weights = table()
    weights[::3] = 0
    weights[1::3] *= 2.0**-21  # less than a step
    there = np.arange(len(X)) % 3 == 2
    X[~there] = 1e9
    for groups in (None, np.arange(len(X)) // 2):
        part = None if groups is None else groups[there]
        model, other = (cls(random_state=0, **budgeted(options, 5.0)) for _ in range(2))
        model.fit(X, sample_weight=weights, groups=groups)
        other.fit(X[there], sample_weight=weights[there], groups=part)
        assert released(model) == released(other)


@pytest.mark.parametrize("cls", [DPKMeans, *ONE_EACH])
@pytest.mark.parametrize("weight", [0.0, 2.0**-21])
def test_no_row_with_a_weight_is_refused_as_no_row_at_all(cls, weight):
    X, _ = table()
    with pytest.raises(ValueError, match="0 sample"):
        cls().fit(X[:0])
    for unit, groups in (("row", None), ("group", np.arange(len(X)) // 2)):
        ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-4), unit=unit)
        model = cls(ledger=ledger, epsilon=1.0, delta=1e-4, max_weight=1.0)
        with pytest.raises(ValueError, match="^sample_weight: every weight is zero"):
            model.fit(X, sample_weight=np.full(len(X), weight), groups=groups)
        assert (
            not hasattr(model, "status_") and ledger.spent["epsilon"] > 0.99
        )  # charged, then read
