"""Private means."""

from ._friendly_mean import FriendlyMean

DPMean = FriendlyMean  # the name that most readers look for

__all__ = ["DPMean", "FriendlyMean"]
