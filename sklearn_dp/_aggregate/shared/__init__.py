"""Building blocks of all the other rooms: integer rows, centering, places, blocks, weighted
k-means.

Imports only the kernel. Start reading at :mod:`.rows`: every statistic is an exact sum over rows.
"""
