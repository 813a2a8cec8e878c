"""Private clustering."""

from ._dp_coreset import DPCoreset
from ._dp_k_tuple_kmeans import DPKTupleKMeans
from ._dp_kmeans import DPKMeans
from ._dp_one_cluster import DPOneCluster
from ._dp_one_cluster_kmeans import DPOneClusterKMeans
from ._dp_outlier_screen import DPOutlierScreen
from ._dp_topics import DPTopics
from ._hierarchy import ClusterHierarchy, ClusterLevel
from ._interior import IntPointResult, int_point
from ._k_tuples import KTupleResult, aggregate_k_tuples
from ._keywords import Topic
from ._options import FarBallsOptions, FriendlyCoreOptions

__all__ = [
    "ClusterHierarchy",
    "ClusterLevel",
    "DPCoreset",
    "DPKMeans",
    "DPKTupleKMeans",
    "DPOneCluster",
    "DPOneClusterKMeans",
    "DPOutlierScreen",
    "DPTopics",
    "FarBallsOptions",
    "FriendlyCoreOptions",
    "IntPointResult",
    "KTupleResult",
    "Topic",
    "aggregate_k_tuples",
    "int_point",
]
