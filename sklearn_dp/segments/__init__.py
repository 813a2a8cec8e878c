"""One result per segment: of rows with a key, such as a region, or of segments that are found."""

from ._dp_by_segment import DPBySegment
from ._dp_profile import DPProfile, profile

__all__ = ["DPBySegment", "DPProfile", "profile"]
