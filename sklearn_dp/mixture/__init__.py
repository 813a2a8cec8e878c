"""Private mixtures."""

from ._dp_gaussian_mixture import DPGaussianMixture

__all__ = ["DPGaussianMixture"]
