"""Attributes of the replaced classes: they are there, or an error says why not and what to use."""

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.covariance import EmpiricalCovariance
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
    DPRobustScaler,
    DPStandardScaler,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
)

X = np.vstack([np.random.default_rng(0).normal(size=(300, 2)) + shift for shift in (0, 9)])
PAIRS = [
    (KMeans(2), DPKMeans(2)),
    (KMeans(2), DPKTupleKMeans(2)),
    (KMeans(2), DPOneClusterKMeans(2)),
    (KMeans(2), FederatedDPKMeans(2)),
    (DBSCAN(1.0), DPDBSCAN(1.0)),
    (GaussianMixture(2), DPGaussianMixture(2)),
    (PCA(1), DPPCA(1)),
    (EmpiricalCovariance(), FriendlyCovariance()),
    (StandardScaler(with_std=False), FriendlyMean()),
    (RobustScaler(), DPRobustScaler()),
    (StandardScaler(), DPStandardScaler()),
]


def fitted(ours):
    return ours.set_params(epsilon=50.0, random_state=0).fit(X)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=lambda pair: type(pair).__name__)
def test_every_attribute_is_there_or_explained(theirs, ours):
    theirs, ours = theirs.fit(X), fitted(ours)
    cls = type(ours)
    # Which weights a fit asks for is told by its own requests.
    public = [n for n in dir(theirs) if n[0] != "_" and not n.endswith("_request")]
    for name in public:
        if hasattr(ours, name):
            continue
        with pytest.raises(AttributeError, match=f"{cls.__name__} has no ") as told:
            getattr(ours, name)
        assert name in str(told.value) and len(str(told.value)) > 60
        assert told.value.name == name and getattr(ours, name, "default") == "default"
