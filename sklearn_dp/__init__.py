"""Differentially private clustering and aggregation for scikit-learn.

Estimators with the interface of scikit-learn whose fitted attributes may be published: no single
row (or no single person, with ``groups=``) changes the probability of any result by more than a
factor of exp(epsilon), but for a probability of delta.

>>> from sklearn_dp import DPKMeans
>>> model = DPKMeans(n_clusters=4, epsilon=1.0)
>>> plan = model.privacy_plan(n_features=2)  # what a fit will release, and what it costs
>>> round(plan.epsilon, 6), plan.unit
(1.0, 'row')

After ``model.fit(X)``, ``model.cluster_centers_`` is private and ``model.privacy_report_`` is the
table of what was released.

Which one to take:

* clusters: :class:`DPKMeans`; :class:`DPKTupleKMeans` for another clusterer on random blocks;
  :class:`DPOneCluster` and :class:`DPOneClusterKMeans` for small dense groups among many outliers;
  :class:`FederatedDPKMeans` where clients keep their rows; :class:`DPDBSCAN` for any shape and
  number in few features; :class:`DPCoreset` for weighted points to run any clusterer on;
* topics of texts, from their embeddings: :class:`DPTopics`;
* a mean, a covariance, principal components, a mixture: :class:`FriendlyMean` (also `DPMean`),
  :class:`FriendlyCovariance` (also `DPCovariance`), :class:`DPPCA`, :class:`DPGaussianMixture`;
* medians and quartiles of columns: :class:`DPQuantiles`; columns of different units, and
  categories: :class:`PublicScaler`, :class:`DPStandardScaler`, :class:`DPRobustScaler`,
  :class:`PublicEncoder`, :class:`DPOneHotEncoder`;
* segments of a table of persons, each with a profile, in one call: :func:`profile`;
* one result for each region or department: :class:`DPBySegment`;
* any estimator of your own: :class:`SampleAndAggregate`; bounds for a pipeline:
  :class:`DPOutlierScreen`;
* one budget for many fits: :class:`PrivacyLedger`; sums by hand: :mod:`sklearn_dp.accounting`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ._version import __version__  # noqa: F401 - the usual name

if TYPE_CHECKING:
    from ._costs.budget import PrivacyBudget
    from ._guarantee import privacy_report
    from ._privacy._ledger import PrivacyLedger
    from ._privatize import privatize
    from .cluster import (
        DPDBSCAN,
        DPCoreset,
        DPKMeans,
        DPKTupleKMeans,
        DPOneCluster,
        DPOneClusterKMeans,
        DPOutlierScreen,
        DPTopics,
    )
    from .covariance import DPCovariance, FriendlyCovariance
    from .decomposition import DPPCA
    from .ensemble import SampleAndAggregate
    from .federated import FederatedDPKMeans
    from .mean import DPMean, FriendlyMean
    from .mixture import DPGaussianMixture
    from .preprocessing import (
        DPOneHotEncoder,
        DPQuantiles,
        DPRobustScaler,
        DPStandardScaler,
        PublicEncoder,
        PublicScaler,
        Schema,
    )
    from .segments import DPBySegment, DPProfile, profile

__all__ = [
    "DPBySegment", "DPDBSCAN", "DPCoreset", "DPCovariance", "DPGaussianMixture", "DPKMeans",
    "DPKTupleKMeans", "DPMean", "DPOneCluster", "DPOneClusterKMeans", "DPOneHotEncoder",
    "DPOutlierScreen", "DPPCA", "DPProfile", "DPQuantiles", "DPRobustScaler", "DPStandardScaler",
    "DPTopics", "FederatedDPKMeans", "FriendlyCovariance", "FriendlyMean", "PrivacyBudget",
    "PrivacyLedger", "PublicEncoder", "PublicScaler", "SampleAndAggregate", "Schema",
    "privacy_report", "privatize", "profile",
]  # fmt: skip

_HOMES = {
    "_guarantee": ("privacy_report",),
    "_costs.budget": ("PrivacyBudget",),
    "_privacy._ledger": ("PrivacyLedger",),
    "_privatize": ("privatize",),
    "cluster": (
        "DPDBSCAN", "DPCoreset", "DPKMeans", "DPKTupleKMeans", "DPOneCluster", "DPOneClusterKMeans",
        "DPOutlierScreen", "DPTopics",
    ),
    "covariance": ("DPCovariance", "FriendlyCovariance"),
    "decomposition": ("DPPCA",),
    "ensemble": ("SampleAndAggregate",),
    "federated": ("FederatedDPKMeans",),
    "mean": ("DPMean", "FriendlyMean"),
    "mixture": ("DPGaussianMixture",),
    "preprocessing": (
        "DPOneHotEncoder", "DPQuantiles", "DPRobustScaler", "DPStandardScaler", "PublicEncoder",
        "PublicScaler", "Schema",
    ),
    "segments": ("DPBySegment", "DPProfile", "profile"),
}  # fmt: skip

_PACKAGES = (
    *(name for name in _HOMES if name[0] != "_"),
    *("accounting", "audit", "exceptions", "inspection", "ledger", "model_selection"),
)


def __getattr__(name: str) -> Any:
    """Load what is asked for, and no more: loading everything takes twice as long as k-means."""
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = exported = getattr(import_module(f"{__name__}.{home}"), name)
            return exported
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, *(name for name in globals() if name[:2] == "__")})
