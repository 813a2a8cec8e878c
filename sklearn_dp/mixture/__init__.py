"""Private mixtures."""

from ._dp_gaussian_mixture import DPGaussianMixture
from ._options import KTupleOptions, PartitionOptions

__all__ = ["DPGaussianMixture", "KTupleOptions", "PartitionOptions"]
