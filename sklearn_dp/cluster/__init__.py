"""Private clustering."""

from ._dp_k_tuple_kmeans import DPKTupleKMeans
from ._dp_kmeans import DPKMeans
from ._dp_one_cluster import DPOneCluster

__all__ = ["DPKMeans", "DPKTupleKMeans", "DPOneCluster"]
