"""Private principal components."""

from ._dp_pca import DPPCA

__all__ = ["DPPCA"]
