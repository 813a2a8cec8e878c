"""Private means."""

from ._friendly_mean import FriendlyMean

__all__ = ["FriendlyMean"]
