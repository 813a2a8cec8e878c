"""Private clustering."""

from ._dp_kmeans import DPKMeans

__all__ = ["DPKMeans"]
