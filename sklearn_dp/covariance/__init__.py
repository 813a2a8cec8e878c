"""Private covariances."""

from ._friendly_covariance import FriendlyCovariance

DPCovariance = FriendlyCovariance  # the name that most readers look for

__all__ = ["DPCovariance", "FriendlyCovariance"]
