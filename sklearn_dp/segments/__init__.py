"""Fit one result per segment of the rows, such as a region, under one guarantee."""

from ._dp_by_segment import DPBySegment

__all__ = ["DPBySegment"]
