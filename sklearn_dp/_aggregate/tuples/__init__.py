"""Private aggregation of k-tuples, the results of k-means on blocks: see :mod:`.stage`.

A tuple is k points in no order. Most blocks give nearly the same where clusters are separated, and
what most of them agree on is released.
"""
