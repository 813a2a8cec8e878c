"""Private aggregation of k-tuples, the results of k-means on blocks.

A tuple is k points in no order. Non-private k-means on a random block of the rows gives one; most
blocks give nearly the same where clusters are separated, and what most of them agree on is
released. Start reading at :mod:`.stage`: which aggregator, at what cost, by public rules. The
default is a friendly core of tuples (:mod:`.stage`); k averages and noisy centers are in
`_published/easy_instances`. Imports `friendly`.
"""
