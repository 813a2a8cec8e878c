"""Private clustering."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._dp_coreset import DPCoreset
    from ._dp_dbscan import DPDBSCAN
    from ._dp_k_tuple_kmeans import (
        DPKTupleKMeans,
        FarBallsOptions,
        FriendlyCoreOptions,
        KTupleResult,
        aggregate_k_tuples,
    )
    from ._dp_kmeans import DPKMeans
    from ._dp_one_cluster import DPOneCluster, DPOneClusterKMeans, DPOutlierScreen
    from ._dp_topics import DPTopics, Topic
    from ._hierarchy import ClusterHierarchy, ClusterLevel
    from ._interior import IntPointResult, int_point

__all__ = [
    "ClusterHierarchy", "ClusterLevel", "DPDBSCAN", "DPCoreset", "DPKMeans", "DPKTupleKMeans",
    "DPOneCluster", "DPOneClusterKMeans", "DPOutlierScreen", "DPTopics", "FarBallsOptions",
    "FriendlyCoreOptions", "IntPointResult", "KTupleResult", "Topic", "aggregate_k_tuples",
    "int_point",
]  # fmt: skip

_HOMES = {
    "_dp_coreset": ("DPCoreset",),
    "_dp_dbscan": ("DPDBSCAN",),
    "_dp_k_tuple_kmeans": (
        "DPKTupleKMeans",
        "FarBallsOptions",
        "FriendlyCoreOptions",
        "KTupleResult",
        "aggregate_k_tuples",
    ),  # fmt: skip
    "_dp_kmeans": ("DPKMeans",),
    "_dp_one_cluster": ("DPOneCluster", "DPOneClusterKMeans", "DPOutlierScreen"),
    "_dp_topics": ("DPTopics", "Topic"),
    "_hierarchy": ("ClusterHierarchy", "ClusterLevel"),
    "_interior": ("IntPointResult", "int_point"),
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, and no more: all of it takes half as long again as k-means."""
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = exported = getattr(import_module(f"{__name__}.{home}"), name)
            return exported
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})
