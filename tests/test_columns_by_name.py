"""Names of columns count wherever they exist; entries of rows belong to them by position.

Ages in the place of incomes would be averaged without a word: what comes with names is taken by
them, or refused before the charge.
"""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPCoreset,
    DPGaussianMixture,
    DPKMeans,
    DPQuantiles,
    DPRobustScaler,
    DPStandardScaler,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    SampleAndAggregate,
    privatize,
)
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.model_selection import DPGridSearch

NAMES = ["age", "bmi", "income"]
CENTERS = np.array([[0.0, 0, 50], [10, 5, 80], [0, 10, 20]])
RNG = np.random.default_rng(0)
POINTS = CENTERS[RNG.integers(3, size=900)] + RNG.normal(size=(900, 3))
FRAME = pd.DataFrame(POINTS * [1, 1, 100], columns=NAMES)  # sides that differ are refined
LOW, HIGH = FRAME.min() - 1, FRAME.max() + 1
MIXED = NAMES[::-1]


def released(model):
    """All numbers that a fit shows."""
    found = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }
    assert found
    return found


def same(one, other):
    one, other = released(one), released(other)
    return one.keys() == other.keys() and all(
        np.array_equal(value, other[name], equal_nan=True) for name, value in one.items()
    )


def ledger():
    return PrivacyLedger(PrivacyBudget(epsilon=100.0, delta=1e-2))


def refused(model, fit, book=None):
    """Before the charge."""
    book = ledger() if book is None else book
    model.set_params(ledger=book)
    with pytest.raises(ValueError, match="columns of X, by their names: '(weight|bmi)' is missing"):
        fit(model)
    assert book.state().charges == ()


BOUNDED = [
    FriendlyMean, FriendlyCovariance, DPKMeans, DPCoreset, DPGaussianMixture, DPPCA, DPQuantiles,
    DPRobustScaler, DPStandardScaler, SampleAndAggregate,
]  # fmt: skip


@pytest.mark.quick("pandas-*", "parts-DPKMeans")
@pytest.mark.parametrize("kind", BOUNDED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("make", [FRAME.copy, lambda: [FRAME, FRAME]], ids=["pandas", "parts"])
def test_bounds_are_taken_by_name(kind, make):
    options = {"random_state": 0, "epsilon": 5.0}
    expected = kind(bounds=(LOW.to_numpy(), HIGH.to_numpy()), **options).fit(make())
    pairs = {name: (LOW[name], HIGH[name]) for name in MIXED}
    for bounds in ((LOW, HIGH), (LOW[MIXED], HIGH), [LOW[MIXED], HIGH[MIXED]], pairs):
        assert same(kind(bounds=bounds, **options).fit(make()), expected)
    fewer = kind(bounds=(LOW.rename({"bmi": "weight"}), HIGH))
    refused(fewer, lambda model: model.fit(make()))
    # An array has no names, and numbers are none.
    array, book = FRAME.to_numpy(), ledger()
    for bounds in ((LOW, HIGH), (LOW[MIXED], HIGH), (LOW, HIGH.to_numpy()), pairs):
        named = kind(bounds=bounds, **options).set_params(ledger=book)
        assert named.privacy_plan(3).epsilon == expected.privacy_report_.epsilon
        with pytest.raises(ValueError, match="^bounds names columns, and X has no names"):
            named.fit(array)
    assert book.state().charges == ()
    numbered = LOW.reset_index(drop=True), HIGH.reset_index(drop=True)
    assert same(kind(bounds=numbered, **options).fit(make()), expected)


def test_searches_segments_and_pipelines():
    inner, wrong = (DPKMeans(3, bounds=(low, HIGH)) for low in (LOW[MIXED], LOW.rename({"bmi":
    "weight"})))  # fmt: skip
    plain = DPKMeans(3, bounds=(LOW.to_numpy(), HIGH.to_numpy()))
    search = partial(DPGridSearch, param_grid={"n_clusters": [2, 3]}, epsilon=9.0, random_state=0)
    segments = partial(DPBySegment, values=["a", "b"], random_state=0)
    by = ["a", "b"] * 450
    for make, fit, part in (
        (search, lambda model: model.fit(FRAME), lambda model: model.best_estimator_),
        (segments, lambda model: model.fit(FRAME, by=by), lambda model: model.estimators_["a"]),
    ):
        assert same(part(fit(make(inner))), part(fit(make(plain))))
        refused(make(wrong), fit)
    book = ledger()
    with pytest.raises(ValueError, match="by their names"):
        privatize(wrong, rho=0.1, ledger=book).fit(FRAME)
    assert book.state().charges == ()
    # A step that scales by the bounds: it is checked before the charge, without rows.
    scale = partial(privatize, make_pipeline(MinMaxScaler(), KMeans(3)), epsilon=9.0)
    scaler = scale(bounds={"minmaxscaler": (LOW[MIXED], HIGH)}).fit(FRAME)[0]
    assert np.allclose(scaler.scale_, 1 / (HIGH - LOW).to_numpy())
    with pytest.raises(ValueError, match="by their names"):
        scale(bounds={"minmaxscaler": (LOW.rename({"bmi": "weight"}), HIGH)}, ledger=book).fit(
            FRAME
        )
    assert book.state().charges == ()


# -- federated -------------------------------------------------------------------------------------

SITES = [FRAME.iloc[i::6] for i in range(6)]
SHUFFLED = [site if i % 2 else site[MIXED] for i, site in enumerate(SITES)]
OPTIONS = {"epsilon": 8.0, "privacy_unit": "row", "random_state": 0}


def test_clients_with_their_columns_in_any_order():
    expected = FederatedDPKMeans(3, **OPTIONS).fit_clients(SITES)
    assert expected.feature_names_in_.tolist() == NAMES
    for clients in (
        SITES[:1] + SHUFFLED[1:],
        [SITES[0], *map(pl.DataFrame, SHUFFLED[1:])],
        [SITES[0], *map(pa.Table.from_pandas, SHUFFLED[1:])],
        [SITES[0], *(lambda site=site: site for site in SHUFFLED[1:])],
        {"a": SITES[0], **dict(enumerate(SHUFFLED[1:]))},
        [SITES[0], *(site.to_numpy() for site in SITES[1:])],
    ):
        found = FederatedDPKMeans(3, **OPTIONS).fit_clients(clients)
        assert same(found, expected) and found.feature_names_in_.tolist() == NAMES
    functions = [lambda site=site: site for site in SHUFFLED]
    for names in (NAMES, FRAME.columns, np.array(NAMES)):
        found = FederatedDPKMeans(3, **OPTIONS).fit_clients(functions, n_features=names)
        assert same(found, expected) and found.feature_names_in_.tolist() == NAMES
    # Where nobody has said what the names are, nothing tells which column is which.
    with pytest.warns(UtilityWarning, match="client 0: a client's table names its columns, and"):
        lost = FederatedDPKMeans(3, **OPTIONS).fit_clients(functions, n_features=3)
    assert not lost.trustworthy_
    for names in (["age", "age"], ["age", 1], []):
        with pytest.raises(ValueError, match="^n_features must be"):
            FederatedDPKMeans(3, **OPTIONS).fit_clients(functions, n_features=names)
    other = FederatedDPKMeans(3, **OPTIONS).fit_clients(SHUFFLED)
    assert other.feature_names_in_.tolist() == MIXED
    with pytest.raises(ValueError, match="feature names should match"):
        other.predict(FRAME)
    arrays = FederatedDPKMeans(3, **OPTIONS).fit_clients([site.to_numpy() for site in SITES])
    assert not hasattr(arrays, "feature_names_in_")


def test_clients_with_other_names_are_refused():
    book = PrivacyLedger(PrivacyBudget(epsilon=100.0, delta=1e-2))
    wrong = SITES[3].rename(columns={"bmi": "weight"})
    for clients in ([*SITES[:3], wrong], [wrong, *SITES[:2]], [pl.DataFrame(wrong), SITES[0]]):
        refused(FederatedDPKMeans(3, **OPTIONS), lambda m: m.fit_clients(clients), book)  # noqa: B023
    for fit in (
        lambda model: model.fit_clients(SITES, X_server=wrong),
        lambda model: model.fit(FRAME, X_server=wrong),
    ):
        refused(FederatedDPKMeans(3, **OPTIONS), fit, book)
    bounds = (LOW.rename({"bmi": "weight"}), HIGH)
    refused(FederatedDPKMeans(3, **OPTIONS, bounds=bounds), lambda m: m.fit_clients(SITES), book)
    # One that is asked for its rows later counts as empty, as one that does not answer.
    with pytest.warns(UtilityWarning, match="client 6: a client's columns must have the public"):
        late = FederatedDPKMeans(3, **OPTIONS).fit_clients([*SITES, lambda: wrong])
    assert same(late, FederatedDPKMeans(3, **OPTIONS).fit_clients(SITES))
