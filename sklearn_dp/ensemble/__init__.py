"""Private meta-estimators."""

from ._sample_and_aggregate import SampleAndAggregate

__all__ = ["SampleAndAggregate"]
