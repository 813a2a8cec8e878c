"""Differentially private clustering and aggregation for scikit-learn."""

from ._privacy._budget import PrivacyBudget
from ._privacy._ledger import PrivacyLedger
from .cluster import DPKMeans, DPKTupleKMeans, DPOneCluster
from .mean import FriendlyMean

__all__ = ["DPKMeans", "DPKTupleKMeans", "DPOneCluster", "FriendlyMean", "PrivacyBudget",
           "PrivacyLedger"]
__version__ = "0.1.0.dev0"
