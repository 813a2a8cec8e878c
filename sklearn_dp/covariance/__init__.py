"""Private covariances."""

from ._friendly_covariance import FriendlyCovariance

__all__ = ["FriendlyCovariance"]
