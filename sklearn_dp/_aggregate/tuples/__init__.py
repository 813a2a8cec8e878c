"""Private aggregation of k-tuples, the results of k-means on blocks.

Imports `friendly`. Start reading at :mod:`.stage`.
"""
