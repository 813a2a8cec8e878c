"""Private mixtures."""

from ._dp_gaussian_mixture import DPGaussianMixture, KTupleOptions, PartitionOptions

__all__ = ["DPGaussianMixture", "KTupleOptions", "PartitionOptions"]
