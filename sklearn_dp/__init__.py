"""Differentially private clustering and aggregation for scikit-learn."""

from ._privacy._budget import PrivacyBudget
from ._privacy._ledger import PrivacyLedger
from .cluster import (
    DPKMeans,
    DPKTupleKMeans,
    DPOneCluster,
    DPOneClusterKMeans,
    DPOutlierScreen,
)
from .covariance import FriendlyCovariance
from .decomposition import DPPCA
from .ensemble import SampleAndAggregate
from .federated import FederatedDPKMeans
from .mean import FriendlyMean
from .mixture import DPGaussianMixture

__all__ = [
    "DPGaussianMixture",
    "DPKMeans",
    "DPKTupleKMeans",
    "DPOneCluster",
    "DPOneClusterKMeans",
    "DPOutlierScreen",
    "DPPCA",
    "FederatedDPKMeans",
    "FriendlyCovariance",
    "FriendlyMean",
    "PrivacyBudget",
    "PrivacyLedger",
    "SampleAndAggregate",
]
__version__ = "0.1.0.dev0"
