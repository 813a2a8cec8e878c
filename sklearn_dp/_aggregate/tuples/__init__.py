"""Private aggregation of k-tuples, the results of k-means on blocks.

Imports `shared`, `friendly` and `one_cluster`. Start reading at :mod:`.stage`.
"""
