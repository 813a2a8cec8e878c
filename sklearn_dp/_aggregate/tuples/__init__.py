"""Private aggregation of k-tuples, the results of k-means on blocks.

A tuple is k points in no order. Non-private k-means on a random block of the rows gives one; most
blocks give nearly the same where clusters are separated, and what most of them agree on is
released.

* :mod:`.stage`: which aggregator, at what cost, by public rules. Start reading here.
* :mod:`.core_aggregation`: the default, a friendly core of tuples and its average;
  :mod:`.core_aggregation` says what it costs and how many tuples it needs.

The other aggregators, k averages and noisy centers, are in `_published/easy_instances`.
Estimators that use this room: `DPKTupleKMeans`, `DPGaussianMixture(method="k_tuples")`,
`SampleAndAggregate` and the function `aggregate_k_tuples`. Imports `friendly`.
"""
