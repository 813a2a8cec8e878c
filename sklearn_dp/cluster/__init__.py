"""Private clustering."""

from ._dp_k_tuple_kmeans import DPKTupleKMeans
from ._dp_kmeans import DPKMeans

__all__ = ["DPKMeans", "DPKTupleKMeans"]
